//! A TLS handshake that looks at the certificate and goes away.

use std::sync::Arc;

use rustls::{
    AlertDescription, ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use steward_api::conditions::Reason;
use steward_plan::{Knock, Reach};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub(super) async fn look(stream: TcpStream, knock: &Knock) -> Reach {
    let (Some(config), Ok(name)) = (
        config(&knock.authority),
        ServerName::try_from(knock.host.clone()),
    ) else {
        // Not for us to complain about: validation does.
        return Reach::NotTried;
    };
    match TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
    {
        Ok(_) => Reach::Answers,
        Err(error) => explain(knock, &error),
    }
}

fn config(authority: &str) -> Option<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots.add(certificate.ok()?).ok()?;
    }
    Some(
        ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth(),
    )
}

fn explain(knock: &Knock, error: &std::io::Error) -> Reach {
    let place = format!("{}:{}", knock.host, knock.port);
    let tls = error
        .get_ref()
        .and_then(|error| error.downcast_ref::<rustls::Error>());
    match tls {
        // Who says this knows the name, and whom it lets in.
        Some(rustls::Error::AlertReceived(AlertDescription::AccessDenied)) => Reach::AnswersBut {
            reason: Reason::Ready,
            message: format!(
                "{place} knows the name and refuses the operator's own address, which is not in allowedSourceRanges; more can't be seen from here"
            ),
        },
        Some(rustls::Error::InvalidCertificate(why)) => Reach::Fails {
            reason: Reason::TlsTerminated,
            message: format!(
                "{place} shows a certificate that the tenant's API server did not issue ({why}): something in front opens TLS itself; turn on TLS passthrough there"
            ),
        },
        _ => Reach::Fails {
            reason: Reason::EndpointUnreachable,
            message: format!("{place} does not complete a TLS handshake: {error}"),
        },
    }
}
