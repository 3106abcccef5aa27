//! A union holds the contract of a source, whatever its members are.

use std::fs;
use std::path::{Path, PathBuf};

use watchkeeper_core::contract::{Memory, World, check};
use watchkeeper_core::{Follow, Key, Source};
use watchkeeper_sources::channel::{Sender, channel};
use watchkeeper_sources::files::Files;
use watchkeeper_sources::union::Union;

/// Objects of some names are in a channel, the others wherever the function puts them.
struct Pair<F> {
    union: Union,
    sender: Sender,
    other: F,
    expires: bool,
    /// Where the others are, if they are files.
    directory: Option<PathBuf>,
}

/// The suite looks at the order of changes of `b` and `e`, which only one member has an order of.
fn is_in_channel(name: &str) -> bool {
    matches!(name, "b" | "e" | "f" | "many")
}

impl<F: Fn(&str, Option<u64>)> World for Pair<F> {
    fn source(&self) -> impl Source {
        self.union.clone()
    }

    async fn put(&self, name: &str, value: u64) {
        if is_in_channel(name) {
            self.sender.put(&Key::new(None, name), &value).unwrap();
        } else {
            (self.other)(name, Some(value));
        }
    }

    async fn delete(&self, name: &str) {
        if is_in_channel(name) {
            self.sender.remove(&Key::new(None, name));
        } else {
            (self.other)(name, None);
        }
    }

    async fn expire(&self) -> bool {
        for value in 0..5000 {
            self.sender.put(&Key::new(None, "many"), &value).unwrap();
        }
        self.expires
    }

    async fn corrupt(&self, name: &str) -> bool {
        let Some(directory) = self.directory.as_ref().filter(|_| !is_in_channel(name)) else { return false };
        write(directory, name, "[");
        true
    }

    fn has_statuses(&self) -> bool {
        self.directory.is_some()
    }
}

fn write(directory: &Path, name: &str, value: &str) {
    let text = format!("apiVersion: e.com/v1\nkind: Route\nmetadata: {{name: {name}}}\nvalue: {value}\n");
    fs::write(directory.join(".new"), text).unwrap();
    fs::rename(directory.join(".new"), directory.join(format!("{name}.yaml"))).unwrap();
}

#[tokio::test]
async fn a_union_of_channels_holds_the_contract_of_a_log() {
    for channel_first in [true, false] {
        let (sender, first) = channel("first");
        let (others, second) = channel("second");
        let other = move |name: &str, value: Option<u64>| match value {
            Some(value) => others.put(&Key::new(None, name), &value).unwrap(),
            None => drop(others.remove(&Key::new(None, name))),
        };
        let union = Union::of("both");
        let union = if channel_first {
            union.member(first).member(second)
        } else {
            union.member(second).member(first)
        };
        let kept = check(&Pair { union, sender, other, expires: true, directory: None }).await.unwrap();
        assert_eq!(kept.len(), 7, "{kept:?}");
    }
}

#[tokio::test]
async fn a_union_of_a_channel_and_files_holds_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let other = move |name: &str, value: Option<u64>| match value {
        Some(value) => write(&path, name, &value.to_string()),
        None => fs::remove_file(path.join(format!("{name}.yaml"))).unwrap(),
    };
    let (sender, first) = channel("first");
    let files = Files::directory(directory.path()).kind("e.com/v1", "Route");
    let files = files.status_directory(directory.path().join(".status"));
    let union = Union::of("both").member(first).member(files);
    let directory = Some(directory.path().to_owned());
    let kept = check(&Pair { union, sender, other, expires: false, directory }).await.unwrap();
    assert_eq!(kept.len(), 6, "{kept:?}");
}

#[tokio::test(start_paused = true)]
async fn a_union_of_one_is_that_one_however_it_follows() {
    for (follow, promises) in
        [(Follow::Log, 8), (Follow::Hints, 6), (Follow::Poll(std::time::Duration::from_secs(1)), 6)]
    {
        let memory = Memory::following(follow);
        let union = Union::of("one").member(memory.clone());
        let kept = check(&Alone { memory, union }).await.unwrap();
        assert_eq!(kept.len(), promises, "{follow:?}: {kept:?}");
    }
}

struct Alone {
    memory: Memory,
    union: Union,
}

impl World for Alone {
    fn source(&self) -> impl Source {
        self.union.clone()
    }

    async fn put(&self, name: &str, value: u64) {
        World::put(&self.memory, name, value).await;
    }

    async fn delete(&self, name: &str) {
        World::delete(&self.memory, name).await;
    }

    async fn expire(&self) -> bool {
        self.memory.expire().await
    }

    async fn corrupt(&self, name: &str) -> bool {
        World::corrupt(&self.memory, name).await
    }
}
