//! What tenants behind one address can not do to each other.

use anyhow::{Result, ensure};

use crate::{Resident, Stage};

/// The verification of the server is skipped on purpose: it would already refuse; here the
/// neighbour's API server itself has to. First a certificate, then a token.
pub async fn credentials_of_one_are_refused_by_the_other(
    stage: &Stage,
    one: &Resident,
    other: &Resident,
) -> Result<()> {
    let kubeconfig = one.tenant.kubeconfig().display().to_string();
    let server = format!("https://{}:443", other.host);
    let mut words = vec!["kubectl", "--kubeconfig", &kubeconfig, "--server", &server];
    words.extend(["--insecure-skip-tls-verify", "get", "namespaces"]);
    let output = stage.lab.client_host().exec(&words).await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        !output.status.success() && said.contains("must be logged in"),
        "{}'s administrator at {}: {said}",
        one.host,
        other.host
    );
    let token = one.tenant.kubectl(&["create", "token", "default"]).await?;
    let header = format!("Authorization: Bearer {}", token.trim());
    let url = format!("{server}/api");
    let mut words = vec!["curl", "-ksS", "-o", "/dev/null", "-w", "%{http_code}"];
    words.extend(["-H", &header, &url]);
    let code = stage.lab.client_host().run(&words).await?;
    ensure!(
        code == "401",
        "{}'s token at {}: {code}",
        one.host,
        other.host
    );
    Ok(())
}

/// A node proxy of one that dials under the other's name: it refuses what answers there. One that
/// was given the other's CA gets as far as the other's API server, and its own token no further.
pub async fn a_tunnel_under_a_neighbours_name_leads_nowhere(
    stage: &Stage,
    one: &Resident,
    other: &Resident,
) -> Result<()> {
    let token = one.tenant.kubectl(&["create", "token", "default"]).await?;
    let through = async |ca: &Resident, port: u16| -> Result<String> {
        let path = "jsonpath={.data.ca\\.crt}";
        let words = ["get", "configmap", "kube-root-ca.crt", "-o", path];
        let file = stage.folder().join(format!("{}.crt", ca.host));
        std::fs::write(&file, ca.tenant.kubectl(&words).await?)?;
        let (file, listen) = (file.display().to_string(), format!("127.0.0.1:{port}"));
        let upstream = format!("{}:443", other.host);
        let program = stage.program("steward-tcp-proxy")?.display().to_string();
        let mut words = vec![program.as_str(), "--listen", &listen];
        words.extend(["--upstream", &upstream, "--ca", &file]);
        words.extend(["--admin", "127.0.0.1:0"]);
        let worker = one.worker(stage)?;
        let mut proxy = worker.spawn(&words)?;
        let ask = format!(
            "curl -ksS -o /dev/null -w '%{{http_code}}' --retry 5 --retry-connrefused --max-time 20 \
             -H 'Authorization: Bearer {}' https://{listen}/api 2>/dev/null || true",
            token.trim()
        );
        let said = worker.script(&ask).await;
        proxy.kill().await?;
        Ok(said?)
    };
    let own = through(one, 9443).await?;
    ensure!(own == "000", "with its own CA: {own}");
    let stolen = through(other, 9444).await?;
    ensure!(stolen == "401", "with its neighbour's CA: {stolen}");
    Ok(())
}

/// Whoever asks for a name that nobody has meets no tenant, and is told so in an alert. It offers the protocols
/// that every client of Kubernetes does: on one that offers none, Traefik hangs up once it has a `TLSRoute`. Returns
/// what it saw.
pub async fn an_unknown_name_gets_an_alert(
    stage: &Stage,
    address: &str,
    name: &str,
) -> Result<String> {
    let script = format!(
        "openssl s_client -connect {address}:443 -servername {name} -alpn h2,http/1.1 </dev/null 2>&1 || true"
    );
    let seen = stage.lab.client_host().script(&script).await?;
    let told = seen.contains("SSL alert number") && seen.contains("no peer certificate available");
    ensure!(told, "somebody answers for {name}: {seen}");
    Ok(seen)
}
