//! `dns`.

use std::net::Ipv4Addr;

use clap::{Args, Subcommand};

use super::Name;
use crate::{
    Error, Lab,
    dns::{self, Mood},
};

/// Tell the name server what to answer.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  steward-lab dns set '*.k8s.example.com' 10.40.0.1
  steward-lab dns unset '*.k8s.example.com'
  steward-lab dns fail             answer every question with SERVFAIL
  steward-lab dns silent           answer nothing
  steward-lab dns ok               answer again
  steward-lab dns show")]
pub(super) struct Dns {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    name: Name,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Answer NAME, or every name below a domain (`*.DOMAIN`), with ADDRESS.
    Set {
        name_or_wildcard: String,
        address: Ipv4Addr,
    },
    /// Forget a name.
    Unset { name_or_wildcard: String },
    /// Answer every question with SERVFAIL.
    Fail,
    /// Answer nothing.
    Silent,
    /// Answer again.
    Ok,
    /// Print what is answered.
    Show,
    #[command(hide = true)]
    Serve,
}

impl Dns {
    pub(super) fn run(self) -> Result<(), Error> {
        super::need_root()?;
        if matches!(self.what, What::Serve) {
            return dns::serve(&self.name.name);
        }
        let lab = Lab::find(&self.name.name)?;
        match self.what {
            What::Set {
                name_or_wildcard,
                address,
            } => lab.dns_set(&name_or_wildcard, address),
            What::Unset { name_or_wildcard } => lab.dns_unset(&name_or_wildcard),
            What::Fail => lab.dns_mood(Mood::Fails),
            What::Silent => lab.dns_mood(Mood::Silent),
            What::Ok => lab.dns_mood(Mood::Answers),
            What::Show => {
                for (name, address) in dns::read(lab.layout())?.names {
                    println!("{name} {address}");
                }
                Ok(())
            }
            What::Serve => Ok(()),
        }
    }
}
