//! Every order in which two replicas can read, write, die and begin anew, while a third party deletes a configuration: no
//! state in which a replica shows a certificate that a configuration would not believe, and from every state one new replica
//! alone brings the rotation to its end.

use std::collections::{HashSet, VecDeque};
use std::time::UNIX_EPOCH;

use super::super::record::Trusted;
use super::*;

const CONFIGURATIONS: usize = 2;
/// A whole rotation, and the beginning of another.
const LAST: u64 = 6;

/// What is stored, with versions.
#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    record: Option<Record>,
    /// `bundle` is empty of one that was created and has no webhooks yet.
    configurations: [Option<(u32, Shown)>; CONFIGURATIONS],
    deletions: u8,
}

/// A replica, between two requests.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Replica {
    /// What it read so far: configurations first, then the record.
    configurations: Vec<Option<(u32, Shown)>>,
    record: Option<Option<Record>>,
    /// Who signed the certificate that it shows, once it is ready.
    leaf: Option<std::sync::Arc<str>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    world: World,
    replicas: [Replica; 2],
}

fn rotation() -> Rotation {
    Rotation { settle: Duration::ZERO, overlap: Duration::from_secs(60), ..Rotation::default() }
}

impl State {
    /// Whether it may be so late that nobody can show the previous authority's certificates: all have heard of the new one.
    fn is_late(&self) -> bool {
        let Some(record) = &self.world.record else { return false };
        self.replicas.iter().all(|replica| {
            let holds = replica.record.iter().flatten().map(|read| &read.current.certificate);
            holds.chain(&replica.leaf).all(|signer| *signer == record.current.certificate)
        })
    }

    /// The next request of a replica.
    fn advance(&self, index: usize) -> Self {
        let (mut next, late) = (self.clone(), self.is_late());
        let State { world, replicas } = &mut next;
        let replica = &mut replicas[index];
        if replica.configurations.len() < CONFIGURATIONS {
            let at = replica.configurations.len();
            replica.configurations.push(world.configurations[at].clone());
        } else if replica.record.is_none() {
            replica.record = Some(world.record.clone());
        } else {
            let read = std::mem::take(replica);
            let record = read.record.clone().flatten();
            replica.leaf = record.as_ref().map(|record| record.current.certificate.clone());
            let believed = |leaf: &std::sync::Arc<str>| {
                read.configurations.iter().flatten().all(|(_, shown)| shown.bundle.contains(&**leaf))
            };
            // One that was ready stays so; one that is new becomes so when it sees that it is believed.
            if read.leaf.is_none() && !replica.leaf.as_ref().is_some_and(believed) {
                replica.leaf = None;
            }
            act(world, &read, record.as_ref(), late, index);
        }
        next
    }
}

/// Decides on what was read, and writes on condition.
fn act(world: &mut World, read: &Replica, record: Option<&Record>, late: bool, index: usize) {
    let since = record.map_or(0, |record| record.since);
    let passed = if late { 60_000 } else { 0 };
    let now = UNIX_EPOCH + Duration::from_millis(since + passed);
    let shown: Vec<_> =
        read.configurations.iter().map(|one| one.as_ref().map(|(_, shown)| shown.clone())).collect();
    let view = View { record, shown: &shown, starting: false, settled_since: None, asked: true, now };
    let unchanged = world.record.as_ref() == record;
    let authority = |sequence: u64| {
        let name = format!("<{sequence}{}>", ["a", "b"][index]);
        Trusted { certificate: name.as_str().into(), key: Some(name.into()) }
    };
    match (step(&view, &rotation()), record) {
        (Step::Create, _) if unchanged => world.record = Some(Record::first(authority(1), 0, now)),
        (Step::Announce, Some(record)) if unchanged && record.sequence < LAST => {
            world.record = Some(record.announced(authority(record.sequence + 1)));
        }
        (Step::Promote, Some(record)) if unchanged => world.record = Some(record.promoted(now)),
        (Step::Drop, Some(record)) if unchanged => world.record = Some(record.dropped()),
        (Step::Publish(at), Some(record)) => {
            let slot = &mut world.configurations[at];
            match (slot.as_ref(), &read.configurations[at]) {
                (None, None) => {
                    let empty = Shown {
                        sequence: 0,
                        is_ours: true,
                        has_drifted: false,
                        in_force: true,
                        bundle: String::new(),
                    };
                    // No version comes twice, also not of an object that was deleted and made again.
                    *slot = Some((u32::from(world.deletions) * 1000, empty));
                }
                (Some((version, _)), Some((seen, _))) if version == seen => {
                    let shown = Shown {
                        sequence: record.sequence,
                        is_ours: true,
                        has_drifted: false,
                        in_force: true,
                        bundle: record.bundle(),
                    };
                    *slot = Some((version + 1, shown));
                }
                _ => {}
            }
        }
        _ => {}
    }
}

/// The configurations that would not believe a replica.
fn failures(state: &State) -> Vec<String> {
    let mut failures = Vec::new();
    for leaf in state.replicas.iter().filter_map(|replica| replica.leaf.as_ref()) {
        for (_, shown) in state.world.configurations.iter().flatten() {
            if !shown.bundle.is_empty() && !shown.bundle.contains(&**leaf) {
                failures.push(format!("{leaf} is shown, and {} is believed", shown.bundle));
            }
        }
    }
    failures
}

/// All that can happen next.
fn successors(state: &State) -> Vec<State> {
    let mut next = Vec::new();
    for index in 0..2 {
        next.push(state.advance(index));
        let mut killed = state.clone();
        killed.replicas[index] = Replica::default();
        next.push(killed);
    }
    if state.world.deletions == 0 {
        for at in 0..CONFIGURATIONS {
            let mut deleted = state.clone();
            deleted.world.configurations[at] = None;
            deleted.world.deletions = 1;
            next.push(deleted);
        }
    }
    next
}

/// One new replica, alone: everything that was begun is brought to its end, and it is believed.
fn is_finished_by_another(state: &State) -> bool {
    let mut state = state.clone();
    state.replicas = [Replica::default(), Replica::default()];
    // Each round is as many requests as there are, and a rotation has three writes of the record and as many publications of each.
    for _ in 0..(CONFIGURATIONS + 2) * 24 {
        state = state.advance(0);
        if !failures(&state).is_empty() {
            return false;
        }
        let Some(record) = &state.world.record else { continue };
        let bundle = record.bundle();
        let shows =
            |one: &Option<(u32, Shown)>| one.as_ref().is_some_and(|(_, shown)| shown.bundle == bundle);
        let believed = state.replicas[0].leaf.as_ref() == Some(&record.current.certificate);
        let ended = record.next.is_none() && record.previous.is_none();
        if ended && believed && state.world.configurations.iter().all(shows) {
            return true;
        }
    }
    false
}

#[test]
fn in_every_order_of_events_certificates_are_believed_and_whoever_dies_is_replaced() {
    let world = World { record: None, configurations: [None, None], deletions: 0 };
    let start = State { world, replicas: [Replica::default(), Replica::default()] };
    let (mut seen, mut queue) = (HashSet::from([start.clone()]), VecDeque::from([start]));
    let mut rotations = 0;
    while let Some(state) = queue.pop_front() {
        assert_eq!(failures(&state), Vec::<String>::new());
        let record = state.world.record.as_ref();
        rotations += usize::from(record.is_some_and(|record| record.previous.is_some()));
        for next in successors(&state) {
            if seen.insert(next.clone()) {
                queue.push_back(next);
            }
        }
    }
    assert!(rotations > 0 && seen.len() > 10_000, "{} states, {rotations} of a rotation", seen.len());
    // The world is what a replica that is new finds, whoever died and when.
    let worlds: HashSet<World> = seen.into_iter().map(|state| state.world).collect();
    for world in worlds {
        let state = State { world, replicas: [Replica::default(), Replica::default()] };
        assert!(is_finished_by_another(&state), "a new replica does not finish what it finds");
    }
}
