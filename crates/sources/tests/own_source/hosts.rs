use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use watchkeeper_core::{
    Capabilities, Document, Error, Event, Feed, Follow, Key, Order, Reason, Rejection, Source, Start, Version,
};

/// The names in a hosts file, one object each: `{"address": "10.0.0.7"}`.
#[derive(Clone)]
pub struct Hosts {
    path: PathBuf,
    name: String,
}

impl Hosts {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { name: path.display().to_string(), path }
    }
}

impl Source for Hosts {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Order::Opaque, Follow::Poll(Duration::from_secs(5))).confirm_shrink(0.5)
    }

    fn open(&self, start: Start) -> Feed {
        let path = self.path.clone();
        let events = async move {
            match start {
                Start::Resume(_) => vec![Err(Error::Expired("a file has no log".into()))],
                Start::Snapshot(_) => match tokio::fs::read_to_string(&path).await {
                    Ok(text) => snapshot(&text).into_iter().map(Ok).collect(),
                    Err(error) => vec![Err(Error::Missing(format!("{}: {error}", path.display())))],
                },
            }
        };
        Box::pin(stream::once(events).flat_map(stream::iter))
    }
}

/// Everything the file says, from `Begin` to `Complete`.
fn snapshot(text: &str) -> Vec<Event> {
    let mut hosts = BTreeMap::new();
    let mut rejected = Vec::new();
    let mut doubles = HashSet::new();
    for (number, line) in text.lines().enumerate() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(address) = words.next() else { continue };
        for name in words {
            if address.parse::<std::net::IpAddr>().is_err() {
                rejected.push(reject(name, Reason::Unreadable, format!("line {}: no address", number + 1)));
            } else if hosts.insert(name, address).is_some() && doubles.insert(name) {
                rejected.push(reject(name, Reason::Conflict, format!("line {}: again", number + 1)));
            }
        }
    }
    let items = hosts.into_iter().map(|(name, address)| {
        let body = format!(r#"{{"address":"{address}"}}"#).into_bytes();
        Event::Item(Document::named(Key::new(None, name), Version::from(address), body))
    });
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let whole = Version::from(&*format!("h{:x}", hasher.finish()));
    [Event::Begin].into_iter().chain(items).chain(rejected).chain([Event::Complete(whole)]).collect()
}

fn reject(name: &str, reason: Reason, detail: String) -> Event {
    Event::Rejected(Rejection::new(Some(Key::new(None, name)), reason, detail))
}
