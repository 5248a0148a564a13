//! A client that keeps asking while something is done to the cluster.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use steward_lab::Host;
use tokio::io::AsyncReadExt;
use tokio::process::Child;

/// Asks a URL over and over, each time over a connection of its own, and remembers
/// every failure. Runs on a host of the lab until it is told to stop.
pub struct Load {
    child: Child,
    stop: std::path::PathBuf,
}

impl Load {
    /// Starts asking `url` with the credentials of a kubeconfig, a few milliseconds apart.
    pub fn start(host: &Host, folder: &Path, kubeconfig: &Path, url: &str) -> Result<Self> {
        let stop = folder.join("stop");
        let script = folder.join("load.sh");
        std::fs::write(&script, SCRIPT)?;
        let words = [
            "sh",
            script.to_str().context("path")?,
            kubeconfig.to_str().context("path")?,
            url,
            stop.to_str().context("path")?,
            folder.to_str().context("path")?,
        ];
        let child = host.spawn(&words)?;
        Ok(Self { child, stop })
    }

    /// Stops asking; fails if any request failed. Returns how many were made.
    pub async fn finish(mut self) -> Result<u64> {
        std::fs::write(&self.stop, "")?;
        let mut text = String::new();
        let mut stdout = self.child.stdout.take().context("no output")?;
        tokio::time::timeout(Duration::from_secs(30), stdout.read_to_string(&mut text))
            .await
            .context("the load did not stop")??;
        let made = text
            .lines()
            .filter_map(|l| l.strip_prefix("made "))
            .next_back();
        let made = made
            .and_then(|n| n.parse().ok())
            .with_context(|| format!("no count in: {text}"))?;
        let failed: Vec<&str> = text.lines().filter(|l| l.starts_with("failed")).collect();
        ensure!(
            failed.is_empty(),
            "{} of {made} requests failed: {}",
            failed.len(),
            failed.join("; ")
        );
        ensure!(made > 0, "no request was made");
        Ok(made)
    }
}

/// Credentials come out of the kubeconfig into files only this folder's owner can read.
const SCRIPT: &str = r#"
umask 077
conf=$1 url=$2 stop=$3 folder=$4
field() { kubectl config view --raw --kubeconfig "$conf" -o "jsonpath={$1}" | base64 -d; }
field '.clusters[0].cluster.certificate-authority-data' > "$folder/ca.crt"
field '.users[0].user.client-certificate-data' > "$folder/client.crt"
field '.users[0].user.client-key-data' > "$folder/client.key"
made=0
while [ ! -e "$stop" ]; do
  made=$((made + 1))
  out=$(curl -sS -o /dev/null -w '%{http_code}' --max-time 10 --cacert "$folder/ca.crt" \
    --cert "$folder/client.crt" --key "$folder/client.key" "$url" 2>&1)
  [ "$out" = 200 ] || echo "failed $(date +%T) $out"
  sleep 0.01
done
echo "made $made"
"#;
