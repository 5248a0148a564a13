//! What a person outside does by hostname: kubectl with all that needs a way back into the
//! tenant, through konnectivity.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncReadExt;

use super::pods::PYTHON_WORDS;
use crate::{Resident, Stage, Tenant, wait_for};

/// Measurements of nodes as metrics-server serves them: one fixed answer, over real TLS.
const MEASURES: &str = r#"
import http.server, json, ssl
node = {"metadata": {"name": "NODE"}, "timestamp": "2026-01-01T00:00:00Z", "window": "10s", "usage": {"cpu": "123m", "memory": "456Mi"}}
kinds = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1", "resources": [
  {"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics", "verbs": ["get", "list"]}]}
nodes = {"kind": "NodeMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": [node]}
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps(nodes if "/nodes" in self.path else kinds).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("", 8443), Answer)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain("/tmp/c.pem", "/tmp/k.pem")
server.socket = tls.wrap_socket(server.socket, server_side=True)
print("it begins", flush=True)
server.serve_forever()
"#;

fn measures(node: &str) -> String {
    let python: Vec<&str> = PYTHON_WORDS.to_vec();
    let program = MEASURES.replace("NODE", node).replace('\n', "\n      ");
    format!(
        r"apiVersion: v1
kind: Pod
metadata: {{ name: measures, labels: {{ app: measures }} }}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: box
    image: steward.lab/toolbox:1
    imagePullPolicy: IfNotPresent
    command:
    - sh
    - -ec
    - |
      printf '[req]\ndistinguished_name=dn\n[dn]\n' > /tmp/openssl.conf
      OPENSSL_CONF=/tmp/openssl.conf openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \
        -nodes -days 2 -subj /CN=measures -keyout /tmp/k.pem -out /tmp/c.pem
      exec {} -c '{program}'
    volumeMounts: [ {{ name: machine, mountPath: /machine, readOnly: true }} ]
  volumes: [ {{ name: machine, hostPath: {{ path: / }} }} ]
---
apiVersion: v1
kind: Service
metadata: {{ name: measures }}
spec: {{ selector: {{ app: measures }}, ports: [ {{ port: 443, targetPort: 8443 }} ] }}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{ name: v1beta1.metrics.k8s.io }}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {{ name: measures, namespace: default }}
",
        python.join(" ")
    )
}

/// The kubeconfig says the hostname, and it answers.
pub async fn kubectl_works_by_hostname(resident: &Resident) -> Result<()> {
    let tenant = &resident.tenant;
    let server = "jsonpath={.clusters[0].cluster.server}";
    let server = tenant.kubectl(&["config", "view", "-o", server]).await?;
    let wanted = format!("https://{}:443", resident.host);
    ensure!(server == wanted, "{server}");
    let namespaces = tenant.kubectl(&["get", "namespaces", "-o", "name"]).await?;
    ensure!(namespaces.contains("namespace/kube-system"), "{namespaces}");
    Ok(())
}

/// `logs -f`, `port-forward`, `top`: all that needs a way back into the tenant.
pub async fn logs_ports_and_measurements_come_back(
    stage: &Stage,
    resident: &Resident,
) -> Result<()> {
    let (tenant, node) = (&resident.tenant, resident.node());
    tenant.pod("measures", &measures(&node)).await?;
    logs_are_followed(stage, tenant).await?;
    a_port_is_forwarded(stage, resident).await?;
    wait_for("kubectl top", 180, async || {
        let top = tenant.kubectl(&["top", "node"]).await?;
        ensure!(top.contains(&node) && top.contains("123m"), "{top}");
        Ok(())
    })
    .await
}

/// What is said after `logs -f` began arrives, too.
async fn logs_are_followed(stage: &Stage, tenant: &Tenant) -> Result<()> {
    let kubeconfig = tenant.kubeconfig().display().to_string();
    let words = [
        "kubectl",
        "--kubeconfig",
        &kubeconfig,
        "logs",
        "-f",
        "measures",
    ];
    // The pod says its first words a moment after it runs.
    wait_for("the first words", 120, async || {
        let log = tenant.kubectl(&["logs", "measures"]).await?;
        ensure!(log.contains("it begins"), "{log}");
        Ok(())
    })
    .await?;
    let mut child = stage.lab.client_host().spawn(&words)?;
    let mut out = child.stdout.take().context("no output")?;
    let say = "echo later >> /proc/1/fd/1";
    let mut text = Vec::new();
    let hear = async {
        while !String::from_utf8_lossy(&text).contains("later") {
            if out.read_buf(&mut text).await? == 0 {
                break;
            }
            let words = ["exec", "measures", "--", "sh", "-c", say];
            tenant.kubectl(&words).await?;
        }
        anyhow::Ok(())
    };
    let heard = tokio::time::timeout(Duration::from_mins(2), hear).await;
    child.kill().await?;
    heard.context("logs -f said nothing more")??;
    let text = String::from_utf8_lossy(&text);
    ensure!(text.contains("later"), "logs -f ended: {text}");
    Ok(())
}

async fn a_port_is_forwarded(stage: &Stage, resident: &Resident) -> Result<()> {
    // Several residents may be asked at once.
    let port = 18_000 + u16::from(resident.worker);
    let mut forward = resident
        .tenant
        .forward("pod/measures", &format!("{port}:8443"))?;
    let url = format!("https://127.0.0.1:{port}/apis/metrics.k8s.io/v1beta1/nodes");
    let answered = wait_for("an answer through port-forward", 120, async || {
        let words = ["curl", "-ksS", "--max-time", "10", &url];
        let answer = stage.lab.client_host().run(&words).await?;
        ensure!(answer.contains("NodeMetricsList"), "{answer}");
        Ok(())
    })
    .await;
    forward.kill().await?;
    answered
}
