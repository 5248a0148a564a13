//! From where you sit: name, connection, and the certificate that answers.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use rustls::DigitallySignedStruct;
use rustls::SignatureScheme;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use steward_doctor::{Certificate, Seen, Unseen};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::within_deadline;

/// How long who answers may take to say who it is; within the deadline of the handshake.
const QUESTION: std::time::Duration = std::time::Duration::from_secs(1);

/// What was seen from outside.
pub(super) struct Outside {
    pub(super) resolved: Seen<Vec<IpAddr>>,
    pub(super) tcp: Seen<()>,
    pub(super) certificate: Seen<Certificate>,
}

/// Looks at a name and port.
pub(super) async fn look(host: Option<&str>, port: u16, ca: Option<&str>) -> Outside {
    let nowhere = || Unseen::NotLooked("the tenant has no endpoint yet".to_owned());
    let Some(host) = host else {
        return Outside {
            resolved: Err(nowhere()),
            tcp: Err(nowhere()),
            certificate: Err(nowhere()),
        };
    };
    let resolved = within_deadline("resolving the name", resolve(host, port)).await;
    let first = resolved
        .as_ref()
        .ok()
        .and_then(|found| found.first().copied());
    let Some(address) = first else {
        let elsewhere = || Unseen::NotLooked("the name does not resolve".to_owned());
        return Outside {
            resolved,
            tcp: Err(elsewhere()),
            certificate: Err(elsewhere()),
        };
    };
    let target = SocketAddr::new(address, port);
    let stream = within_deadline("connecting", connect(target)).await;
    let (tcp, certificate) = match stream {
        Ok(stream) => (
            Ok(()),
            within_deadline("the TLS handshake", handshake(stream, host, ca)).await,
        ),
        Err(why) => (Err(why), Err(Unseen::NotLooked("no connection".to_owned()))),
    };
    Outside {
        resolved,
        tcp,
        certificate,
    }
}

async fn resolve(host: &str, port: u16) -> Seen<Vec<IpAddr>> {
    let found = tokio::net::lookup_host((host, port)).await;
    let found = found.map_err(|e| Unseen::Failed(format!("{host} does not resolve: {e}")))?;
    let mut addresses: Vec<IpAddr> = found.map(|a| a.ip()).collect();
    addresses.dedup();
    Ok(addresses)
}

async fn connect(target: SocketAddr) -> Seen<TcpStream> {
    TcpStream::connect(target)
        .await
        .map_err(|e| Unseen::Failed(format!("{target}: {e}")))
}

/// Shakes hands to see the certificate, and asks one harmless question, without any
/// credentials, to see who is behind it.
async fn handshake(stream: TcpStream, host: &str, ca: Option<&str>) -> Seen<Certificate> {
    let failed = |why: String| Unseen::Failed(format!("TLS: {why}"));
    let name = ServerName::try_from(host.to_owned()).map_err(|e| failed(e.to_string()))?;
    let seen = Arc::new(Witness::default());
    let config = rustls::ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(seen.clone())
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let outcome = connector.connect(name, stream).await;
    let der = seen.certificate.lock().ok().and_then(|mut c| c.take());
    match (der, outcome) {
        (Some(der), outcome) => {
            let mut certificate = describe(&der, ca)?;
            if let Ok(stream) = outcome {
                certificate.speaks_kubernetes = speaks_kubernetes(stream, host).await;
            }
            Ok(certificate)
        }
        (None, Err(error)) => Err(failed(error.to_string())),
        (None, Ok(_)) => Err(failed("no certificate was presented".to_owned())),
    }
}

/// Every API server answers this one for everybody, or refuses it in its own words.
async fn speaks_kubernetes(mut stream: impl AsyncRead + AsyncWrite + Unpin, host: &str) -> bool {
    let question = format!(
        "GET /version HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    );
    let asked = async {
        stream.write_all(question.as_bytes()).await?;
        stream.flush().await?;
        let mut answer = Vec::new();
        // An answer that is cut off without a goodbye is an answer all the same.
        let _ = stream.take(8192).read_to_end(&mut answer).await;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = tokio::time::timeout(QUESTION, asked).await;
    matches!(answer, Ok(Ok(text)) if text.contains("gitVersion") || text.contains("\"kind\":"))
}

fn describe(der: &[u8], ca: Option<&str>) -> Seen<Certificate> {
    let facts = steward_pki::inspect(&steward_pki::to_pem(der))
        .map_err(|e| Unseen::Failed(e.to_string()))?;
    Ok(Certificate {
        subject: format!("CN={}", facts.common_name),
        sans: facts.sans.iter().map(ToString::to_string).collect(),
        not_after: facts.not_after,
        of_tenant_ca: ca.is_some_and(|ca| steward_pki::is_signed_by(der, ca)),
        speaks_kubernetes: false,
    })
}

/// Remembers the certificate and judges nothing: the doctor does that.
#[derive(Debug, Default)]
struct Witness {
    certificate: Mutex<Option<Vec<u8>>>,
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Ok(mut seen) = self.certificate.lock() {
            *seen = Some(end_entity.to_vec());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::aws_lc_rs::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
