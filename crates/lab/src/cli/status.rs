//! `status`.

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::Name;
use crate::{Error, Lab, usage::Usage};

/// Show hosts, addresses, what runs and what it takes, and kubeconfig paths.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  steward-lab status\n  steward-lab status -o json")]
pub(super) struct Status {
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    name: Name,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

#[derive(Debug, Serialize)]
struct LabStatus {
    name: String,
    kubernetes: String,
    kubeconfig: String,
    hosts: Vec<HostStatus>,
}

#[derive(Debug, Serialize)]
struct HostStatus {
    name: String,
    address: String,
    running: bool,
    #[serde(flatten)]
    usage: Usage,
    programs: Vec<ProgramStatus>,
}

#[derive(Debug, Serialize)]
struct ProgramStatus {
    name: String,
    running: bool,
    restarts: u32,
    last_end: Option<String>,
    log: String,
    #[serde(flatten)]
    usage: Usage,
}

impl Status {
    pub(super) fn run(self) -> Result<(), Error> {
        super::need_root()?;
        let lab = Lab::find(&self.name.name)?;
        let status = look(&lab)?;
        match self.output {
            Output::Json => println!(
                "{}",
                serde_json::to_string_pretty(&status).unwrap_or_default()
            ),
            Output::Text => print(&status),
        }
        Ok(())
    }
}

fn look(lab: &Lab) -> Result<LabStatus, Error> {
    let mut hosts = Vec::new();
    for host in lab.hosts() {
        // A host whose first process is gone has no programs, and is shown so.
        let units = host.units().unwrap_or_default();
        let programs = units.into_iter().map(|unit| ProgramStatus {
            running: unit.pid.is_some(),
            restarts: unit.restarts,
            last_end: unit.last_end,
            log: host.log(&unit.name).display().to_string(),
            usage: unit
                .pid
                .map(|pid| Usage::of_program(&host, pid))
                .unwrap_or_default(),
            name: unit.name,
        });
        hosts.push(HostStatus {
            name: host.id().to_string(),
            address: host.address().to_string(),
            running: host.pid().is_some(),
            programs: programs.collect(),
            usage: Usage::of_host(lab.layout(), host.id()),
        });
    }
    Ok(LabStatus {
        name: lab.name().to_string(),
        kubernetes: lab.kubernetes().to_owned(),
        kubeconfig: lab.cluster()?.kubeconfig().display().to_string(),
        hosts,
    })
}

fn print(status: &LabStatus) {
    println!("lab {}, Kubernetes {}", status.name, status.kubernetes);
    println!("kubeconfig {}", status.kubeconfig);
    println!();
    println!(
        "{:<28} {:<12} {:>10} {:>10}  STATE",
        "HOST", "ADDRESS", "MEMORY", "CPU"
    );
    for host in &status.hosts {
        let state = if host.running {
            ""
        } else {
            "gone: its first process was killed"
        };
        line(&host.name, &host.address, host.usage, state);
        for program in &host.programs {
            let state = match (program.running, &program.last_end) {
                (true, _) if program.restarts > 0 => {
                    format!("running, {} restarts", program.restarts)
                }
                (true, _) => "running".into(),
                (false, Some(end)) => format!("ended: {end}"),
                (false, None) => "not started".into(),
            };
            line(&format!("  {}", program.name), "", program.usage, &state);
        }
    }
}

fn line(name: &str, address: &str, usage: Usage, state: &str) {
    let memory = format!("{} MiB", usage.memory_bytes >> 20);
    let cpu = format!("{:.1} s", usage.cpu_seconds);
    println!("{name:<28} {address:<12} {memory:>10} {cpu:>10}  {state}");
}
