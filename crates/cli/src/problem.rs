//! What can go wrong, in sentences, and the exit code of each.

use std::process::ExitCode;

/// Why a command ended without its result.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// There is no usable kubeconfig.
    #[error("no cluster to talk to: {0}. Give --kubeconfig FILE, or set KUBECONFIG")]
    NoCluster(String),
    /// The cluster does not answer.
    #[error(
        "the management cluster does not answer: {0}. Check the address in your kubeconfig and that the cluster runs"
    )]
    Unreachable(String),
    /// A right is missing.
    #[error("you may not {what}: {why}")]
    Forbidden {
        /// The action.
        what: String,
        /// The API server's words.
        why: String,
    },
    /// The CRDs are not there.
    #[error(
        "Steward is not installed in this cluster: the kind TenantControlPlane is not known. `steward install` installs it"
    )]
    NotInstalled,
    /// There is no such tenant.
    #[error("there is no tenant {name} in namespace {namespace}{}", near_text(.near))]
    NoTenant {
        /// As asked for.
        name: String,
        /// Where it was looked for.
        namespace: String,
        /// Names that look like it.
        near: Vec<String>,
    },
    /// Something about a tenant is not ready for this.
    #[error("tenant {name}: {what}")]
    Tenant {
        /// Which.
        name: String,
        /// What is missing, and what to do.
        what: String,
    },
    /// A Secret of a tenant is not there, or not complete.
    #[error("Secret {secret} has no {key} yet; `steward get` says what the tenant is waiting for")]
    Missing {
        /// Which.
        secret: String,
        /// What should be in it.
        key: String,
    },
    /// An installation that does not come up.
    #[error(
        "{what} is not ready after {seconds} s: {last}. `kubectl get pods,events -n {namespace}` shows why"
    )]
    NotUp {
        /// What was waited for.
        what: String,
        /// Where.
        namespace: String,
        /// How long we waited.
        seconds: u64,
        /// What was seen last.
        last: String,
    },
    /// An argument can't be used.
    #[error("{0}")]
    Argument(String),
    /// A file can't be read or written.
    #[error("{file}: {why}")]
    File {
        /// Which.
        file: String,
        /// What happened.
        why: String,
    },
    /// The API server refused or broke off.
    #[error("could not {what}: {why}")]
    Api {
        /// The action.
        what: String,
        /// Its words.
        why: String,
    },
    /// It took too long.
    #[error("tenant {name} is not available after {seconds} s: {last}")]
    Timeout {
        /// Which.
        name: String,
        /// How long we waited.
        seconds: u64,
        /// What was seen last.
        last: String,
    },
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

fn near_text(near: &[String]) -> String {
    if near.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", near.join(" or "))
    }
}

impl Problem {
    /// 1 when the work failed, 2 when it could not be looked at.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Tenant { .. }
            | Self::Missing { .. }
            | Self::Api { .. }
            | Self::NotUp { .. }
            | Self::Timeout { .. } => ExitCode::from(1),
            Self::Interrupted => ExitCode::from(130),
            _ => ExitCode::from(2),
        }
    }

    /// Sorts an error of the API into a sentence. `what` completes "could not …".
    pub fn from_api(what: &str, error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code == 403 => Self::Forbidden {
                what: what.to_owned(),
                why: status.message.clone(),
            },
            kube::Error::Api(status)
                if status.code == 404 && status.message.contains("page not found") =>
            {
                Self::NotInstalled
            }
            kube::Error::Api(status) => Self::Api {
                what: what.to_owned(),
                why: status.message.clone(),
            },
            kube::Error::HyperError(_) | kube::Error::Service(_) => {
                Self::Unreachable(chain(&error))
            }
            other => Self::Api {
                what: what.to_owned(),
                why: other.to_string(),
            },
        }
    }
}

/// An error with its causes, each said once.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text
}
