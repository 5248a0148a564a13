//! What is secret stays so: no private key in what our programs and Kubernetes' own write down.

use anyhow::{Result, ensure};
use steward_e2e::Stage;
use steward_lab::Host;

/// Every value of every Secret in the management cluster, as it is.
const VALUES: &str = "go-template={{range .items}}{{range $key, $value := .data}}{{$value | base64decode}}{{\"\\n\"}}{{end}}{{end}}";

/// What each container on a host has said since it started, and how every process was called.
const SAID: &str = "cat /var/log/pods/*/*/*.log 2>/dev/null || true
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '";

/// No line of a private key is in a log, an event, a condition or a command
/// line, on any host.
pub(crate) async fn are_written_down_nowhere(stage: &Stage) -> Result<()> {
    let values = stage
        .kubectl(&["get", "secrets", "-A", "-o", VALUES])
        .await?;
    let secrets = lines_of_keys(&values);
    ensure!(secrets.len() > 20, "{} lines of keys", secrets.len());
    let mut places = vec![
        (
            "events",
            stage
                .kubectl(&["get", "events", "-A", "-o", "json"])
                .await?,
        ),
        (
            "conditions",
            stage.kubectl(&["get", "tcp", "-A", "-o", "json"]).await?,
        ),
    ];
    let hosts: [(&str, Host); 4] = [
        ("mgmt", stage.lab.mgmt()),
        ("client", stage.lab.client_host()),
        ("worker-1", stage.lab.worker(1)?),
        ("worker-2", stage.lab.worker(2)?),
    ];
    for (name, host) in hosts {
        let said = host.script(SAID).await?;
        // Every program of ours says so when it starts.
        ensure!(
            name == "client" || said.contains(" listening "),
            "no log was seen on {name}"
        );
        places.push((name, said));
    }
    for (place, text) in places {
        ensure!(!text.is_empty(), "nothing was seen at {place}");
        let found = secrets
            .iter()
            .filter(|secret| text.contains(**secret))
            .count();
        ensure!(found == 0, "{found} lines of private keys at {place}");
    }
    Ok(())
}

/// The lines between the first and the last of each private key.
fn lines_of_keys(values: &str) -> Vec<&str> {
    let mut within = false;
    let mut lines = Vec::new();
    for line in values.lines() {
        if line.contains("PRIVATE KEY-----") {
            within = line.contains("BEGIN");
        } else if within && line.len() >= 40 {
            lines.push(line);
        }
    }
    lines
}
