//! Whatever is asked of a storage, in whatever order: it answers as a naive model does, and as it did before it was
//! closed and opened again.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use proptest::prelude::*;
use watchkeeper_storage::{
    Commit, Durability, Embedded, Error, Limits, Memory, Options, Range, Revision, Storage, Update, Watch,
};

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<(u8, Action)>, Option<(u8, Guess)>),
    List {
        prefix: &'static str,
        back: u64,
        limit: usize,
    },
    Get(u8, u64),
    Watch {
        prefix: &'static str,
        back: u64,
    },
    /// Lets the watch with this number say what it has to say.
    Listen(usize),
    Compact(u64),
    /// Packs the past.
    Pack,
    Reopen,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Put(u8),
    Delete,
}

#[derive(Clone, Copy, Debug)]
enum Guess {
    Absent,
    Right,
    Wrong,
}

fn prefix() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["", "/", "/a/", "/b/", "/a/1"][..])
}

fn step() -> impl Strategy<Value = Step> {
    let action = prop_oneof![3 => any::<u8>().prop_map(Action::Put), 1 => Just(Action::Delete)];
    let guess = prop_oneof![1 => Just(Guess::Absent), 3 => Just(Guess::Right), 1 => Just(Guess::Wrong)];
    let operations = prop::collection::btree_map(0..12_u8, action, 1..4);
    let commit = (operations, prop::option::of((0..12_u8, guess)))
        .prop_map(|(operations, guess)| Step::Commit(operations.into_iter().collect(), guess));
    prop_oneof![
        8 => commit,
        2 => (prefix(), 0..20_u64, 0..6_usize).prop_map(|(prefix, back, limit)| Step::List { prefix, back, limit }),
        2 => (0..12_u8, 0..20_u64).prop_map(|(key, back)| Step::Get(key, back)),
        2 => (prefix(), 0..20_u64).prop_map(|(prefix, back)| Step::Watch { prefix, back }),
        3 => (0..8_usize).prop_map(Step::Listen),
        1 => (0..20_u64).prop_map(Step::Compact),
        2 => Just(Step::Pack),
        1 => Just(Step::Reopen),
    ]
}

fn key(number: u8) -> String {
    format!("/{}/{}", ["a", "b", "c"][usize::from(number % 3)], number / 3)
}

/// Value, created, modified.
type Value = (Vec<u8>, Revision, Revision);
type State = BTreeMap<String, Value>;
/// Revision, key, before, after.
type Told = (Revision, String, Option<Value>, Option<Value>);

/// All states there ever were, and all events.
struct Model {
    states: Vec<State>,
    events: Vec<Told>,
    oldest: Revision,
}

impl Model {
    fn revision(&self) -> Revision {
        self.states.len() as u64 - 1
    }

    fn now(&self) -> &State {
        &self.states[self.states.len() - 1]
    }

    fn commit(&mut self, operations: &[(u8, Action)]) {
        let revision = self.revision() + 1;
        let mut state = self.now().clone();
        let mut events = Vec::new();
        for (number, action) in operations {
            let key = key(*number);
            let before = state.get(&key).cloned();
            let after = match action {
                Action::Put(byte) => {
                    let created = before.as_ref().map_or(revision, |before| before.1);
                    Some((vec![*byte; 40], created, revision))
                }
                Action::Delete => None,
            };
            match &after {
                Some(after) => drop(state.insert(key.clone(), after.clone())),
                None => drop(state.remove(&key)),
            }
            if before.is_some() || after.is_some() {
                events.push((revision, key, before, after));
            }
        }
        if !events.is_empty() {
            self.states.push(state);
            self.events.extend(events);
        }
    }

    /// What asking for a revision gives.
    fn check<T>(&self, at: Revision, answer: Result<T, Error>) -> Option<T> {
        match answer {
            Ok(answer) => {
                assert!(self.oldest <= at && at <= self.revision(), "{at} was not refused");
                Some(answer)
            }
            Err(Error::Compacted { oldest }) => {
                assert!(at < self.oldest && oldest == self.oldest, "{at}: compacted to {oldest}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }
}

struct Listener {
    watch: Watch,
    prefix: &'static str,
    told: Revision,
}

/// A storage that can be closed and opened again, or cannot.
trait Backend {
    fn open(&self) -> Arc<dyn Storage>;
    /// Whether closing it keeps what it holds.
    const LASTS: bool;
}

struct InMemory;

fn options() -> Options {
    Options {
        durability: Durability::Relaxed,
        limits: Limits {
            watch_buffer: 3,
            segment_bytes: 600,
            log_bytes: 1500,
            reserved_bytes: 400,
            pack_after: Duration::ZERO,
            pack_bytes: 150,
        },
        ..Options::default()
    }
}

impl Backend for InMemory {
    fn open(&self) -> Arc<dyn Storage> {
        Arc::new(Memory::new(options()))
    }
    const LASTS: bool = false;
}

struct InDirectory(tempfile::TempDir);

impl Backend for InDirectory {
    fn open(&self) -> Arc<dyn Storage> {
        Arc::new(Embedded::open(self.0.path(), options()).unwrap())
    }
    const LASTS: bool = true;
}

fn value(entry: &watchkeeper_storage::Entry) -> Value {
    (entry.value.to_vec(), entry.created, entry.modified)
}

async fn listen(listener: &mut Listener, model: &Model) -> bool {
    listener.watch.request_progress();
    let mut expected = model
        .events
        .iter()
        .filter(|(revision, key, ..)| *revision > listener.told && key.starts_with(listener.prefix));
    loop {
        match listener.watch.next().await {
            Some(Ok(Update::Event(event))) => {
                let told = (
                    event.revision,
                    event.key().to_owned(),
                    event.previous().map(|entry| value(entry)),
                    event.entry().map(|entry| value(entry)),
                );
                assert_eq!(Some(&told), expected.next());
            }
            Some(Ok(Update::Progress(revision))) => {
                assert_eq!(revision, model.revision());
                assert_eq!(expected.next(), None);
                listener.told = revision;
                return true;
            }
            Some(Err(Error::Lagged { oldest })) => {
                assert_eq!(oldest, model.oldest);
                let next = expected.next().map(|(revision, ..)| *revision);
                assert!(listener.told < oldest, "next would have been {next:?}");
                return false;
            }
            other => panic!("{other:?}"),
        }
    }
}

async fn run<B: Backend>(backend: B, steps: Vec<Step>) {
    let mut storage = backend.open();
    let mut model = Model { states: vec![State::new()], events: vec![], oldest: 0 };
    let mut listeners: Vec<Listener> = Vec::new();
    for step in steps {
        match step {
            Step::Commit(operations, guess) => commit(&*storage, &mut model, &operations, guess).await,
            Step::List { prefix, back, limit } => list(&*storage, &model, prefix, back, limit).await,
            Step::Get(number, back) => {
                let at = model.revision().saturating_sub(back);
                let answer = storage.get(&key(number), Some(at)).await;
                if let Some(found) = model.check(at, answer) {
                    let seen = found.entry.map(|entry| value(&entry));
                    assert_eq!(seen.as_ref(), model.states[at as usize].get(&key(number)));
                }
            }
            Step::Watch { prefix, back } => {
                let after = model.revision().saturating_sub(back);
                let answer = storage.watch(prefix, after).await;
                if let Some(watch) = model.check(after, answer) {
                    listeners.push(Listener { watch, prefix, told: after });
                }
            }
            Step::Listen(number) => {
                if let Some(listener) = listeners.get_mut(number)
                    && !listen(listener, &model).await
                {
                    listeners.remove(number);
                }
            }
            Step::Compact(back) => {
                let to = model.revision().saturating_sub(back);
                storage.compact(to).await.unwrap();
                model.oldest = model.oldest.max(to);
            }
            Step::Pack => drop(storage.pack()),
            Step::Reopen if B::LASTS => {
                listeners.clear();
                drop(storage);
                storage = backend.open();
                assert_eq!(storage.stats().revision, model.revision());
                // A restart may forget, and may remember what it was allowed to forget.
                model.oldest = storage.stats().oldest;
            }
            Step::Reopen => {}
        }
        assert_eq!(storage.stats().watchers, listeners.len());
    }
    let page = storage.range(Range::prefix("")).await.unwrap();
    let seen: State = page.entries.iter().map(|entry| (entry.key.to_string(), value(entry))).collect();
    assert_eq!(&seen, model.now());
}

async fn commit(
    storage: &dyn Storage,
    model: &mut Model,
    operations: &[(u8, Action)],
    guess: Option<(u8, Guess)>,
) {
    let mut commit = Commit::new();
    let mut holds = true;
    if let Some((number, guess)) = guess {
        let current = model.now().get(&key(number)).map(|value| value.2);
        (commit, holds) = match guess {
            Guess::Absent => (commit.absent(key(number)), current.is_none()),
            Guess::Right => (commit.unchanged(key(number), current.unwrap_or(1)), current.is_some()),
            Guess::Wrong => (commit.unchanged(key(number), u64::MAX), false),
        };
    }
    for (number, action) in operations {
        commit = match action {
            Action::Put(byte) => commit.put(key(*number), vec![*byte; 40]),
            Action::Delete => commit.delete(key(*number)),
        };
    }
    match storage.commit(commit).await {
        Ok(committed) => {
            assert!(holds);
            model.commit(operations);
            assert_eq!(committed.revision, model.revision());
        }
        Err(Error::Conflict { key, current, revision }) => {
            assert!(!holds);
            assert_eq!(current.map(|entry| value(&entry)).as_ref(), model.now().get(&key));
            assert_eq!(revision, model.revision());
        }
        Err(error) => panic!("{error}"),
    }
}

async fn list(storage: &dyn Storage, model: &Model, prefix: &str, back: u64, limit: usize) {
    let at = model.revision().saturating_sub(back);
    let answer = storage.range(Range::prefix(prefix).at(at).limit(limit)).await;
    let Some(page) = model.check(at, answer) else {
        return;
    };
    let all: Vec<_> = model.states[at as usize].iter().filter(|(key, _)| key.starts_with(prefix)).collect();
    let seen: Vec<_> = page.entries.iter().map(|entry| (entry.key.to_string(), value(entry))).collect();
    let expected: Vec<_> =
        all.iter().take(limit).map(|(key, value)| ((*key).clone(), (*value).clone())).collect();
    assert_eq!(seen, expected);
    assert_eq!((page.more, page.revision), (all.len() > limit, at));
    assert_eq!(page.remaining, Some(all.len().saturating_sub(limit)));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn memory_answers_as_the_model_does(steps in prop::collection::vec(step(), 1..150)) {
        runtime().block_on(run(InMemory, steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn embedded_answers_as_the_model_does(steps in prop::collection::vec(step(), 1..150)) {
        runtime().block_on(run(InDirectory(tempfile::tempdir().unwrap()), steps));
    }
}
