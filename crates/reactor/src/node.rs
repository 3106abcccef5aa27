//! Reads the members of a file one by one, and collects errors with their JSON pointers.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use watchkeeper_core::text::distance;

/// What a member called `on` without quotes is called once it was read.
pub(crate) const ON: &str = "true";

/// What is wrong, and at which JSON pointer.
pub(crate) struct Found {
    pub(crate) pointer: String,
    pub(crate) message: String,
}

/// A value of the file, and where it is. What is wrong with it goes to a list that all nodes share, so that a reader hears of
/// everything at once.
#[derive(Clone)]
pub(crate) struct Node<'a> {
    pub(crate) value: &'a Value,
    pointer: String,
    found: &'a RefCell<Vec<Found>>,
}

/// The members of an object.
#[derive(Clone)]
pub(crate) struct Members<'a> {
    node: Node<'a>,
    members: &'a Map<String, Value>,
}

impl<'a> Node<'a> {
    pub(crate) fn root(value: &'a Value, found: &'a RefCell<Vec<Found>>) -> Self {
        Self::at(value, String::new(), found)
    }

    pub(crate) fn at(value: &'a Value, pointer: String, found: &'a RefCell<Vec<Found>>) -> Self {
        Self { value, pointer, found }
    }

    /// Notes that this is wrong.
    pub(crate) fn wrong(&self, message: impl Into<String>) {
        self.wrong_below("", message);
    }

    /// Notes that something below this is wrong.
    pub(crate) fn wrong_below(&self, pointer: &str, message: impl Into<String>) {
        let pointer = format!("{}{pointer}", self.pointer);
        self.found.borrow_mut().push(Found { pointer, message: message.into() });
    }

    /// Another value in the place of this one, for what is wrong with it.
    pub(crate) fn with<'b>(&self, value: &'b Value) -> Node<'b>
    where
        'a: 'b,
    {
        Node { value, pointer: self.pointer.clone(), found: self.found }
    }

    fn expected(&self, what: &str) {
        self.wrong(format!("has to be {what}, and is {}", kind_of(self.value)));
    }

    pub(crate) fn text(&self) -> Option<&'a str> {
        match self.value {
            Value::String(text) if text.is_empty() => self.wrong("is empty"),
            Value::String(text) => return Some(text),
            _ => self.expected("a text"),
        }
        None
    }

    pub(crate) fn bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => return Some(*value),
            Value::String(text) if text == "true" || text == "false" => return Some(text == "true"),
            _ => self.expected("true or false"),
        }
        None
    }

    /// A number from `least` to `most`.
    pub(crate) fn count(&self, least: u64, most: u64) -> Option<u64> {
        let number = match self.value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.wrong(format!("has to be a number from {least} to {most}"));
        }
        number
    }

    /// A path, from the directory of the file.
    pub(crate) fn path(&self, base: &Path) -> Option<PathBuf> {
        self.text().map(|text| base.join(text))
    }

    /// A duration as Go writes it, longer than nothing.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let nanos = self.value.as_str().and_then(|text| watchkeeper_go::duration::parse(text).ok());
        let duration = nanos.and_then(|nanos| u64::try_from(nanos).ok()).map(Duration::from_nanos);
        let duration = duration.filter(|duration| !duration.is_zero());
        if duration.is_none() {
            self.wrong("has to be a duration such as 90s, 5m or 1h30m");
        }
        duration
    }

    /// One of some words.
    pub(crate) fn word(&self, words: &[&'static str]) -> Option<&'static str> {
        let text = self.text()?;
        let word = words.iter().find(|word| **word == text);
        if word.is_none() {
            let near = nearest(text, words).map(|word| format!("; did you mean {word}?")).unwrap_or_default();
            self.wrong(format!("{text:?} is not one of {}{near}", words.join(", ")));
        }
        word.copied()
    }

    pub(crate) fn items(&self) -> Vec<Node<'a>> {
        match self.value {
            Value::Array(items) => {
                let node = |(at, value)| Self::at(value, format!("{}/{at}", self.pointer), self.found);
                items.iter().enumerate().map(node).collect()
            }
            _ => {
                self.expected("a list");
                Vec::new()
            }
        }
    }

    /// The members of an object that has no other members than these.
    pub(crate) fn members(&self, known: &[&'static str]) -> Option<Members<'a>> {
        let members = self.any_members()?;
        let is_known = |name: &String| known.contains(&if name == ON { "on" } else { name.as_str() });
        for name in members.members.keys().filter(|name| !is_known(name)) {
            members.node.wrong_below(
                &format!("/{}", escaped(name)),
                format!("is not known here{}", did_you_mean(name, known)),
            );
        }
        Some(members)
    }

    /// The members of an object, whatever their names.
    pub(crate) fn any_members(&self) -> Option<Members<'a>> {
        match self.value {
            Value::Object(members) => Some(Members { node: self.clone(), members }),
            _ => {
                self.expected("an object");
                None
            }
        }
    }
}

impl<'a> Members<'a> {
    pub(crate) fn get(&self, name: &str) -> Option<Node<'a>> {
        // In YAML as Kubernetes reads it, a plain `on` is the word for true.
        let name = if name == "on" && !self.members.contains_key(name) { ON } else { name };
        let value = self.members.get(name)?;
        let pointer = format!("{}/{}", self.node.pointer, escaped(name));
        Some(Node { value, pointer, found: self.node.found })
    }

    /// A member that has to be there.
    pub(crate) fn require(&self, name: &str) -> Option<Node<'a>> {
        let found = self.get(name);
        if found.is_none() {
            self.node.wrong(format!("{name} is missing"));
        }
        found
    }

    /// All members, by name.
    pub(crate) fn all(&self) -> Vec<(&'a str, Node<'a>)> {
        self.members.keys().filter_map(|name| Some((name.as_str(), self.get(name)?))).collect()
    }

    /// The one of these members that is there; it is wrong if there is none, or another one.
    pub(crate) fn one_of(&self, names: &[&'static str]) -> Option<(&'static str, Node<'a>)> {
        let mut there = names.iter().filter_map(|&name| Some((name, self.get(name)?)));
        match (there.next(), there.next()) {
            (Some(found), None) => return Some(found),
            (Some((first, _)), Some((second, node))) => {
                node.wrong(format!(
                    "cannot be beside {first}: one of {} is wanted, not {second} as well",
                    names.join(", ")
                ));
            }
            (None, _) => self.node.wrong(format!("one of {} is missing", names.join(", "))),
        }
        None
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// `; did you mean concurrency?`
pub(crate) fn did_you_mean(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(word) => format!("; did you mean {word}?"),
        None if known.is_empty() => String::new(),
        None => format!("; known are {}", known.join(", ")),
    }
}

/// The one of some words that a name is not far from.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let close = known.iter().map(|word| (distance(&name, &word.to_lowercase()), *word));
    close.min().filter(|(far, word)| *far <= (word.len() / 3).max(1)).map(|(_, word)| word)
}
