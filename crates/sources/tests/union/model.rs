//! Random members that fail in random ways, against a model of what they have.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;
use watchkeeper_core::contract::Memory;
use watchkeeper_core::{ChangeKind, Error, Follow, Key};
use watchkeeper_informer::Informer;
use watchkeeper_sources::union::Union;

#[derive(Clone, Debug)]
enum Step {
    Put(usize, u8),
    Delete(usize, u8),
    /// The feeds of a member end.
    Cut(usize),
    Close(usize),
    /// The next feeds of a member fail.
    Refuse(usize, u8),
    /// A member changes while nobody sees it, and forgets how.
    Rewrite(usize, u8, u8),
    /// A member seems to be empty for a moment.
    Blink(usize),
    Compact(usize),
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let member = 0..4usize;
    let name = 0..6u8;
    prop_oneof![
        6 => (member.clone(), name.clone()).prop_map(|(member, name)| Step::Put(member, name)),
        4 => (member.clone(), name.clone()).prop_map(|(member, name)| Step::Delete(member, name)),
        1 => member.clone().prop_map(Step::Cut),
        1 => member.clone().prop_map(Step::Close),
        1 => (member.clone(), 1..4u8).prop_map(|(member, times)| Step::Refuse(member, times)),
        1 => (member.clone(), name.clone(), name).prop_map(|(member, put, delete)| Step::Rewrite(member, put, delete)),
        1 => member.clone().prop_map(Step::Blink),
        1 => member.prop_map(Step::Compact),
        3 => (0..3000u16).prop_map(Step::Wait),
    ]
}

fn follow() -> impl Strategy<Value = Follow> {
    prop_oneof![Just(Follow::Log), Just(Follow::Hints), Just(Follow::Poll(Duration::from_millis(500)))]
}

fn key(name: u8) -> Key {
    Key::new(None, &format!("n{name}"))
}

/// What each member has, by name.
type Truth = Vec<BTreeMap<Key, u64>>;

async fn play(follows: Vec<Follow>, steps: Vec<Step>) {
    let members: Vec<Memory> = follows.into_iter().map(Memory::following).collect();
    let mut truth: Truth = vec![BTreeMap::new(); members.len()];
    for (at, member) in members.iter().enumerate() {
        // Most of what a member has stays, so that a rewrite is not suspicious.
        for number in 0..8 {
            let still = Key::new(None, &format!("still-{at}-{number}"));
            member.put(&still, 1);
            truth[at].insert(still, 1);
        }
    }
    let union = members.iter().fold(Union::of("union"), |union, member| union.member(member.clone()));
    let informer = Informer::<Value>::builder().start(union);
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    let mut blinked = HashSet::new();
    for (value, step) in steps.into_iter().enumerate() {
        // A second time would confirm the first, if nobody looked in between.
        if let Step::Blink(at) = step
            && !blinked.insert(at % members.len())
        {
            continue;
        }
        apply(&members, &mut truth, step, value as u64 + 10).await;
    }
    let expected: BTreeMap<Key, u64> =
        truth.iter().rev().flatten().map(|(key, value)| (key.clone(), *value)).collect();
    let shown = || -> BTreeMap<Key, u64> {
        let value = |object: &Value| object["spec"]["value"].as_u64().unwrap();
        let list = informer.store().list();
        list.iter().map(|object| (object.key().clone(), value(&object.get().unwrap()))).collect()
    };
    // Back-offs add up.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(3600);
    loop {
        while let Some(change) = changes.try_next() {
            // What blinked is made anew, and so another incarnation.
            let still = |at: &usize| change.key.name().starts_with(&format!("still-{at}-"));
            let still = (0..members.len()).any(|at| still(&at) && !blinked.contains(&at));
            assert!(!still || change.kind() == ChangeKind::Added, "{} {}", change.kind(), change.key);
        }
        if shown() == expected {
            return;
        }
        if tokio::time::timeout_at(deadline, tokio::time::sleep(Duration::from_secs(1))).await.is_err() {
            panic!("the store has {:#?}, the members have {expected:#?}", shown());
        }
    }
}

async fn apply(members: &[Memory], truth: &mut Truth, step: Step, value: u64) {
    let count = members.len();
    let down = Error::Unavailable { answered: true, reason: "down".into() };
    match step {
        Step::Put(at, name) => {
            members[at % count].put(&key(name), value);
            truth[at % count].insert(key(name), value);
        }
        Step::Delete(at, name) => {
            members[at % count].delete(&key(name));
            truth[at % count].remove(&key(name));
        }
        Step::Cut(at) => members[at % count].cut_feeds(&down),
        Step::Close(at) => members[at % count].close_feeds(),
        Step::Refuse(at, times) => (0..times).for_each(|_| members[at % count].refuse_next(down.clone())),
        Step::Rewrite(at, put, delete) => {
            members[at % count].rewrite(|memory| {
                memory.put(&key(put), value);
                memory.delete(&key(delete));
            });
            truth[at % count].insert(key(put), value);
            truth[at % count].remove(&key(delete));
        }
        Step::Blink(at) if !members[at % count].follows_by_log() => {
            let member = &members[at % count];
            let objects: Vec<(Key, u64)> = truth[at % count].clone().into_iter().collect();
            member.rewrite(|memory| objects.iter().for_each(|(key, _)| memory.delete(key)));
            tokio::time::sleep(Duration::from_millis(300)).await;
            member.rewrite(|memory| objects.iter().for_each(|(key, value)| memory.put(key, *value)));
        }
        Step::Blink(_) => {}
        Step::Compact(at) => members[at % count].compact(),
        Step::Wait(milliseconds) => tokio::time::sleep(Duration::from_millis(milliseconds.into())).await,
    }
}

/// Whether a source is believed the first time.
trait FollowsByLog {
    fn follows_by_log(&self) -> bool;
}

impl FollowsByLog for Memory {
    fn follows_by_log(&self) -> bool {
        use watchkeeper_core::Source as _;
        self.capabilities().follow == Follow::Log
    }
}

fn cases() -> u32 {
    let asked = std::env::var("WATCHKEEPER_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).map_or(1000, |cases: u32| cases.min(100_000))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_members_do_the_store_ends_with_what_the_first_of_them_has(
        follows in proptest::collection::vec(follow(), 1..4),
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(follows, steps));
    }
}
