//! What can be written behind `steward`.
//!
//! Owns flags, help texts and examples. It does nothing.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::dns;

/// See, reach and fix the tenants of a Steward management cluster.
///
/// Also answers as `kubectl steward`, when it is on the PATH as `kubectl-steward`.
/// Exit codes: 0 fine, 1 problems found or the work failed, 2 could not look (bad
/// arguments, no cluster, no rights), 130 interrupted.
#[derive(Debug, Parser)]
#[command(
    name = "steward",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub struct Cli {
    /// The management cluster's kubeconfig [default: $KUBECONFIG, ~/.kube/config, or in the cluster].
    #[arg(long, global = true, value_name = "FILE")]
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
    /// Install Steward, or upgrade it, from the chart inside this program.
    ///
    /// The result is the same as Helm's, and `helm upgrade` can take over later.
    #[command(
        after_help = "Examples:\n  steward install --set gateway.enabled=true\n  steward install --dry-run | less"
    )]
    Install(Install),
    /// Make a tenant and wait until it can be used.
    #[command(
        after_help = "Examples:\n  steward create t1 --hostname t1.k8s.example.com --class steward\n  steward create t1 --hostname t1.k8s.example.com --dry-run > t1.yaml"
    )]
    Create(Create),
    /// Tenants at a glance.
    #[command(after_help = "Examples:\n  steward get -A -o wide\n  steward get t1 -w")]
    Get(Get),
    /// Everything a tenant consists of, on both sides, with its health.
    #[command(after_help = "Example: steward tree t1")]
    Tree(Tree),
    /// Print a kubeconfig for a tenant: its administrator's, or a fresh one for a person.
    #[command(
        after_help = "Examples:\n  steward kubeconfig t1 --merge\n  steward kubeconfig t1 --user ada --group developers --expires 8h > ada.conf"
    )]
    Kubeconfig(Kubeconfig),
    /// Print a kubeadm join command with a new token, or user data that runs it.
    #[command(after_help = "Example: steward join t1 --ttl 2h --cloud-init > user-data")]
    Join(Join),
    /// Print the DNS records to make, in the language of your server.
    #[command(
        after_help = "Examples:\n  steward dns --domain example.com --ip 192.0.2.10 --format dnsmasq\n  steward dns t1 --check"
    )]
    Dns(Dns),
    /// Find out what is wrong and how to fix it.
    #[command(after_help = "Examples:\n  steward doctor t1\n  steward doctor -A -o json")]
    Doctor(Doctor),
    /// Send real traffic on every way there is, and time it.
    ///
    /// From here by hostname; from a pod through kubernetes.default.svc, with its token and
    /// with a client certificate; exec and logs through konnectivity. Makes a namespace in
    /// the tenant for it and removes it again.
    #[command(after_help = "Example: steward connectivity t1")]
    Connectivity(Connectivity),
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
    #[command(
        after_help = "Examples:\n  steward import kamaji.yaml > tenants.yaml\n  steward import --from-cluster -o json"
    )]
    Import(Import),
    /// Print the versions of this program and of the operator.
    #[command(after_help = "Example: steward version")]
    Version(Version),
    /// Print a completion script for a shell.
    #[command(after_help = "Example: steward completion bash > /etc/bash_completion.d/steward")]
    Completion {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// How to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Table,
    /// For people with a wide terminal.
    Wide,
    /// Stable, for programs.
    Json,
    /// The same as YAML.
    Yaml,
}

/// How to print manifests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Manifest {
    /// As people write it.
    #[default]
    Yaml,
    /// As programs do.
    Json,
}

/// `steward install`.
#[derive(Debug, Args)]
pub struct Install {
    /// A value of the chart, like gateway.enabled=true; may be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// The same, read as text whatever it looks like.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set_string: Vec<String>,
    /// A file with values; may be repeated.
    #[arg(short = 'f', long, value_name = "FILE")]
    pub values: Vec<PathBuf>,
    /// Name of the release.
    #[arg(long, default_value = "steward")]
    pub release: String,
    /// Print the manifests and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// How to print them.
    #[arg(short, long, value_enum, default_value = "yaml")]
    pub output: Manifest,
    /// How many seconds to wait until it runs; 0 does not wait.
    #[arg(long, default_value_t = 300)]
    pub timeout: u64,
}

/// `steward tree`.
#[derive(Debug, Args)]
pub struct Tree {
    /// The tenant's name.
    pub name: String,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
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
    /// What that controller is: steward, traefik, haproxy, haproxy-ingress, nginx or generic
    /// [default: told by the class's name].
    #[arg(long, value_parser = ["steward", "traefik", "haproxy", "haproxy-ingress", "nginx", "generic"])]
    pub controller_type: Option<String>,
    /// The Kubernetes version.
    #[arg(long, default_value = "v1.36.3", value_name = "V")]
    pub kubernetes: String,
    /// How many API servers.
    #[arg(long, default_value_t = 2)]
    pub replicas: i32,
    /// The datastore's name [default: the operator's].
    #[arg(long)]
    pub datastore: Option<String>,
    /// Print the manifest and make nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// How to print it.
    #[arg(short, long, value_enum, default_value = "yaml")]
    pub output: Manifest,
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
    #[arg(short = 'A', long, conflicts_with = "name")]
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
    #[arg(
        required_unless_present = "from_cluster",
        conflicts_with = "from_cluster"
    )]
    pub files: Vec<PathBuf>,
    /// Read what is in the cluster instead: of the namespace, or of all without -n.
    #[arg(long)]
    pub from_cluster: bool,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "yaml")]
    pub output: Manifest,
}

/// `steward doctor`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Doctor {
    /// One tenant only.
    pub name: Option<String>,
    /// Of every namespace.
    #[arg(short = 'A', long, conflicts_with = "name")]
    pub all_namespaces: bool,
    /// Also list what is fine.
    #[arg(long)]
    pub all: bool,
    /// Do what is safe to do, after asking.
    #[arg(long)]
    pub fix: bool,
    /// Do it without asking.
    #[arg(long, requires = "fix")]
    pub yes: bool,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
}

/// `steward connectivity`.
#[derive(Debug, Args)]
pub struct Connectivity {
    /// The tenant's name.
    pub name: String,
    /// The image of the pod; it must have sh and curl.
    #[arg(
        long,
        default_value = "docker.io/curlimages/curl:8.16.0",
        env = "STEWARD_CONNECTIVITY_IMAGE"
    )]
    pub image: String,
    /// Put the pod on this node.
    #[arg(long)]
    pub node: Option<String>,
    /// How many seconds to wait for the pod to run.
    #[arg(long, default_value_t = 120)]
    pub timeout: u64,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
}

/// `steward version`.
#[derive(Debug, Args)]
pub struct Version {
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    pub output: Output,
}
