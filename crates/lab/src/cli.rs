//! The command line: words in, exit code out.
//!
//! Results go to standard output and nothing else does; progress and errors go to
//! standard error. Exit code 2 means that the caller has to change something.

mod dns;
mod exec;
mod images;
mod kubeconfig;
mod logs;
mod status;
mod up;

use std::{ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, Parser, Subcommand};

use crate::{
    Error, Lab, LabName, cloud, faults, guest::registers, images::catalogue::Item, init, lab,
    progress::Progress,
};

/// Real Kubernetes on one machine: a management cluster, worker hosts, a client,
/// a name server and a cloud, all in namespaces of their own.
#[derive(Debug, Parser)]
#[command(name = "steward-lab", version, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  steward-lab up --workers 2            make a lab, ready to use
  steward-lab exec mgmt -- kubectl get nodes
  steward-lab exec worker-1 -- kubeadm join ...
  steward-lab load image.tar            make an image known to every node
  steward-lab dns set '*.k8s.example.com' 10.40.0.1
  steward-lab logs mgmt/kubelet         where it went wrong
  steward-lab down                      leave nothing behind";

/// Which lab.
#[derive(Debug, Args)]
struct Name {
    /// The lab's name; several can run side by side.
    #[arg(long, default_value = "demo", global = true)]
    name: LabName,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a lab: a management cluster, worker hosts, a client and a name server.
    Up(up::Up),
    /// Show hosts, addresses, what runs and what it takes, and kubeconfig paths.
    Status(status::Status),
    /// Run a command on a host: its network, its files, the lab's programs in PATH.
    Exec(exec::Exec),
    /// Print the path of a kubeconfig that works on the lab's hosts.
    Kubeconfig(kubeconfig::Kubeconfig),
    /// Make images known to every node.
    Load(Load),
    /// Show what a program of a host said.
    Logs(logs::Logs),
    /// Remove a lab and every trace of it.
    Down(Down),
    /// Tell the name server what to answer.
    Dns(dns::Dns),
    /// Fetch or build the programs that labs are made of, ahead of time.
    Parts(up::Parts),
    /// Pack our own programs into image archives.
    Images(images::Images),
    #[command(hide = true)]
    Init { folder: PathBuf },
    #[command(hide = true)]
    Cloud {
        #[command(flatten)]
        name: Name,
    },
    #[command(hide = true)]
    Delay { milliseconds: u64, folder: PathBuf },
    #[command(hide = true)]
    OlderRegisters {
        #[arg(last = true)]
        command: Vec<OsString>,
    },
    #[command(hide = true)]
    Janitor {
        #[command(flatten)]
        name: Name,
    },
}

/// Make images known to every node.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  steward-lab load target/images/steward-operator.tar
  steward-lab load traefik kubernetes-1.35     images the lab can make itself")]
struct Load {
    /// Docker archives or OCI layouts, as tar files; or names of the lab's catalogue.
    #[arg(required = true, value_name = "IMAGE.tar")]
    images: Vec<PathBuf>,
    #[command(flatten)]
    name: Name,
}

/// Remove a lab and every trace of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  steward-lab down\n  steward-lab down --all")]
struct Down {
    /// Every lab of this machine.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    name: Name,
}

/// Runs what the words of the command line ask for.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("steward-lab: {}", error.chain());
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Up(up) => wait_for(up.run())?,
        Command::Status(status) => status.run()?,
        Command::Exec(exec) => return exec.run(),
        Command::Kubeconfig(kubeconfig) => wait_for(kubeconfig.run())?,
        Command::Load(load) => wait_for(load.run())?,
        Command::Logs(logs) => logs.run()?,
        Command::Down(down) => down.run()?,
        Command::Dns(dns) => dns.run()?,
        Command::Parts(parts) => parts.run()?,
        Command::Images(images) => return Ok(images::run(&images)),
        Command::Init { folder } => init::run(&folder)?,
        Command::Cloud { name: _ } => wait_for(cloud::serve())?,
        Command::Delay {
            milliseconds,
            folder,
        } => {
            faults::serve_delay(Duration::from_millis(milliseconds), &folder)?;
        }
        Command::OlderRegisters { command } => {
            return Err(registers::run_with_the_older_ones(&command));
        }
        Command::Janitor { name } => lab::clean_up_after_owner(&name.name)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn wait_for(work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Error::files("start", "the runtime"))?
        .block_on(work)
}

fn need_root() -> Result<(), Error> {
    crate::machine::check_root()
}

impl Load {
    async fn run(self) -> Result<(), Error> {
        need_root()?;
        let lab = Lab::find(&self.name.name)?;
        let (mut files, mut items) = (Vec::new(), Vec::new());
        for image in self.images {
            let item = image.to_str().and_then(|name| name.parse::<Item>().ok());
            match item.filter(|_| !image.exists()) {
                Some(item) => items.push(item),
                None => files.push(image),
            }
        }
        lab.load(&files).await?;
        lab.load_items(&items, &Progress::stderr()).await
    }
}

impl Down {
    fn run(self) -> Result<(), Error> {
        need_root()?;
        let names = if self.all {
            Lab::all()
        } else {
            vec![self.name.name]
        };
        names.iter().try_for_each(Lab::down)
    }
}
