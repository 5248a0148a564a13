//! What pods do with their own API server: by the Service's name, with their service account,
//! with a client certificate, in several languages, for minutes.

use anyhow::{Result, ensure};

use super::nodes::kubectl_on;
use crate::{Pod, Resident, Stage, Tenant};

/// A toolbox that also sees the machine's programs: Python and a Go client need no image then.
const BOX: &str = "apiVersion: v1
kind: Pod
metadata: { name: asker }
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: box
    image: steward.lab/toolbox:1
    imagePullPolicy: IfNotPresent
    command: [ sleep, '36000' ]
    volumeMounts: [ { name: machine, mountPath: /machine, readOnly: true } ]
  volumes: [ { name: machine, hostPath: { path: / } } ]
";

const PYTHON: &str = r#"
import json, ssl, urllib.request
account = "/var/run/secrets/kubernetes.io/serviceaccount/"
trust = ssl.create_default_context(cafile=account + "ca.crt")
headers = {"Authorization": "Bearer " + open(account + "token").read()}
request = urllib.request.Request("https://kubernetes.default.svc/api/v1/namespaces", headers=headers)
answer = json.load(urllib.request.urlopen(request, context=trust, timeout=10))
print(*(item["metadata"]["name"] for item in answer["items"]))
"#;

/// The machine's Python, from inside a pod.
pub(super) const PYTHON_WORDS: [&str; 6] = [
    "env",
    "PYTHONHOME=/machine/usr",
    "/machine/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "--library-path",
    "/machine/usr/lib/x86_64-linux-gnu",
    "/machine/usr/bin/python3",
];

/// A pod may not list namespaces unless somebody lets it: grant that, then let it ask.
pub async fn they_ask_their_own_api_server(stage: &Stage, resident: &Resident) -> Result<()> {
    let tenant = &resident.tenant;
    let grant = [
        "create",
        "clusterrolebinding",
        "look",
        "--clusterrole=view",
        "--serviceaccount=default:default",
    ];
    tenant.kubectl(&grant).await?;
    let marker = format!("only-{}", tenant.name());
    tenant.kubectl(&["create", "namespace", &marker]).await?;
    let pod = tenant.pod("asker", BOX).await?;
    // curl, over HTTP/2.
    let answer = pod.ask_api("/api/v1/namespaces").await?;
    ensure!(answer.contains(&marker), "another cluster: {answer}");
    let mut python = PYTHON_WORDS.to_vec();
    python.extend(["-c", PYTHON]);
    let answer = pod.exec(&python).await?;
    ensure!(answer.contains(&marker), "another cluster: {answer}");
    // A Go client that finds its configuration by itself.
    let kubectl = kubectl_on(&resident.worker(stage)?).await?;
    let go = format!("exec -a kubectl /machine{kubectl} get namespaces -o name");
    let answer = pod.exec(&["sh", "-c", &go]).await?;
    ensure!(answer.contains(&marker), "another cluster: {answer}");
    a_client_certificate_is_the_pods_own(tenant, &pod).await
}

/// TLS is the pod's own up to the API server: it knows who shows the certificate.
async fn a_client_certificate_is_the_pods_own(tenant: &Tenant, pod: &Pod<'_>) -> Result<()> {
    for (field, file) in [("certificate", "/tmp/me.crt"), ("key", "/tmp/me.key")] {
        let path = format!("jsonpath={{.users[0].user.client-{field}-data}}");
        let text = tenant
            .kubectl(&["config", "view", "--raw", "-o", &path])
            .await?;
        let write = format!("echo {} | base64 -d > {file}", text.trim());
        pod.exec(&["sh", "-c", &write]).await?;
    }
    let ask = "curl -sS --max-time 10 --cacert /var/run/secrets/kubernetes.io/serviceaccount/ca.crt \
         --cert /tmp/me.crt --key /tmp/me.key -H 'Content-Type: application/json' \
         -d '{\"kind\":\"SelfSubjectReview\",\"apiVersion\":\"authentication.k8s.io/v1\"}' \
         https://kubernetes.default.svc/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let answer = pod.exec(&["sh", "-c", ask]).await?;
    ensure!(
        answer.contains("kubernetes-admin") && answer.contains("system:authenticated"),
        "the certificate did not arrive: {answer}"
    );
    Ok(())
}
