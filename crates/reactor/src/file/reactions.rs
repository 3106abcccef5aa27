//! Reads the reactions of a file.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::actions::{self, ActionSpec};
use super::{filters, name};
use crate::change::Event;
use crate::condition::Filter;
use crate::node::{Node, did_you_mean};

/// What is done when an object of a source changes.
#[derive(Debug)]
pub(crate) struct ReactionSpec {
    pub(crate) name: Arc<str>,
    /// The source, by its place in the list.
    pub(crate) source: usize,
    pub(crate) filter: Filter,
    pub(crate) action: ActionSpec,
    pub(crate) concurrency: usize,
    pub(crate) timeout: Duration,
    pub(crate) retry: Retry,
}

/// When a reaction that failed is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    pub(crate) initial: Duration,
    pub(crate) max: Duration,
    /// How often it is tried before the object has to change first; `None` is without end.
    pub(crate) attempts: Option<u32>,
}

impl Default for Retry {
    fn default() -> Self {
        Self { initial: Duration::from_secs(1), max: Duration::from_secs(300), attempts: None }
    }
}

const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn read(
    node: &Node<'_>,
    sources: &[Arc<str>],
    base: &Path,
    names: &mut HashSet<String>,
) -> Option<ReactionSpec> {
    let members =
        node.members(&["name", "on", "events", "filter", "do", "concurrency", "timeout", "retry"])?;
    let name = name(&members, names);
    let source = members.require("on").and_then(|node| on(&node, sources));
    let events = members.get("events").map_or_else(|| Some(Vec::new()), |node| events(&node));
    let conditions = members.get("filter").map_or_else(|| Some(Vec::new()), |node| filters::read(&node));
    let action = members.require("do").and_then(|node| actions::read(&node, base));
    let concurrency = members.get("concurrency").map_or(Some(1), |node| node.count(1, 1000));
    let timeout = members.get("timeout").map_or(Some(TIMEOUT), |node| node.duration());
    let retry = members.get("retry").map_or_else(|| Some(Retry::default()), |node| retry(&node));
    Some(ReactionSpec {
        name: name?.into(),
        source: source?,
        filter: Filter { events: events?, conditions: conditions? },
        action: action?,
        concurrency: usize::try_from(concurrency?).ok()?,
        timeout: timeout?,
        retry: retry?,
    })
}

fn on(node: &Node<'_>, sources: &[Arc<str>]) -> Option<usize> {
    let text = node.text()?;
    let found = sources.iter().position(|name| **name == *text);
    if found.is_none() {
        let names: Vec<&str> = sources.iter().map(|name| &**name).collect();
        node.wrong(format!("there is no source {text:?}{}", did_you_mean(text, &names)));
    }
    found
}

fn events(node: &Node<'_>) -> Option<Vec<Event>> {
    let items = node.items();
    if items.is_empty() && node.value.is_array() {
        node.wrong("is empty: no change would be reacted to");
    }
    let words = Event::ALL.map(Event::word);
    let read = items.iter().map(|item| {
        let word = item.word(&words)?;
        Event::ALL.into_iter().find(|event| event.word() == word)
    });
    let events: Vec<Option<Event>> = read.collect();
    events.into_iter().collect()
}

fn retry(node: &Node<'_>) -> Option<Retry> {
    let members = node.members(&["initial", "max", "attempts"])?;
    let usual = Retry::default();
    let initial = members.get("initial").map_or(Some(usual.initial), |node| node.duration());
    let max = members.get("max").map_or(Some(usual.max), |node| node.duration());
    let attempts = match members.get("attempts") {
        Some(node) => Some(u32::try_from(node.count(1, 1_000_000)?).ok()),
        None => Some(None),
    };
    let (initial, max) = (initial?, max?);
    if max < initial
        && let Some(node) = members.get("max").or_else(|| members.get("initial"))
    {
        node.wrong("the first wait is longer than the longest one");
    }
    Some(Retry { initial, max, attempts: attempts? })
}
