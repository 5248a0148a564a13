//! What can go wrong, by the operation that failed.

/// Why keys, certificates or kubeconfigs could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cryptographic library gave no key.
    #[error("generate a private key")]
    GenerateKey(#[source] rcgen::Error),
    /// The operating system gave no random bytes.
    #[error("read random bytes from the operating system: {0}")]
    Random(String),
    /// A certificate could not be signed.
    #[error("sign the certificate of {subject}")]
    Sign {
        /// Common name of the certificate.
        subject: String,
        /// What the library said.
        #[source]
        source: rcgen::Error,
    },
    /// A name can't stand in a certificate.
    #[error("{name:?} can't be a name in a certificate: use a DNS name or an IP address")]
    Name {
        /// The name.
        name: String,
    },
    /// A PEM text holds no usable private key.
    #[error(
        "read the private key: it must be one PEM block of type PRIVATE KEY, EC PRIVATE KEY or RSA PRIVATE KEY"
    )]
    ReadKey(#[source] rcgen::Error),
    /// A PEM text holds no usable certificate.
    #[error("read the certificate: {0}; it must be a PEM block of type CERTIFICATE")]
    ReadCertificate(String),
    /// Certificate and key don't belong together.
    #[error(
        "the private key does not belong to the certificate of {subject}: replace both together"
    )]
    KeyMismatch {
        /// Common name of the certificate.
        subject: String,
    },
    /// A certificate can't sign others.
    #[error(
        "the certificate of {subject} is not an authority: its basic constraints must say CA:TRUE"
    )]
    NotAnAuthority {
        /// Common name of the certificate.
        subject: String,
    },
    /// A time is out of the range of certificates.
    #[error("{0} can't be written into a certificate")]
    Time(jiff::Timestamp),
    /// A kubeconfig could not be written.
    #[error("write the kubeconfig: {0}")]
    WriteKubeconfig(String),
}
