//! `steward tree`: what a tenant consists of, on both sides, with its health.
//!
//! Owns the drawing; the two sides are looked at next door.

use std::process::ExitCode;

use serde::Serialize;

use crate::args::{Output, Tree};
use crate::cluster::Management;
use crate::output::{Health, bold, cut, dim, machine, width};
use crate::problem::Problem;

mod inside;
mod management;

/// One thing and what belongs to it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    /// Its kind, or what it is.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// How it is.
    pub health: Health,
    /// What there is to say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// What belongs to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Self>,
}

impl Branch {
    /// Something that is well.
    pub fn new(kind: &str, name: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            name: name.into(),
            health: Health::Good,
            detail: String::new(),
            children: Vec::new(),
        }
    }

    /// How it is, and what there is to say.
    #[must_use]
    pub fn is(mut self, health: Health, detail: impl Into<String>) -> Self {
        self.health = health;
        self.detail = detail.into();
        self
    }

    /// What belongs to it. A parent is as bad as the worst of its children.
    #[must_use]
    pub fn with(mut self, children: Vec<Self>) -> Self {
        let worst = children.iter().map(|c| c.health).max();
        self.health = self.health.max(worst.unwrap_or(Health::Good));
        self.children = children;
        self
    }
}

/// Prints the tree. Ends with 1 when something in it is broken.
pub async fn run(cluster: &Management, args: &Tree) -> Result<ExitCode, Problem> {
    let tenant = cluster.tenant(&args.name).await?;
    let (near, within) = tokio::join!(
        management::look(cluster, &tenant),
        Box::pin(inside::look(cluster, &tenant))
    );
    let name = format!("{}/{}", cluster.namespace, args.name);
    let root = Branch::new("TenantControlPlane", name).with(vec![near, within]);
    if let Some(text) = machine(&root, args.output)? {
        out!("{text}");
    } else {
        let columns = if args.output == Output::Wide {
            usize::MAX
        } else {
            width()
        };
        outln!(
            "{} {}",
            root.health.painted(),
            bold(&format!("{} {}", root.kind, root.name))
        );
        draw(&root.children, "", columns);
    }
    Ok(ExitCode::from(u8::from(root.health == Health::Bad)))
}

fn draw(branches: &[Branch], before: &str, room: usize) {
    for (index, branch) in branches.iter().enumerate() {
        let last = index + 1 == branches.len();
        let (arm, below) = if last {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        };
        let head = format!("{} {}", branch.kind, branch.name);
        let taken = before.chars().count() + 5 + head.trim_end().chars().count();
        let detail = cut(&branch.detail, room.saturating_sub(taken + 2));
        let detail = if detail.is_empty() {
            detail
        } else {
            format!("  {}", dim(&detail))
        };
        outln!(
            "{before}{arm}{} {}{detail}",
            branch.health.painted(),
            head.trim_end()
        );
        draw(&branch.children, &format!("{before}{below}"), room);
    }
}
