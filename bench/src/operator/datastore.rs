//! The etcd that tenants' data would live in: TLS on both sides and users, as in
//! an installation. Apart from the one behind the API server.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    RsaKeySize, SanType,
};

use super::contender::Keys;
use crate::process::{Process, Program};

const PORT: u16 = 12379;
const START_LIMIT: Duration = Duration::from_secs(30);

/// A running etcd, and what is needed to be its root.
#[derive(Debug)]
pub(super) struct Datastore {
    /// The CA: certificate and key, PEM.
    pub(super) ca: (String, String),
    /// The root user: certificate and key, PEM.
    pub(super) root: (String, String),
    #[expect(dead_code, reason = "held so that it runs as long as this value lives")]
    process: Process,
}

impl Datastore {
    /// Where it is.
    pub(super) fn endpoint() -> String {
        format!("127.0.0.1:{PORT}")
    }

    /// Starts it and turns authentication on.
    pub(super) fn start(bin: &Path, directory: &Path, keys: Keys) -> Result<Self> {
        let folder = directory.join("datastore");
        fs::create_dir_all(&folder)?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        params
            .distinguished_name
            .push(DnType::CommonName, "datastore");
        let ca = CertifiedIssuer::self_signed(params, keys.generate()?)?;
        let server = leaf(&ca, "server")?;
        let root = leaf(&ca, "root")?;
        let file = |name: &str, text: &str| -> Result<PathBuf> {
            let path = folder.join(name);
            fs::write(&path, text)?;
            Ok(path)
        };
        let ca_path = file("ca.crt", &ca.pem())?;
        let url = format!("https://{}", Self::endpoint());
        let arguments = [
            format!("--data-dir={}", folder.join("data").display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            format!("--cert-file={}", file("server.crt", &server.0)?.display()),
            format!("--key-file={}", file("server.key", &server.1)?.display()),
            format!("--trusted-ca-file={}", ca_path.display()),
            "--client-cert-auth".to_owned(),
            "--unsafe-no-fsync".to_owned(),
            "--watch-progress-notify-interval=2s".to_owned(),
            "--log-level=error".to_owned(),
        ];
        file("root.crt", &root.0)?;
        file("root.key", &root.1)?;
        let mut process =
            Program::new("datastore", &bin.join("etcd"), arguments).start(directory)?;
        enable_authentication(bin, &folder, &url, &mut process)?;
        Ok(Self {
            ca: (ca.pem(), keys.pem(ca.key())?),
            root,
            process,
        })
    }
}

impl Keys {
    fn generate(self) -> Result<KeyPair> {
        Ok(match self {
            Self::Ecdsa => KeyPair::generate()?,
            Self::Rsa => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048)?,
        })
    }

    /// Kamaji reads a CA's key only as RSA in PKCS#1.
    fn pem(self, key: &KeyPair) -> Result<String> {
        match self {
            Self::Ecdsa => Ok(key.serialize_pem()),
            Self::Rsa => pkcs1(&key.serialize_der()).context("an RSA key of an unknown shape"),
        }
    }
}

/// PKCS#1 out of the PKCS#8 of an RSA-2048 key: what is in the octet string after
/// the version and the algorithm, whose lengths are always the same.
fn pkcs1(pkcs8: &[u8]) -> Option<String> {
    const BEFORE: usize = 4 + 3 + 15;
    let key = pkcs8.get(BEFORE..)?.strip_prefix(&[0x04, 0x82])?.get(2..)?;
    let text = STANDARD.encode(key);
    let mut pem = "-----BEGIN RSA PRIVATE KEY-----\n".to_owned();
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem.push_str("-----END RSA PRIVATE KEY-----\n");
    Some(pem)
}

fn leaf(ca: &CertifiedIssuer<'_, KeyPair>, name: &str) -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
    params
        .subject_alt_names
        .push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    params.distinguished_name.push(DnType::CommonName, name);
    Ok((params.signed_by(&key, ca)?.pem(), key.serialize_pem()))
}

fn enable_authentication(
    bin: &Path,
    folder: &Path,
    url: &str,
    process: &mut Process,
) -> Result<()> {
    let etcdctl = |words: &[&str]| -> Result<()> {
        let output = Command::new(bin.join("etcdctl"))
            .args(["--endpoints", url, "--command-timeout=5s", "--cacert"])
            .arg(folder.join("ca.crt"))
            .arg("--cert")
            .arg(folder.join("root.crt"))
            .arg("--key")
            .arg(folder.join("root.key"))
            .args(words)
            .output()
            .context("starting etcdctl")?;
        if !output.status.success() {
            bail!(
                "etcdctl {}: {}",
                words.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(())
    };
    let begun = Instant::now();
    while let Err(error) = etcdctl(&["endpoint", "health"]) {
        process.check()?;
        if begun.elapsed() > START_LIMIT {
            return Err(error.context(format!("the datastore is not up after {START_LIMIT:?}")));
        }
        thread::sleep(Duration::from_millis(50));
    }
    etcdctl(&["user", "add", "root", "--no-password"])?;
    etcdctl(&["role", "add", "root"])?;
    etcdctl(&["user", "grant-role", "root", "root"])?;
    etcdctl(&["auth", "enable"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_pkcs1_begins_like_one() {
        let pem = Keys::Rsa.pem(&Keys::Rsa.generate().unwrap()).unwrap();
        // A sequence of more than 255 bytes, then version 0, then the modulus.
        assert!(
            pem.starts_with("-----BEGIN RSA PRIVATE KEY-----\nMIIE"),
            "{}",
            &pem[..40]
        );
        assert!(pem.lines().all(|line| line.len() <= 64));
    }
}
