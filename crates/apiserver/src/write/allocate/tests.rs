use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Few numbers, so that writers get into each other's way.
const NUMBERS: u32 = 6;

fn allocator() -> Allocator {
    Allocator::new((0..NUMBERS, 2), (0..NUMBERS, 0))
}

fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(number)
}

/// What the allocator holds, each number with how many hold it.
fn held(allocator: &Allocator) -> (BTreeMap<u32, u32>, BTreeMap<u32, u32>) {
    let state = allocator.0.lock();
    let sorted = |pool: &Pool| pool.holders.iter().map(|(number, count)| (*number, *count)).collect();
    (sorted(&state.addresses), sorted(&state.ports))
}

#[test]
fn a_number_that_is_reserved_is_nobody_elses_until_the_reservation_is_dropped() {
    let allocator = allocator();
    let mut first = allocator.reserve(false);
    let mut second = allocator.reserve(false);
    assert_eq!(first.take_address(address(3)), Ok(()));
    assert_eq!(second.take_address(address(3)), Err(Refusal::Taken));
    assert_eq!(first.take_address(address(3)), Err(Refusal::Taken), "not even twice");
    assert_eq!(second.take_address(address(NUMBERS)), Err(Refusal::OutOfRange));
    assert_eq!(second.take_port(3), Ok(()), "ports are other numbers than addresses");
    assert_eq!(second.take_port(-1), Err(Refusal::OutOfRange));
    drop(first);
    assert_eq!(second.take_address(address(3)), Ok(()));
    drop(second);
    assert_eq!(held(&allocator), Default::default());
}

#[test]
fn what_nobody_asked_for_comes_from_the_upper_part_until_that_is_full() {
    let allocator = allocator();
    let mut reservation = allocator.reserve(false);
    let given: BTreeSet<u32> = (2..NUMBERS).map(|_| reservation.any_address().unwrap().to_bits()).collect();
    assert_eq!(given, (2..NUMBERS).collect());
    let rest: BTreeSet<u32> = (0..2).map(|_| reservation.any_address().unwrap().to_bits()).collect();
    assert_eq!(rest, (0..2).collect());
    assert_eq!(reservation.any_address(), Err(Refusal::Full));
}

#[test]
fn a_dry_run_finds_out_what_is_free_and_takes_nothing() {
    let allocator = allocator();
    let mut dry = allocator.reserve(true);
    assert_eq!(dry.take_address(address(1)), Ok(()));
    assert_eq!(dry.take_address(address(1)), Err(Refusal::Taken));
    let mut real = allocator.reserve(false);
    assert_eq!(real.take_address(address(1)), Ok(()));
    drop(dry);
    assert_eq!(held(&allocator).0, BTreeMap::from([(1, 1)]), "dropping it releases nothing");
}

#[test]
fn services_of_one_commit_are_all_followed() {
    let allocator = allocator();
    for (key, number) in [("a", 1), ("b", 2)] {
        let holdings = Holdings { addresses: [number].into(), ports: BTreeSet::new() };
        allocator.follow(key, 7, false, || Some(holdings));
    }
    assert_eq!(held(&allocator).0, BTreeMap::from([(1, 1), (2, 1)]));
}

#[test]
fn a_deletion_that_is_noted_after_it_was_followed_leaves_nothing_behind() {
    let allocator = allocator();
    let holdings = Holdings { addresses: [1].into(), ports: BTreeSet::new() };
    allocator.note("a", 1, holdings.clone());
    allocator.follow("a", 1, false, || panic!("it is known"));
    allocator.follow("a", 2, true, || None);
    allocator.note("a", 2, Holdings::default());
    // Neither does its creation, if that is noted last of all.
    allocator.note("a", 1, holdings);
    assert_eq!(held(&allocator), Default::default());
    assert!(allocator.0.lock().stored.is_empty());
}

#[test]
fn the_holdings_of_a_service_are_its_addresses_and_all_of_its_ports() {
    let service = json!({"spec": {
        "type": "LoadBalancer", "clusterIP": "0.0.0.5", "clusterIPs": ["0.0.0.5", "fd00::1"], "healthCheckNodePort": 30,
        "ports": [{"nodePort": 10}, {"nodePort": 0}, {"port": 1}, {"nodePort": 10, "protocol": "UDP"}],
    }});
    let holdings = Holdings { addresses: [5].into(), ports: [10, 30].into() };
    assert_eq!(Holdings::of(&service), holdings);
    assert_eq!(
        Holdings::of(&json!({"spec": {"clusterIP": "None", "clusterIPs": ["None"]}})),
        Holdings::default()
    );
    let mut elsewhere = service;
    elsewhere["spec"]["type"] = "ExternalName".into();
    assert_eq!(Holdings::of(&elsewhere), Holdings::default());
}

/// What happens to the allocator of a server.
#[derive(Clone, Debug)]
enum Event {
    /// A Service is given an address by name and a port that is free, by this server; it is noted now or later.
    Write { key: u8, number: u32, is_noted: bool },
    /// The same, but the commit fails.
    Fail { number: u32 },
    /// A Service gets this address by another server.
    Foreign { key: u8, number: u32 },
    /// A Service is deleted by this server or by another.
    Delete { key: u8, is_ours: bool },
    /// Writers note what they have written.
    Note,
    /// The follower gets so far.
    Follow { events: usize },
    /// The follower begins anew.
    Reload,
}

fn event() -> impl Strategy<Value = Event> {
    let (key, number) = (0..4u8, 0..NUMBERS);
    prop_oneof![
        4 => (key.clone(), number.clone(), any_bool()).prop_map(|(key, number, is_noted)| Event::Write { key, number, is_noted }),
        1 => number.clone().prop_map(|number| Event::Fail { number }),
        1 => (key.clone(), number).prop_map(|(key, number)| Event::Foreign { key, number }),
        2 => (key, any_bool()).prop_map(|(key, is_ours)| Event::Delete { key, is_ours }),
        1 => Just(Event::Note),
        2 => (1..4usize).prop_map(|events| Event::Follow { events }),
        1 => Just(Event::Reload),
    ]
}

fn any_bool() -> impl Strategy<Value = bool> {
    proptest::bool::ANY
}

/// A storage of Services, and an allocator that follows it.
#[derive(Default)]
struct World {
    stored: BTreeMap<String, (Revision, Holdings)>,
    /// Everything that was written, in order; `None` is a deletion.
    log: Vec<(String, Option<Holdings>)>,
    followed: usize,
    /// Writers that have not noted what they wrote.
    writers: Vec<(String, Revision, Holdings, Reservation)>,
}

impl World {
    fn write(&mut self, key: &str, holdings: Option<Holdings>) -> Revision {
        self.log.push((key.to_owned(), holdings.clone()));
        let revision = self.log.len() as Revision;
        match holdings {
            Some(holdings) => self.stored.insert(key.to_owned(), (revision, holdings)),
            None => self.stored.remove(key),
        };
        revision
    }

    fn follow(&mut self, allocator: &Allocator, events: usize) {
        let until = self.log.len().min(self.followed + events);
        for at in self.followed..until {
            let (key, holdings) = &self.log[at];
            allocator.follow(key, at as Revision + 1, holdings.is_none(), || holdings.clone());
        }
        self.followed = until;
    }

    fn note(&mut self, allocator: &Allocator) {
        for (key, revision, holdings, reservation) in self.writers.drain(..) {
            allocator.note(&key, revision, holdings);
            drop(reservation);
        }
    }

    fn step(&mut self, allocator: &Allocator, event: &Event) {
        match *event {
            Event::Write { key, number, is_noted } => {
                let (key, mut reservation) = (format!("service-{key}"), allocator.reserve(false));
                let taken = reservation.take_address(address(number));
                let others = self.stored.iter().filter(|(other, _)| **other != key);
                let known = |holdings: &Holdings| holdings.addresses.contains(&number);
                if self.followed == self.log.len() && others.clone().any(|(_, (_, held))| known(held)) {
                    assert_eq!(taken, Err(Refusal::Taken), "{number} is somebody else's");
                }
                if taken.is_err() {
                    return;
                }
                let Ok(port) = reservation.any_port() else { return };
                let holdings = Holdings { addresses: [number].into(), ports: [port].into() };
                let revision = self.write(&key, Some(holdings.clone()));
                self.writers.push((key, revision, holdings, reservation));
                if is_noted {
                    self.note(allocator);
                }
            }
            Event::Fail { number } => {
                // Whether it was free or not.
                let _ = allocator.reserve(false).take_address(address(number));
            }
            Event::Foreign { key, number } => {
                let holdings = Holdings { addresses: [number].into(), ports: BTreeSet::new() };
                self.write(&format!("service-{key}"), Some(holdings));
            }
            Event::Delete { key, is_ours } => {
                let key = format!("service-{key}");
                if self.stored.contains_key(&key) {
                    let revision = self.write(&key, None);
                    if is_ours {
                        allocator.note(&key, revision, Holdings::default());
                    }
                }
            }
            Event::Note => self.note(allocator),
            Event::Follow { events } => self.follow(allocator, events),
            Event::Reload => {
                let all = self
                    .stored
                    .iter()
                    .map(|(key, (revision, holdings))| (key.as_str().into(), *revision, holdings.clone()));
                self.followed = self.log.len();
                allocator.replace(all.collect::<Vec<_>>(), self.followed as Revision);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::request::cases(1024)))]

    #[test]
    fn in_the_end_exactly_what_stored_services_have_is_taken(events in proptest::collection::vec(event(), 1..60)) {
        let (allocator, mut world) = (allocator(), World::default());
        for event in &events {
            world.step(&allocator, event);
            // What this server has written is never free, noted or not.
            let (addresses, _) = held(&allocator);
            for (_, _, holdings, _) in &world.writers {
                prop_assert!(holdings.addresses.iter().all(|number| addresses.contains_key(number)));
            }
        }
        world.note(&allocator);
        world.follow(&allocator, usize::MAX - world.followed);
        let mut expected: (BTreeMap<u32, u32>, BTreeMap<u32, u32>) = Default::default();
        for (_, holdings) in world.stored.values() {
            holdings.addresses.iter().for_each(|number| *expected.0.entry(*number).or_default() += 1);
            holdings.ports.iter().for_each(|number| *expected.1.entry(*number).or_default() += 1);
        }
        prop_assert_eq!(held(&allocator), expected);
        prop_assert_eq!(allocator.0.lock().stored.len(), world.stored.len());
    }
}
