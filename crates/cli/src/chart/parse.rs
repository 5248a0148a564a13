//! Template text into a tree.
//!
//! Owns the grammar: actions with their trimming, blocks, pipelines. Nothing is
//! looked up here.

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// As it stands.
    Text(String),
    /// `{{ pipeline }}`.
    Output(Pipeline),
    /// `{{ $x := pipeline }}`, or `=`.
    Assign(String, Pipeline),
    /// `{{ if }} … {{ else if }} … {{ else }} … {{ end }}`.
    If(Vec<(Pipeline, Vec<Self>)>, Vec<Self>),
    /// `{{ with }}`.
    With(Pipeline, Vec<Self>, Vec<Self>),
    /// `{{ range }}`.
    Range(Pipeline, Vec<Self>, Vec<Self>),
    /// `{{ define "name" }}`.
    Define(String, Vec<Self>),
}

/// Commands, each given the result of the one before as its last argument.
pub(super) type Pipeline = Vec<Vec<Term>>;

/// A word of a command.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    /// A string, number, boolean or nil.
    Literal(serde_json::Value),
    /// `.a.b`: fields of the dot.
    Field(Vec<String>),
    /// `$x.a.b`; the root is the variable with the empty name.
    Variable(String, Vec<String>),
    /// A function.
    Function(String),
    /// `( pipeline )`.
    Group(Pipeline),
}

enum Piece {
    Text(String),
    Action(String),
}

/// Parses a whole file.
pub(super) fn parse(text: &str) -> Result<Vec<Node>, String> {
    let mut pieces = pieces(text)?.into_iter();
    let (nodes, end) = block(&mut pieces)?;
    match end {
        Closed::File => Ok(nodes),
        _ => Err("an end or else without its beginning".to_owned()),
    }
}

/// Cuts text and actions apart, and takes away the space that `{{-` and `-}}` ask for.
fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut all = Vec::new();
    let mut rest = text;
    let mut trim_next = false;
    loop {
        let (before, action) = match rest.split_once("{{") {
            Some((before, after)) => (before, Some(after)),
            None => (rest, None),
        };
        let mut before = if trim_next {
            before.trim_start()
        } else {
            before
        };
        let Some(after) = action else {
            all.push(Piece::Text(before.to_owned()));
            return Ok(all);
        };
        let after = match after.strip_prefix("- ") {
            Some(inner) => {
                before = before.trim_end();
                inner
            }
            None => after,
        };
        if !before.is_empty() {
            all.push(Piece::Text(before.to_owned()));
        }
        let end = after.find("}}").ok_or("an action without its end")?;
        let inner = &after[..end];
        trim_next = inner.ends_with(" -") || inner.ends_with("*/-");
        let inner = if trim_next {
            &inner[..inner.len() - 1]
        } else {
            inner
        };
        if !inner.trim().starts_with("/*") {
            all.push(Piece::Action(inner.trim().to_owned()));
        }
        rest = &after[end + 2..];
    }
}

/// What a block ended with.
enum Closed {
    File,
    End,
    Else(String),
}

fn block(pieces: &mut dyn Iterator<Item = Piece>) -> Result<(Vec<Node>, Closed), String> {
    let mut nodes = Vec::new();
    while let Some(piece) = pieces.next() {
        let action = match piece {
            Piece::Text(text) => {
                nodes.push(Node::Text(text));
                continue;
            }
            Piece::Action(action) => action,
        };
        let (word, rest) = action
            .split_once(char::is_whitespace)
            .unwrap_or((&action, ""));
        let rest = rest.trim();
        match word {
            "end" => return Ok((nodes, Closed::End)),
            "else" => return Ok((nodes, Closed::Else(rest.to_owned()))),
            "if" => nodes.push(condition(pieces, rest)?),
            "with" => {
                let (body, otherwise) = two(pieces)?;
                nodes.push(Node::With(pipeline(rest)?, body, otherwise));
            }
            "range" => {
                let (body, otherwise) = two(pieces)?;
                nodes.push(Node::Range(pipeline(rest)?, body, otherwise));
            }
            "define" => {
                let (body, _) = two(pieces)?;
                nodes.push(Node::Define(rest.trim_matches('"').to_owned(), body));
            }
            _ => nodes.push(simple(&action)?),
        }
    }
    Ok((nodes, Closed::File))
}

fn two(pieces: &mut dyn Iterator<Item = Piece>) -> Result<(Vec<Node>, Vec<Node>), String> {
    match block(pieces)? {
        (body, Closed::End) => Ok((body, Vec::new())),
        (body, Closed::Else(more)) if more.is_empty() => match block(pieces)? {
            (otherwise, Closed::End) => Ok((body, otherwise)),
            _ => Err("an else without its end".to_owned()),
        },
        _ => Err("a block without its end".to_owned()),
    }
}

fn condition(pieces: &mut dyn Iterator<Item = Piece>, first: &str) -> Result<Node, String> {
    let mut arms = Vec::new();
    let mut asked = first.to_owned();
    loop {
        let (body, end) = block(pieces)?;
        arms.push((pipeline(&asked)?, body));
        match end {
            Closed::End => return Ok(Node::If(arms, Vec::new())),
            Closed::File => return Err("an if without its end".to_owned()),
            Closed::Else(more) => match more.strip_prefix("if ") {
                Some(next) => next.clone_into(&mut asked),
                None => {
                    return match block(pieces)? {
                        (otherwise, Closed::End) => Ok(Node::If(arms, otherwise)),
                        _ => Err("an else without its end".to_owned()),
                    };
                }
            },
        }
    }
}

fn simple(action: &str) -> Result<Node, String> {
    if let Some(name) = action.strip_prefix('$') {
        let assigned = name.split_once(":=").or_else(|| name.split_once(" = "));
        if let Some((name, value)) = assigned
            && name.trim().chars().all(|c| c.is_alphanumeric() || c == '_')
        {
            return Ok(Node::Assign(name.trim().to_owned(), pipeline(value)?));
        }
    }
    Ok(Node::Output(pipeline(action)?))
}

fn pipeline(text: &str) -> Result<Pipeline, String> {
    let mut rest = text;
    let found = commands(&mut rest)?;
    if rest.trim().is_empty() {
        Ok(found)
    } else {
        Err(format!("{text}: a bracket too many"))
    }
}

/// Reads up to a closing bracket or the end.
fn commands(rest: &mut &str) -> Result<Pipeline, String> {
    let mut all = Vec::new();
    let mut command = Vec::new();
    loop {
        *rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            break;
        };
        match first {
            ')' => break,
            '|' => {
                *rest = &rest[1..];
                all.push(std::mem::take(&mut command));
            }
            '(' => {
                *rest = &rest[1..];
                let inner = commands(rest)?;
                *rest = rest.strip_prefix(')').ok_or("a bracket is not closed")?;
                command.push(Term::Group(inner));
            }
            '"' => command.push(Term::Literal(quoted(rest)?.into())),
            _ => command.push(word(rest)),
        }
    }
    all.push(command);
    if all.iter().any(Vec::is_empty) {
        return Err("an empty command".to_owned());
    }
    Ok(all)
}

fn quoted(rest: &mut &str) -> Result<String, String> {
    let mut out = String::new();
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match (escaped, c) {
            (true, 'n') => out.push('\n'),
            (false, '\\') => {}
            (false, '"') => {
                *rest = &rest[at + 1..];
                return Ok(out);
            }
            (_, other) => out.push(other),
        }
        escaped = !escaped && c == '\\';
    }
    Err("a string is not closed".to_owned())
}

fn word(rest: &mut &str) -> Term {
    let end = rest
        .find(|c: char| c.is_whitespace() || matches!(c, ')' | '(' | '|'))
        .unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    *rest = after;
    let path = |text: &str| -> Vec<String> {
        text.split('.')
            .filter(|p| !p.is_empty())
            .map(str::to_owned)
            .collect()
    };
    if let Some(fields) = word.strip_prefix('.') {
        return Term::Field(path(fields));
    }
    if let Some(variable) = word.strip_prefix('$') {
        let (name, fields) = variable.split_once('.').unwrap_or((variable, ""));
        return Term::Variable(name.to_owned(), path(fields));
    }
    match word {
        "true" => Term::Literal(true.into()),
        "false" => Term::Literal(false.into()),
        "nil" => Term::Literal(serde_json::Value::Null),
        _ => match word.parse::<i64>() {
            Ok(number) => Term::Literal(number.into()),
            Err(_) => Term::Function(word.to_owned()),
        },
    }
}
