//! Reads the file of a Reactor: its sources and reactions.

mod actions;
mod filters;
mod reactions;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use watchkeeper_core::Source;
use watchkeeper_schema::yaml;

use crate::error::Error;
use crate::node::{Found, Members, Node, ON};
use crate::source::Origin;
pub(crate) use actions::{
    ActionSpec, ApplySpec, CommandSpec, ObjectSpec, PostSpec, Program, Secret, Stdin, check_url,
};
pub(crate) use reactions::{ReactionSpec, Retry};

const API_VERSION: &str = "run.watchkeeper.dev/v1alpha1";
const KIND: &str = "Reactor";

/// A reactor file: sources, and reactions to their changes.
///
/// ```yaml
/// apiVersion: run.watchkeeper.dev/v1alpha1
/// kind: Reactor
/// metadata:
///   name: example                # of children in a cluster; [default: reactor]
/// spec:
///   sources:                     # what is watched
///   - name: routes               # small letters, digits and dashes
///     url: file:./routes/        # file:, http:, https:, postgres:, etcd:
///     settings: {by: path}       # what the URL does not say; see source::open
///   - name: widgets
///     apiVersion: example.com/v1 # instead of a URL: a kind of the cluster
///     kind: Widget
///     namespace: shop            # [default: all]
///     labels: app=web            # selectors
///     fields: metadata.name=a
///   reactions:                   # what is done
///   - name: reload
///     on: routes                 # the name of a source
///     events: [added, changed]   # [default: added, changed and gone]
///     filter:                    # all of these have to hold
///     - changed: .spec.port      # differs between old and new
///     - {path: .spec.enabled, equals: true}
///     - {path: .spec.tier, of: old, in: [a, b]}    # of: old, new or newest; equals, notEquals, in, notIn, exists
///     - not: {path: .spec.paused, exists: true}
///     - any: [{...}, {...}]
///     do:                        # one of command, shell, post, apply
///       command: [reload, --name, "${name}"]
///     concurrency: 4             # objects at a time; never two runs of one object [default: 1]
///     timeout: 30s               # [default: 1m]
///     retry: {initial: 1s, max: 5m, attempts: 10}  # [default: 1s, doubling up to 5m, without end]
/// ```
///
/// Paths in the file are relative to the directory that the file is in.
///
/// | `do` | |
/// |---|---|
/// | `command: [program, argument, ...]` | runs a program, without a shell; arguments are templates |
/// | `command: {run: [...], env: {NAME: template}, dir: path, stdin: object}` | the same with more to say; `stdin` is `object`, `change` or `none` |
/// | `shell: text`, `command: {shell: text, ...}` | runs `/bin/sh -c text` |
/// | `post: {url: ..., headers: [...], body: template}` | sends a request; `urlFile` and `urlEnv` are for URLs that are secrets; `method`, `caFile` |
/// | `apply: {objects: [template, ...], adopt: false}` | applies objects to the cluster, and deletes them when their origin goes |
#[derive(Debug)]
pub struct Reactor {
    pub(crate) name: String,
    pub(crate) sources: Vec<SourceSpec>,
    pub(crate) reactions: Vec<ReactionSpec>,
}

#[derive(Debug)]
pub(crate) struct SourceSpec {
    pub(crate) name: Arc<str>,
    pub(crate) origin: Origin,
}

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The field: `spec.reactions[0].on`. Empty for the whole file.
    pub field: String,
    /// The message.
    pub message: String,
}

/// Everything that is wrong with a file, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    file: String,
    mistakes: Vec<Mistake>,
}

impl Mistakes {
    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.mistakes.iter()
    }
}

/// A line for each: `reactor.yaml:12:7: spec.reactions[0].on: there is no source "x"`.
impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Mistake { line, column, field, message }) in self.mistakes.iter().enumerate() {
            let (end, colon) = (if at == 0 { "" } else { "\n" }, if field.is_empty() { "" } else { ": " });
            write!(f, "{end}{}:{line}:{column}: {field}{colon}{message}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

impl Reactor {
    /// Reads the text of a file. `file` is what it is called in messages, `base` the directory that paths in it start from.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, each with its place. Nothing but the text is looked at: no source is asked, no program looked for.
    pub fn read(text: &str, file: &str, base: &Path) -> Result<Self, Mistakes> {
        let mistakes = |mistakes| Err(Mistakes { file: file.to_owned(), mistakes });
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let document = match yaml::read(text) {
            Ok(document) => document,
            Err(misread) => {
                let message = misread.error.to_string();
                // The place is said already, and better.
                let message = message.split_once("yaml: ").map_or(&*message, |(_, rest)| rest);
                let message = match message.split_once(": ") {
                    Some((line, rest)) if line.starts_with("line ") => rest,
                    _ => message,
                };
                let (message, field) = (message.to_owned(), String::new());
                return mistakes(vec![Mistake {
                    line: misread.line,
                    column: misread.column,
                    field,
                    message,
                }]);
            }
        };
        let found = RefCell::new(Vec::new());
        let reactor = read(&Node::root(&document.value, &found), base);
        let places = yaml::places(text);
        let mut all: Vec<Mistake> =
            found.into_inner().into_iter().map(|found| placed(found, &places)).collect();
        all.extend(document.doubled.iter().map(|doubled| Mistake {
            line: doubled.line,
            column: doubled.column,
            field: String::new(),
            message: format!("{} is given twice", doubled.key),
        }));
        if let Some(second) = yaml::documents(text).nth(1) {
            let message = "the file has a second document, which would not be read".to_owned();
            let (line, field) = (second.lines_before + 1, String::new());
            all.push(Mistake { line, column: 1, field, message });
        }
        all.sort_by_key(|mistake| (mistake.line, mistake.column));
        match reactor {
            Some(reactor) if all.is_empty() => Ok(reactor),
            // What cannot be read without anything being wrong would be a mistake of this program.
            _ => mistakes(all),
        }
    }

    /// Takes the objects of a source from elsewhere than its URL, for programs that have a source of their own.
    ///
    /// # Errors
    ///
    /// If the file has no source of this name.
    pub fn with_source(mut self, name: &str, source: impl Source) -> Result<Self, Error> {
        match self.sources.iter_mut().find(|spec| *spec.name == *name) {
            Some(spec) => spec.origin = Origin::Url(Arc::new(source)),
            None => return Err(Error::Input(format!("there is no source {name:?}"))),
        }
        Ok(self)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of sources and the number of reactions.
    pub fn size(&self) -> (usize, usize) {
        (self.sources.len(), self.reactions.len())
    }

    /// Whether it watches kinds of a cluster, or applies objects to one.
    pub fn needs_cluster(&self) -> bool {
        self.sources.iter().any(|source| matches!(source.origin, Origin::Kind(_)))
            || self.reactions.iter().any(|reaction| matches!(reaction.action, ActionSpec::Apply(_)))
    }
}

fn placed(found: Found, places: &yaml::Places) -> Mistake {
    let yaml::Place { line, column } = places.of(&found.pointer);
    let mut field = String::new();
    for part in found.pointer.split('/').skip(1) {
        let part = if part == ON { "on" } else { part }.replace("~1", "/").replace("~0", "~");
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            field.push_str(&format!("[{part}]"));
        } else {
            let dot = if field.is_empty() { "" } else { "." };
            field.push_str(&format!("{dot}{part}"));
        }
    }
    Mistake { line, column, field, message: found.message }
}

fn read(root: &Node<'_>, base: &Path) -> Option<Reactor> {
    let members = root.members(&["apiVersion", "kind", "metadata", "spec"])?;
    if let Some(node) = members.require("apiVersion")
        && let Some(text) = node.text()
        && text != API_VERSION
    {
        node.wrong(format!("has to be {API_VERSION}"));
    }
    if let Some(node) = members.require("kind")
        && let Some(text) = node.text()
        && text != KIND
    {
        node.wrong(format!("has to be {KIND}"));
    }
    let metadata = members.get("metadata").and_then(|node| node.members(&["name", "labels", "annotations"]));
    let name = metadata.and_then(|members| members.get("name"));
    let name = name.map_or_else(|| Some("reactor".to_owned()), |node| label(&node).map(str::to_owned));
    let spec = members.require("spec")?.members(&["sources", "reactions"])?;
    let mut names = HashSet::new();
    let sources: Vec<Option<SourceSpec>> = spec
        .require("sources")
        .map(|node| node.items())
        .unwrap_or_default()
        .iter()
        .map(|node| source(node, base, &mut names))
        .collect();
    // Also those that are wrong in other ways, so that nobody is told that they do not exist.
    let known: Vec<Arc<str>> = names_in_order(&spec);
    let mut names = HashSet::new();
    let reactions: Vec<Option<ReactionSpec>> = spec
        .require("reactions")
        .map(|node| node.items())
        .unwrap_or_default()
        .iter()
        .map(|node| reactions::read(node, &known, base, &mut names))
        .collect();
    for (what, empty) in [("sources", sources.is_empty()), ("reactions", reactions.is_empty())] {
        if let Some(node) = spec.get(what)
            && node.value.as_array().is_some()
            && empty
        {
            node.wrong("is empty: there is nothing to do");
        }
    }
    let sources = sources.into_iter().collect::<Option<_>>()?;
    let reactions = reactions.into_iter().collect::<Option<_>>()?;
    Some(Reactor { name: name?, sources, reactions })
}

fn names_in_order(spec: &Members<'_>) -> Vec<Arc<str>> {
    let sources = spec.get("sources").and_then(|node| node.value.as_array()).into_iter().flatten();
    sources.map(|source| source["name"].as_str().unwrap_or_default().into()).collect()
}

fn source(node: &Node<'_>, base: &Path, names: &mut HashSet<String>) -> Option<SourceSpec> {
    let members =
        node.members(&["name", "url", "settings", "apiVersion", "kind", "namespace", "labels", "fields"])?;
    let name = name(&members, names);
    let origin = crate::source::read(&members, base);
    Some(SourceSpec { name: name?.into(), origin: origin? })
}

/// The name of a source or a reaction, which no other has.
fn name(members: &Members<'_>, names: &mut HashSet<String>) -> Option<String> {
    let node = members.require("name")?;
    let name = label(&node)?;
    if !names.insert(name.to_owned()) {
        node.wrong(format!("{name:?} is the name of another one already"));
        return None;
    }
    Some(name.to_owned())
}

/// A name that can be a label in a cluster.
fn label<'a>(node: &Node<'a>) -> Option<&'a str> {
    let text = node.text()?;
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.len() > 40 || !text.bytes().all(fits) || text.starts_with('-') || text.ends_with('-') {
        node.wrong("has to be a name of up to 40 small letters, digits and dashes, such as web-1");
        return None;
    }
    Some(text)
}
