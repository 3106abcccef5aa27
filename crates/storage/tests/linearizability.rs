//! Threads read and write at once; afterwards there must be one order of everything that explains all answers.
//!
//! A commit says its revision, a read the revision it stands for: so the order is given, and what is left to check is
//! that it agrees with real time (what had returned before something else was called comes first), and that every
//! answer is what replaying the commits in that order gives.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use futures_executor::block_on;
use futures_util::StreamExt;
use tokio::runtime::{Builder, Runtime};
use watchkeeper_storage::{
    Commit, Embedded, Error, Limits, Memory, Options, Range, Revision, Storage, Update,
};

const THREADS: u64 = 6;
const KEYS: u64 = 3;

/// One call, with the moments before it was made and after it returned on a clock that all threads share.
#[derive(Debug)]
struct Call {
    called: u64,
    returned: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    /// Wrote values; which revision the key of the precondition was seen at before.
    Committed {
        writes: Vec<(String, u64)>,
        expected: Option<(String, Option<Revision>)>,
        revision: Revision,
    },
    /// A precondition did not hold: what was there instead, when.
    Refused {
        key: String,
        found: Option<(Revision, u64)>,
        revision: Revision,
    },
    Read {
        key: String,
        found: Option<(Revision, u64)>,
        revision: Revision,
    },
    Listed {
        found: BTreeMap<String, (Revision, u64)>,
        revision: Revision,
    },
    /// Tried to write values, and does not know what became of it.
    Doubted {
        writes: Vec<(String, u64)>,
        expected: Option<(String, Option<Revision>)>,
    },
}

impl What {
    fn revision(&self) -> Revision {
        match self {
            Self::Committed { revision, .. }
            | Self::Refused { revision, .. }
            | Self::Read { revision, .. }
            | Self::Listed { revision, .. } => *revision,
            Self::Doubted { .. } => 0,
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    String::from_utf8_lossy(bytes).parse().unwrap()
}

fn found(entry: &watchkeeper_storage::Entry) -> (Revision, u64) {
    (entry.modified, number(&entry.value))
}

/// An answer, unless there is none for the time being.
fn unless_unavailable<T>(answer: Result<T, Error>) -> Option<T> {
    match answer {
        Err(Error::Unavailable { .. }) => None,
        answer => Some(answer.unwrap()),
    }
}

/// Of those who doubt, says what became of it, as watchers were told. What may have happened at any time returned at the end of time.
fn resolve(history: &mut Vec<Call>, told: &[(Revision, String, u64)]) {
    history.retain_mut(|call| {
        let What::Doubted { writes, expected } = &mut call.what else { return true };
        let (key, value) = &writes[0];
        let happened = told.iter().find(|(_, told_key, told_value)| (told_key, told_value) == (key, value));
        let Some((revision, ..)) = happened else { return false };
        let (writes, expected) = (std::mem::take(writes), expected.take());
        call.what = What::Committed { writes, expected, revision: *revision };
        call.returned = u64::MAX;
        true
    });
}

/// What one thread does, so many times.
fn act(storage: &dyn Storage, clock: &AtomicU64, thread: u64, calls: u64, seed: u64) -> Vec<Call> {
    let mut random = fastrand::Rng::with_seed(seed * 1000 + thread);
    let mut history = Vec::new();
    let mut seen: BTreeMap<String, Option<Revision>> = BTreeMap::new();
    for call in 0..calls {
        let key = format!("/{}", random.u64(..KEYS));
        let value = thread * calls + call;
        let called = clock.fetch_add(1, SeqCst);
        let what = match random.u32(..4) {
            0 => {
                let Some(answer) = unless_unavailable(block_on(storage.get(&key, None))) else { continue };
                seen.insert(key.clone(), answer.entry.as_ref().map(|entry| entry.modified));
                What::Read { key, found: answer.entry.as_deref().map(found), revision: answer.revision }
            }
            1 => {
                let Some(page) = unless_unavailable(block_on(storage.range(Range::prefix("/")))) else {
                    continue;
                };
                let found = page.entries.iter().map(|entry| (entry.key.to_string(), found(entry))).collect();
                What::Listed { found, revision: page.revision }
            }
            _ => {
                let other = format!("/{}", random.u64(..KEYS));
                let mut commit = Commit::new().put(&*key, value.to_string());
                let mut writes = vec![(key.clone(), value)];
                if other != key && random.bool() {
                    commit = commit.put(&*other, value.to_string());
                    writes.push((other, value));
                }
                let expected = seen.get(&key).copied();
                commit = match expected {
                    Some(Some(modified)) => commit.unchanged(&*key, modified),
                    Some(None) => commit.absent(&*key),
                    None => commit,
                };
                match block_on(storage.commit(commit)) {
                    Ok(committed) => What::Committed {
                        writes,
                        expected: expected.map(|expected| (key, expected)),
                        revision: committed.revision,
                    },
                    Err(Error::Conflict { key, current, revision }) => {
                        seen.insert(key.clone(), current.as_ref().map(|entry| entry.modified));
                        What::Refused { key, found: current.as_deref().map(found), revision }
                    }
                    Err(Error::Unavailable { .. }) => continue,
                    Err(Error::Unknown { .. }) => {
                        What::Doubted { writes, expected: expected.map(|expected| (key, expected)) }
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        };
        let returned = clock.fetch_add(1, SeqCst);
        history.push(Call { called, returned, what });
    }
    history
}

/// Says what is wrong with a history, if anything is.
fn explain(mut history: Vec<Call>, base: Revision) -> Result<u64, String> {
    // Within a revision the commit comes first, then the reads that saw it.
    history.sort_by_key(|call| (call.what.revision(), !matches!(call.what, What::Committed { .. })));
    let mut state: BTreeMap<String, (Revision, u64)> = BTreeMap::new();
    let mut current = base;
    for call in &history {
        match &call.what {
            What::Committed { writes, expected, revision } => {
                if *revision != current + 1 {
                    return Err(format!("revision {revision} after {current}"));
                }
                current = *revision;
                if let Some((key, expected)) = expected
                    && state.get(key).map(|found| found.0) != *expected
                {
                    return Err(format!("{call:?} should have been refused"));
                }
                state.extend(writes.iter().map(|(key, value)| (key.clone(), (*revision, *value))));
            }
            What::Doubted { .. } => return Err(format!("{call:?} was not resolved")),
            What::Refused { key, found, .. } | What::Read { key, found, .. } => {
                if state.get(key) != found.as_ref() {
                    return Err(format!("{call:?}, but there was {:?}", state.get(key)));
                }
            }
            What::Listed { found, .. } => {
                if state != *found {
                    return Err(format!("{call:?}, but there was {state:?}"));
                }
            }
        }
        if call.what.revision() != current {
            return Err(format!("{call:?} stands for a revision that nobody committed"));
        }
    }
    real_time(&history)?;
    Ok(current - base)
}

/// Nothing may stand for an earlier revision than something that had returned before it was called, and a commit must be
/// after everything that had.
fn real_time(history: &[Call]) -> Result<(), String> {
    let mut by_return: Vec<&Call> = history.iter().collect();
    by_return.sort_by_key(|call| call.returned);
    let mut by_call: Vec<&Call> = history.iter().collect();
    by_call.sort_by_key(|call| call.called);
    let mut returned = by_return.into_iter().peekable();
    let mut newest = 0;
    for call in by_call {
        while let Some(earlier) = returned.next_if(|earlier| earlier.returned < call.called) {
            newest = newest.max(earlier.what.revision());
        }
        let too_old = match call.what {
            What::Committed { revision, .. } => revision <= newest,
            _ => call.what.revision() < newest,
        };
        if too_old {
            return Err(format!("{call:?} came after revision {newest} was known"));
        }
    }
    Ok(())
}

/// A change that was told: its revision, its key and its value.
type Told = (Revision, String, u64);

/// A stretch of changes of which nothing was missed: those after one revision, up to another.
struct Stretch {
    after: Revision,
    told: Vec<Told>,
    to: Revision,
}

/// Somebody who sees every change and is not part of what is tested. Gives all changes, once it has been told of the end.
type Observer<'a> = &'a dyn Fn() -> Vec<Told>;

/// Runs all threads, perhaps as if they were a runtime's, and watchers that come and go; gives the number of revisions. The threads take
/// turns with storages that share everything. Without an observer, watchers miss nothing.
fn run(
    storages: &[Arc<dyn Storage>],
    runtime: Option<&Runtime>,
    observer: Option<Observer<'_>>,
    calls: u64,
    seed: u64,
) -> u64 {
    let base = {
        let _inside = runtime.map(Runtime::enter);
        let mut ask = || unless_unavailable(block_on(storages[0].get("/", None)));
        std::iter::repeat_with(&mut ask).flatten().next().unwrap().revision
    };
    let turn = |thread: u64| &*storages[thread as usize % storages.len()];
    let clock = AtomicU64::new(0);
    let (history, told) = thread::scope(|scope| {
        let acting: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (storage, clock) = (turn(thread), &clock);
                scope.spawn(move || {
                    let _inside = runtime.map(Runtime::enter);
                    act(storage, clock, thread, calls, seed)
                })
            })
            .collect();
        let watching: Vec<_> = (0..2)
            .map(|thread| {
                let storage = turn(thread + 1);
                scope.spawn(move || {
                    let _inside = runtime.map(Runtime::enter);
                    watch(storage, base)
                })
            })
            .collect();
        let history: Vec<Call> = acting.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        let _inside = runtime.map(Runtime::enter);
        // Wakes watchers that wait for more than there was. What is still under way comes before it, or never.
        while block_on(storages[0].commit(Commit::new().put("/end", "0"))).is_err() {}
        let told: Vec<_> = watching.into_iter().map(|thread| thread.join().unwrap()).collect();
        (history, told)
    });
    let mut history = history;
    let truth = match observer {
        Some(observer) => observer().into_iter().filter(|(revision, ..)| *revision > base).collect(),
        None => told[0].iter().flat_map(|stretch| stretch.told.clone()).collect::<Vec<_>>(),
    };
    resolve(&mut history, &truth);
    let mut expected: Vec<Told> = Vec::new();
    for call in &history {
        if let What::Committed { writes, revision, .. } = &call.what {
            expected.extend(writes.iter().map(|(key, value)| (*revision, key.clone(), *value)));
        }
    }
    expected.sort_by_key(|(revision, ..)| *revision);
    assert_eq!(truth, expected, "seed {seed}");
    for stretches in told {
        assert!(observer.is_some() || stretches.len() == 1, "seed {seed}: a watcher was left behind");
        for Stretch { after, told, to } in stretches {
            let within = expected.iter().filter(|(revision, ..)| *revision > after && *revision <= to);
            assert_eq!(told, within.cloned().collect::<Vec<_>>(), "seed {seed}: after {after}, up to {to}");
        }
    }
    explain(history, base).unwrap_or_else(|problem| panic!("seed {seed}: {problem}"))
}

/// Where to go on after something was missed.
fn present(storage: &dyn Storage) -> Revision {
    let mut ask = || unless_unavailable(block_on(storage.get("/", None)));
    std::iter::repeat_with(&mut ask).flatten().next().unwrap().revision
}

/// Mailboxes that are soon full, and a past that is packed as soon as it is past.
fn limits() -> Limits {
    Limits { watch_buffer: 4, pack_after: Duration::ZERO, pack_bytes: 100, ..Limits::default() }
}

/// Watches from the beginning, with a new watch every few events, and packs the past before each, until everything has been told. One that was left behind goes on with the
/// present, in another stretch.
fn watch(storage: &dyn Storage, base: Revision) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let (mut since, mut told): (Revision, Vec<Told>) = (base, Vec::new());
    let end = |since, told: &mut Vec<Told>, to| Stretch { after: since, told: std::mem::take(told), to };
    loop {
        let after = told.last().map_or(since, |(revision, ..)| *revision);
        storage.pack();
        let mut watch = match block_on(storage.watch("/", after)) {
            Ok(watch) => watch,
            Err(Error::Unavailable { .. }) => continue,
            Err(Error::Compacted { .. }) => {
                stretches.push(end(since, &mut told, after));
                since = present(storage);
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let (mut fresh, mut progress) = (0, 0);
        loop {
            watch.request_progress();
            let event = match block_on(watch.next()) {
                Some(Ok(Update::Event(event))) => event,
                Some(Err(Error::Lagged { .. })) => {
                    let after = told.last().map_or(since, |(revision, ..)| *revision);
                    stretches.push(end(since, &mut told, after.max(progress)));
                    since = present(storage);
                    break;
                }
                Some(Ok(Update::Progress(revision))) => {
                    progress = revision;
                    // Comes again at once when asked again: others get a turn.
                    thread::yield_now();
                    continue;
                }
                other => panic!("{other:?}"),
            };
            assert!(event.revision > progress, "{event:?} after everything up to {progress} was told");
            if event.key() == "/end" {
                stretches.push(end(since, &mut told, event.revision));
                return stretches;
            }
            // Goes on with a new watch only between revisions.
            if fresh >= 10 && told.last().is_some_and(|(last, ..)| *last < event.revision) {
                break;
            }
            let value = event.entry().map(|entry| number(&entry.value)).unwrap();
            told.push((event.revision, event.key().to_owned(), value));
            fresh += 1;
        }
    }
}

#[test]
fn concurrent_calls_to_memory_have_one_explanation() {
    for seed in 0..10 {
        let options = Options { limits: limits(), ..Options::default() };
        assert!(run(&[Arc::new(Memory::new(options)) as Arc<dyn Storage>], None, None, 400, seed) > 100);
    }
}

#[test]
fn concurrent_calls_to_an_embedded_storage_have_one_explanation() {
    let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for seed in 0..6 {
        // A storage lets those who are inside a runtime write themselves, if it can.
        let runtime = (seed % 2 == 1).then_some(&runtime);
        let directory = tempfile::tempdir().unwrap();
        let limits = Limits { segment_bytes: 1_000, log_bytes: 3_000, reserved_bytes: 500, ..limits() };
        let options = Options { limits, ..Options::default() };
        let storage = Arc::new(Embedded::open(directory.path(), options).unwrap());
        let commits = run(&[Arc::clone(&storage) as Arc<dyn Storage>], runtime, None, 150, seed);
        let stats = storage.stats();
        assert_eq!(stats.commits, commits + 1);
        assert!(stats.syncs < stats.commits, "no commits shared a sync: {stats:?}");
        // Checkpoints are made on the side: one that has begun may need a moment.
        while storage.stats().checkpoints == 0 {
            block_on(storage.commit(Commit::new().put("/more", "1"))).unwrap();
        }
    }
}

/// Three servers of a cluster of one, each with a mirror of its own.
#[cfg(feature = "etcd")]
#[test]
fn concurrent_calls_to_three_mirrors_of_etcd_have_one_explanation() {
    use watchkeeper_etcd::testing::Server;
    use watchkeeper_storage::{Etcd, EtcdOptions};

    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let Some(server) = runtime.block_on(Server::start()).unwrap() else { return };
    for seed in 0..4 {
        let open = |_| {
            let client = server.builder().build().unwrap();
            let options = EtcdOptions {
                prefix: format!("/{seed}"),
                timeout: Duration::from_secs(60),
                may_lead: false,
                ..EtcdOptions::default()
            };
            let storage = Options { limits: limits(), ..Options::default() };
            Arc::new(runtime.block_on(Etcd::open(client, options, storage)).unwrap()) as Arc<dyn Storage>
        };
        let storages: Vec<_> = (0..3).map(open).collect();
        let _inside = runtime.enter();
        assert!(run(&storages, Some(&runtime), None, 100, seed) > 50);
    }
}

/// Ends the chaos, also if something is found out.
#[cfg(feature = "etcd")]
struct Ends<'a>(&'a std::sync::atomic::AtomicBool);

#[cfg(feature = "etcd")]
impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Follows etcd itself, past the proxies and mirrors. Nothing that it has not seen is compacted.
#[cfg(feature = "etcd")]
#[derive(Default)]
struct Witness {
    seen: AtomicU64,
    told: std::sync::Mutex<Vec<Told>>,
    ended: std::sync::atomic::AtomicBool,
}

#[cfg(feature = "etcd")]
impl Witness {
    /// Follows until the end was told.
    async fn follow(&self, client: watchkeeper_etcd::Client, prefix: String) {
        while !self.ended.load(SeqCst) {
            // Whatever goes wrong, it goes on after the last revision of which everything was told.
            let _ = self.stretch(&client, &prefix).await;
        }
    }

    async fn stretch(
        &self,
        client: &watchkeeper_etcd::Client,
        prefix: &str,
    ) -> Result<(), watchkeeper_etcd::Error> {
        use watchkeeper_etcd::{ChangeKind, Keys, Notice, Watch};
        let mut watcher = client.watcher().await?;
        let from = i64::try_from(self.seen.load(SeqCst) + 1).unwrap();
        watcher.watch(&Watch::of(Keys::prefix(format!("{prefix}/"))).from(from).progress()).await?;
        let (mut gathered, mut silent) = (Vec::new(), 0);
        while !self.ended.load(SeqCst) {
            let wait = std::time::Duration::from_millis(200);
            let Ok(notice) = tokio::time::timeout(wait, watcher.next()).await else {
                silent += 1;
                if silent > 10 {
                    watcher.give_up().await;
                    return Ok(());
                }
                watcher.request_progress().await?;
                continue;
            };
            silent = 0;
            match notice? {
                Notice::Changes { changes, complete, .. } => {
                    gathered.extend(changes);
                    if complete {
                        self.take(prefix, std::mem::take(&mut gathered), ChangeKind::Put);
                    }
                }
                Notice::Progress { revision, .. } => {
                    self.seen.fetch_max(u64::try_from(revision).unwrap(), SeqCst);
                }
                Notice::Cancelled { compacted: Some(oldest), .. } => panic!("compacted to {oldest}"),
                Notice::Cancelled { .. } => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    fn take(&self, prefix: &str, changes: Vec<watchkeeper_etcd::Change>, put: watchkeeper_etcd::ChangeKind) {
        for change in changes {
            assert_eq!(change.kind, put, "nothing is deleted here");
            let revision = u64::try_from(change.kv.mod_revision).unwrap();
            let key = String::from_utf8(change.kv.key[prefix.len()..].to_vec()).unwrap();
            match key.as_str() {
                "/end" => self.ended.store(true, SeqCst),
                _ => self.told.lock().unwrap().push((revision, key, number(&change.kv.value))),
            }
            self.seen.fetch_max(revision, SeqCst);
        }
    }
}

/// Three servers over three members. Meanwhile members are killed, stopped for a while, stopped again and again as by a slow disk, cut off from
/// their servers with a word and without one, compacted further than servers have come, defragmented, and told that another one leads. So many
/// rounds as `WATCHKEEPER_CLUSTER_ROUNDS` says, ten by default.
#[cfg(feature = "etcd")]
#[test]
fn whatever_happens_to_a_cluster_there_is_one_explanation() {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;
    use watchkeeper_etcd::Client;
    use watchkeeper_etcd::testing::{Proxy, Server};
    use watchkeeper_storage::{Etcd, EtcdOptions};

    let rounds = std::env::var("WATCHKEEPER_CLUSTER_ROUNDS").ok().and_then(|text| text.parse().ok());
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let Some(members) = runtime.block_on(Server::cluster(3, &[])).unwrap() else { return };
    let proxies: Vec<Proxy> =
        members.iter().map(|member| runtime.block_on(Proxy::to(member.port())).unwrap()).collect();
    for seed in 0..rounds.unwrap_or(10) {
        let open = |first: usize| {
            let endpoints = (0..3).map(|step| proxies[(first + step) % 3].endpoint());
            let client = Client::builder(endpoints).timeout(Duration::from_secs(2)).build().unwrap();
            let options = EtcdOptions {
                prefix: format!("/round-{seed}"),
                timeout: Duration::from_secs(2),
                may_lead: false,
                // Would take a revision.
                compaction_interval: None,
                ..EtcdOptions::default()
            };
            loop {
                let opened = Etcd::open(client.clone(), options.clone(), Options::default());
                match runtime.block_on(opened) {
                    Ok(storage) => return Arc::new(storage) as Arc<dyn Storage>,
                    Err(Error::Unavailable { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        };
        let storages: Vec<_> = (0..3).map(open).collect();
        let witness = Arc::new(Witness::default());
        witness.seen.store(storages[0].stats().revision, SeqCst);
        let following = {
            let client = Client::builder(members.iter().map(Server::endpoint)).build().unwrap();
            let (witness, prefix) = (Arc::clone(&witness), format!("/round-{seed}"));
            runtime.spawn(async move { witness.follow(client, prefix).await })
        };
        let following = std::sync::Mutex::new(Some(following));
        let observer = || {
            runtime.block_on(following.lock().unwrap().take().unwrap()).unwrap();
            witness.told.lock().unwrap().clone()
        };
        let done = AtomicBool::new(false);
        let commits = thread::scope(|scope| {
            let chaos = scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(seed);
                let pause = |random: &mut fastrand::Rng, most| {
                    thread::sleep(Duration::from_millis(random.u64(..most)));
                };
                while !done.load(SeqCst) {
                    let at = random.usize(..3);
                    let (member, proxy) = (&members[at], &proxies[at]);
                    let direct = member.builder().timeout(Duration::from_secs(2)).build().unwrap();
                    match random.u8(..8) {
                        0 => {
                            member.kill();
                            pause(&mut random, 1000);
                            runtime.block_on(member.restart()).unwrap();
                        }
                        1 => {
                            member.pause(true);
                            let most = if random.u8(..4) == 0 { 8000 } else { 3000 };
                            pause(&mut random, most);
                            member.pause(false);
                        }
                        // Whoever writes to a disk that is slow is stopped most of the time.
                        2 => {
                            for _ in 0..20 {
                                member.pause(true);
                                pause(&mut random, 60);
                                member.pause(false);
                                pause(&mut random, 20);
                            }
                        }
                        3 => {
                            proxy.refuse(true);
                            pause(&mut random, 1500);
                            proxy.refuse(false);
                        }
                        // A mirror that is cut off then has to read everything again.
                        4 => {
                            let known = i64::try_from(witness.seen.load(SeqCst)).unwrap();
                            // It may be compacted already, or the member be on its way.
                            let _ = runtime.block_on(direct.compact(known, random.bool()));
                        }
                        5 => {
                            let _ = runtime.block_on(direct.defragment());
                        }
                        // Connections stay, and nobody answers.
                        6 => {
                            proxy.mute(true);
                            pause(&mut random, 5000);
                            let known = i64::try_from(witness.seen.load(SeqCst)).unwrap();
                            if random.bool() {
                                let _ = runtime.block_on(direct.compact(known, false));
                            }
                            proxy.mute(false);
                        }
                        _ => runtime.block_on(async {
                            let Ok(all) = direct.members().await else { return };
                            let to = all[random.usize(..all.len())].id;
                            // Only the one that leads does it.
                            for member in &members {
                                let _ = member.builder().build().unwrap().move_leader(to).await;
                            }
                        }),
                    }
                    pause(&mut random, 1000);
                }
            });
            let ended = Ends(&done);
            let commits = run(&storages, Some(&runtime), Some(&observer), 150, seed);
            drop(ended);
            chaos.join().unwrap();
            commits
        });
        assert!(commits > 50, "{commits}");
    }
}

#[test]
fn histories_without_an_explanation_are_noticed() {
    let commit = |called, returned, key: &str, value, revision| Call {
        called,
        returned,
        what: What::Committed { writes: vec![(key.to_owned(), value)], expected: None, revision },
    };
    let read = |called, returned, found, revision| Call {
        called,
        returned,
        what: What::Read { key: "/0".into(), found, revision },
    };
    let good = || vec![commit(0, 3, "/0", 7, 1), commit(1, 2, "/1", 8, 2), read(4, 5, Some((1, 7)), 2)];
    assert_eq!(explain(good(), 0), Ok(2));
    for (bad, problem) in [
        (commit(6, 7, "/1", 9, 4), "revision 4 after 2"),
        (read(6, 7, Some((1, 7)), 1), "was known"),
        (read(6, 7, None, 2), "but there was"),
        (read(6, 7, Some((1, 7)), 3), "nobody committed"),
    ] {
        let history = good().into_iter().chain([bad]).collect();
        let explained = explain(history, 0).unwrap_err();
        assert!(explained.contains(problem), "{explained}");
    }
}
