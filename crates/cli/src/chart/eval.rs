//! A tree into text.
//!
//! Owns variables, the dot, and the named templates. What functions do is next door.

use std::collections::BTreeMap;

use serde_json::Value;

use super::functions;
use super::parse::{Node, Pipeline, Term};

/// What templates know of each other: the named ones.
#[derive(Debug, Default)]
pub struct Scope {
    named: BTreeMap<String, Vec<Node>>,
}

/// Variables, innermost last. The root is the one with the empty name.
type Variables = Vec<(String, Value)>;

impl Scope {
    /// Renders a file; what it defines stays known.
    pub(super) fn render(&mut self, nodes: &[Node], root: &Value) -> Result<String, String> {
        for node in nodes {
            if let Node::Define(name, body) = node {
                self.named.insert(name.clone(), body.clone());
            }
        }
        self.text(nodes, root, &mut vec![(String::new(), root.clone())])
    }

    /// Renders a named template.
    pub(super) fn include(&self, name: &str, dot: &Value) -> Result<String, String> {
        let body = self
            .named
            .get(name)
            .ok_or_else(|| format!("there is no template {name}"))?;
        self.text(body, dot, &mut vec![(String::new(), dot.clone())])
    }

    fn text(&self, nodes: &[Node], dot: &Value, known: &mut Variables) -> Result<String, String> {
        let depth = known.len();
        let mut out = String::new();
        for node in nodes {
            match node {
                Node::Text(text) => out.push_str(text),
                Node::Define(..) => {}
                Node::Output(pipeline) => {
                    out.push_str(&functions::print(&self.value(pipeline, dot, known)?));
                }
                Node::Assign(name, pipeline) => {
                    let value = self.value(pipeline, dot, known)?;
                    known.push((name.clone(), value));
                }
                Node::If(arms, otherwise) => {
                    out.push_str(&self.choose(arms, otherwise, dot, known)?);
                }
                Node::With(pipeline, body, otherwise) => {
                    let value = self.value(pipeline, dot, known)?;
                    out.push_str(&if functions::truth(&value) {
                        self.text(body, &value, known)?
                    } else {
                        self.text(otherwise, dot, known)?
                    });
                }
                Node::Range(pipeline, body, otherwise) => {
                    let items = match self.value(pipeline, dot, known)? {
                        Value::Array(items) => items,
                        Value::Object(map) => map.into_iter().map(|(_, v)| v).collect(),
                        _ => Vec::new(),
                    };
                    if items.is_empty() {
                        out.push_str(&self.text(otherwise, dot, known)?);
                    }
                    for item in &items {
                        out.push_str(&self.text(body, item, known)?);
                    }
                }
            }
        }
        known.truncate(depth);
        Ok(out)
    }

    fn choose(
        &self,
        arms: &[(Pipeline, Vec<Node>)],
        otherwise: &[Node],
        dot: &Value,
        known: &mut Variables,
    ) -> Result<String, String> {
        for (asked, body) in arms {
            if functions::truth(&self.value(asked, dot, known)?) {
                return self.text(body, dot, known);
            }
        }
        self.text(otherwise, dot, known)
    }

    fn value(&self, pipeline: &Pipeline, dot: &Value, known: &Variables) -> Result<Value, String> {
        let mut passed = None;
        for command in pipeline {
            passed = Some(self.command(command, passed, dot, known)?);
        }
        Ok(passed.unwrap_or_default())
    }

    fn command(
        &self,
        command: &[Term],
        passed: Option<Value>,
        dot: &Value,
        known: &Variables,
    ) -> Result<Value, String> {
        let Some((first, rest)) = command.split_first() else {
            return Ok(Value::Null);
        };
        let mut arguments = Vec::with_capacity(rest.len() + 1);
        for term in rest {
            arguments.push(self.term(term, dot, known)?);
        }
        arguments.extend(passed);
        match first {
            Term::Function(name) => functions::call(self, name, &arguments),
            Term::Variable(name, fields) if has(fields) => {
                let list = at(&variable(name, known)?, &fields[..fields.len() - 1]);
                Ok(functions::contains(&list, arguments.first()).into())
            }
            Term::Field(fields) if has(fields) => {
                let list = at(dot, &fields[..fields.len() - 1]);
                Ok(functions::contains(&list, arguments.first()).into())
            }
            _ if arguments.is_empty() => self.term(first, dot, known),
            _ => Err("a value is used like a function".to_owned()),
        }
    }

    fn term(&self, term: &Term, dot: &Value, known: &Variables) -> Result<Value, String> {
        match term {
            Term::Literal(value) => Ok(value.clone()),
            Term::Field(fields) => Ok(at(dot, fields)),
            Term::Variable(name, fields) => Ok(at(&variable(name, known)?, fields)),
            Term::Function(name) => functions::call(self, name, &[]),
            Term::Group(pipeline) => self.value(pipeline, dot, known),
        }
    }
}

/// `.Capabilities.APIVersions.Has` is the only method the chart calls.
fn has(fields: &[String]) -> bool {
    fields.len() > 1 && fields.last().is_some_and(|f| f == "Has")
}

fn variable(name: &str, known: &Variables) -> Result<Value, String> {
    let found = known.iter().rev().find(|(n, _)| n == name);
    found
        .map(|(_, v)| v.clone())
        .ok_or_else(|| format!("there is no variable ${name}"))
}

fn at(value: &Value, fields: &[String]) -> Value {
    let found = fields
        .iter()
        .try_fold(value, |inner, field| inner.get(field));
    found.cloned().unwrap_or_default()
}
