//! What can be written behind `steward`.
//!
//! Owns flags, help texts and examples. It does nothing.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::dns;

/// See, reach and fix the tenants of a Steward management cluster.
///
/// Also answers as `kubectl steward`. Exit codes: 0 fine, 1 problems found or the
/// work failed, 2 could not look (bad arguments, no cluster, no rights).
#[derive(Debug, Parser)]
#[command(
    name = "steward",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub struct Cli {
    /// The management cluster's kubeconfig [default: $KUBECONFIG, ~/.kube/config, or in the cluster].
    #[arg(long, global = true, value_name = "FILE", env = "KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context.
    #[arg(long, global = true)]
    pub context: Option<String>,
    /// The tenant's namespace [default: the context's].
    #[arg(short, long, global = true)]
    pub namespace: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// One thing to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a tenant and wait until it can be used.
    #[command(
        after_help = "Example: steward create t1 --hostname t1.k8s.example.com --class steward"
    )]
    Create(Create),
    /// Tenants at a glance.
    #[command(after_help = "Example: steward get -A -o wide")]
    Get(Get),
    /// Everything a tenant consists of, with its health.
    #[command(after_help = "Example: steward tree t1")]
    Tree(Tenant),
    /// Print a kubeconfig for a tenant: its administrator's, or a fresh one for a person.
    #[command(
        after_help = "Example: steward kubeconfig t1 --user ada --group developers --expires 8h > ada.conf"
    )]
    Kubeconfig(Kubeconfig),
    /// Print a kubeadm join command with a new token, or user data that runs it.
    #[command(after_help = "Example: steward join t1 --ttl 2h --cloud-init > user-data")]
    Join(Join),
    /// Print the DNS records to make, in the language of your server.
    #[command(
        after_help = "Example: steward dns --domain example.com --ip 192.0.2.10 --format dnsmasq"
    )]
    Dns(Dns),
    /// Find out what is wrong and how to fix it.
    #[command(after_help = "Example: steward doctor t1")]
    Doctor(Doctor),
    /// Say which checks speak of a symptom.
    #[command(
        after_help = "Example: steward explain 'x509: certificate signed by unknown authority'"
    )]
    Explain {
        /// What you see, in the words you see it in.
        #[arg(required = true)]
        symptom: Vec<String>,
    },
    /// Turn manifests of Kamaji, k0smotron and k0rdent into ours.
    #[command(after_help = "Example: steward import kamaji.yaml > tenants.yaml")]
    Import(Import),
    /// Print the versions of this program and of the operator.
    Version,
    /// Print a completion script for a shell.
    #[command(after_help = "Example: steward completion bash > /etc/bash_completion.d/steward")]
    Completion {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// How to print a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table for people.
    #[default]
    Table,
    /// A table with more columns.
    Wide,
    /// Stable, for programs.
    Json,
    /// The same as YAML.
    Yaml,
}

/// A tenant by name.
#[derive(Debug, Args)]
pub struct Tenant {
    /// The tenant's name.
    pub name: String,
}

/// `steward create`.
#[derive(Debug, Args)]
pub struct Create {
    /// The tenant's name.
    pub name: String,
    /// Its hostname behind the shared address. Without one it gets a load balancer of its own.
    #[arg(long)]
    pub hostname: Option<String>,
    /// The ingress class whose controller is the front door.
    #[arg(long, default_value = "steward")]
    pub class: String,
    /// What that controller is [default: told by the class's name].
    #[arg(long)]
    pub controller_type: Option<String>,
    /// The Kubernetes version.
    #[arg(long, default_value = "v1.36.3", value_name = "V")]
    pub kubernetes: String,
    /// How many API servers.
    #[arg(long, default_value_t = 2)]
    pub replicas: i32,
    /// The DataStore [default: the operator's].
    #[arg(long)]
    pub datastore: Option<String>,
    /// Print the manifest and make nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// How to print it.
    #[arg(short, long, value_enum, default_value = "yaml")]
    pub output: Output,
    /// How many seconds to wait until it is available; 0 does not wait.
    #[arg(long, default_value_t = 300)]
    pub timeout: u64,
}

/// `steward get`.
#[derive(Debug, Args)]
pub struct Get {
    /// One tenant only.
    pub name: Option<String>,
    /// Of every namespace.
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
    /// Stay, and print each change.
    #[arg(short, long)]
    pub watch: bool,
}

/// `steward kubeconfig`.
#[derive(Debug, Args)]
pub struct Kubeconfig {
    /// The tenant's name.
    pub name: String,
    /// Make a fresh certificate for this person instead of printing the administrator's.
    #[arg(long)]
    pub user: Option<String>,
    /// The group of that person.
    #[arg(long, requires = "user")]
    pub group: Option<String>,
    /// How long it is valid, like 30m, 8h or 24h; a week at most.
    #[arg(long, requires = "user", default_value = "8h")]
    pub expires: String,
    /// Merge it into your own kubeconfig file under the tenant's name.
    #[arg(long)]
    pub merge: bool,
}

/// `steward join`.
#[derive(Debug, Args)]
pub struct Join {
    /// The tenant's name.
    pub name: String,
    /// How long the token is valid, like 30m, 1h or 24h.
    #[arg(long, default_value = "1h")]
    pub ttl: String,
    /// Print cloud-init user data.
    #[arg(long, conflicts_with = "script")]
    pub cloud_init: bool,
    /// Print a shell script.
    #[arg(long)]
    pub script: bool,
}

/// `steward dns`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["name", "domain"])))]
pub struct Dns {
    /// A tenant: its own names.
    pub name: Option<String>,
    /// A domain: wildcards for every tenant under it.
    #[arg(long)]
    pub domain: Option<String>,
    /// The front door's address; may be repeated. For a tenant it is read from the cluster.
    #[arg(long, required_unless_present = "name")]
    pub ip: Vec<IpAddr>,
    /// The server to write for.
    #[arg(long, value_enum, default_value = "bind")]
    pub format: dns::Format,
    /// Resolve the names and compare instead of printing records.
    #[arg(long)]
    pub check: bool,
}

/// `steward import`.
#[derive(Debug, Args)]
pub struct Import {
    /// Files with one or more documents; `-` is standard input.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
}

/// `steward doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// One tenant only.
    pub name: Option<String>,
    /// Also list what is fine.
    #[arg(long)]
    pub all: bool,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
}
