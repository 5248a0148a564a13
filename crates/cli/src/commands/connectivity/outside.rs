//! From where you sit, by the endpoint in the kubeconfig.

use kube::Client;
use steward_pki::Reading;

use super::{Try, within};
use crate::cluster::Management;
use crate::problem::{Problem, chain};

/// Name, connection, and a request with the administrator's certificate.
pub(super) async fn tries(
    management: &Management,
    name: &str,
    client: &Client,
) -> Result<Vec<Try>, Problem> {
    let admin = management.admin_kubeconfig(name).await?;
    let server = Reading::parse(&admin).map(|r| r.server).unwrap_or_default();
    let address = server.trim_start_matches("https://").to_owned();
    let mut tries = vec![
        Try::of(
            "here",
            format!("resolve and connect to {address}"),
            within(5, connect(&address)),
        )
        .await,
    ];
    if tries[0].health == crate::output::Health::Good {
        tries.push(
            Try::of(
                "here",
                "kubectl by hostname, client certificate",
                within(10, who(client)),
            )
            .await,
        );
    }
    Ok(tries)
}

async fn connect(address: &str) -> Result<String, String> {
    let stream = tokio::net::TcpStream::connect(address)
        .await
        .map_err(|e| e.to_string())?;
    let peer = stream.peer_addr().map_err(|e| e.to_string())?;
    Ok(format!("{peer} answers"))
}

/// Asks the API server who it takes us for: only an end-to-end certificate gets an answer.
async fn who(client: &Client) -> Result<String, String> {
    use k8s_openapi::api::authentication::v1::SelfSubjectReview;
    let api: kube::Api<SelfSubjectReview> = kube::Api::all(client.clone());
    let made = api
        .create(
            &kube::api::PostParams::default(),
            &SelfSubjectReview::default(),
        )
        .await;
    let made = made.map_err(|e| chain(&e))?;
    let user = made
        .status
        .and_then(|s| s.user_info)
        .and_then(|u| u.username);
    Ok(format!("known there as {}", user.unwrap_or_default()))
}
