//! A service that fails in every way it can, against a model of what it has.

use std::time::Duration;

use serde_json::Value;
use watchkeeper_core::{Change, ChangeKind, Key};
use watchkeeper_informer::{Informer, Object, SourceBackoff};
use watchkeeper_sources::http::{Http, Pages, Waiting};

use crate::service::{Fault, Service, Validator};
use crate::tap::LONG;

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What the next answers are, none of which says what there is.
fn faults(dice: &mut Dice, paged: bool) -> Vec<Fault> {
    let status = |code, headers: &str| Fault::Status(code, headers.into());
    vec![match dice.below(16) {
        0 => status(500, ""),
        1 => status(404, ""),
        2 => status(503, "retry-after: 0\r\n"),
        3 => status(429, "retry-after: 0\r\n"),
        4 => status(401, ""),
        5 => status(302, "location: /elsewhere\r\n"),
        6 => status(204, ""),
        7 => Fault::Truncated,
        8 => Fault::Closed,
        9 => Fault::Html,
        10 => Fault::Slow,
        11 => Fault::AnotherTag,
        // A list in pages is believed when it comes out the same twice.
        12 if paged => return vec![Fault::Stale, Fault::Stale],
        12 => Fault::Stale,
        // Most is gone, and the next look finds it again: nothing is deleted. (Twice, since one answer may be lost to a time-out.)
        13 => return vec![Fault::Empty, Fault::AnotherTag, Fault::AnotherTag],
        14 => return vec![Fault::Third, Fault::AnotherTag, Fault::AnotherTag],
        // One replica after the other.
        _ => return vec![Fault::Stale, Fault::AnotherTag, Fault::Stale, Fault::AnotherTag],
    }]
}

/// How a source is told of changes, for a seed.
fn http(service: &Service, seed: u64) -> Http {
    let http =
        Http::get(&service.url("/items")).items("/items").key("/id").interval(Duration::from_millis(1));
    let http = http.timeout(Duration::from_millis(150));
    let mut state = service.lock();
    state.validator =
        [Validator::Strong, Validator::Weak, Validator::Date, Validator::None][seed as usize % 4];
    let second = Duration::from_secs(1);
    // The number of ways and that of the validators have no divisor in common: each meets each.
    match seed % 5 {
        0 => http,
        1 => {
            state.page = Some(7);
            http.pages(Pages::Link)
        }
        2 => http.waiting(Waiting::Prefer(second)),
        3 => {
            http.waiting(Waiting::Index { header: "x-index".into(), parameter: "index".into(), wait: second })
        }
        _ => http.events(&service.url("/events")).interval(Duration::from_millis(20)),
    }
}

/// Waits until the store shows an item that was put after the last fault.
///
/// Two lists in a row that lack most items are believed: the second confirms the first, unless a whole list was told between them. What the
/// service has answered does not say what was told. Pages that came out whole only once are not told yet, and an answer that came too late is
/// not read at all. So the store, not the service, says when the next such list may come without deleting anything.
async fn found_again(service: &Service, informer: &Informer<Value>, step: u64) {
    while !service.lock().faults.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    service.put("witness", step);
    let witness = Key::new(None, "witness");
    let is_there = |object: Object<Value>| object.get().unwrap()["value"] == step;
    while !informer.store().get(&witness).is_some_and(is_there) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn run(steps: u64, seed: u64) {
    let mut dice = Dice(seed);
    let service = Service::start().await;
    service.change(|items| items.extend((0..20).map(|number| (format!("still-{number}"), 1))));
    // So that an old list is not an empty one.
    service.change(|_| {});
    let http = http(&service, seed);
    let paged = service.lock().page.is_some();
    let quick = Duration::from_millis(20);
    let backoff = SourceBackoff::new(Duration::from_millis(1), quick).with_refused_cap(quick);
    let informer = Informer::<Value>::builder().backoff(backoff).start(http);
    let mut changes = informer.subscribe("test");
    let check = |change: Change<Object<Value>>| {
        let (still, kind) = (change.key.name().starts_with("still"), change.kind());
        assert!(!still || kind == ChangeKind::Added, "seed {seed}: {kind} {}", change.key);
    };
    for step in 0..steps {
        // What is told meanwhile is looked at before something else takes its place.
        while let Some(change) = changes.try_next() {
            check(change);
        }
        match dice.below(12) {
            0..4 => service.put(&format!("n{}", dice.below(8)), step),
            4 => service.remove(&format!("n{}", dice.below(8))),
            // A clock that is ahead or behind, by a week at most.
            5 => service.lock().skew = dice.below(14 * 86_400).cast_signed() - 7 * 86_400,
            // As a service that was set up anew.
            6 => service.lock().index_offset = dice.below(2_000).cast_signed(),
            7 => service.corrupt(&format!("n{}", dice.below(8))),
            _ => {
                let faults = faults(&mut dice, paged);
                let shrinks = faults.iter().any(|fault| matches!(fault, Fault::Empty | Fault::Third));
                faults.into_iter().for_each(|fault| service.fail(fault));
                if paged && shrinks {
                    tokio::time::timeout(LONG, found_again(&service, &informer, step)).await.unwrap();
                }
            }
        }
        if dice.below(4) == 0 {
            tokio::time::sleep(Duration::from_millis(dice.below(4))).await;
        }
        // Not more trouble than can be got over.
        while service.lock().faults.len() > 20 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    service.lock().faults.clear();
    service.heal();
    let shown = || -> Vec<(String, u64)> {
        let value = |object: &Value| object["value"].as_u64().unwrap();
        let list = informer.store().list();
        let mut all: Vec<_> =
            list.iter().map(|object| (object.key().to_string(), value(&object.get().unwrap()))).collect();
        all.sort();
        all
    };
    let truth: Vec<(String, u64)> = service.lock().items.clone().into_iter().collect();
    while shown() != truth {
        match tokio::time::timeout(LONG, changes.next()).await {
            Ok(change) => check(change.unwrap()),
            Err(_) => panic!("seed {seed}: the store has {:#?}, the service has {truth:#?}", shown()),
        }
    }
    while let Some(change) = changes.try_next() {
        check(change);
    }
}

/// All at once: most of the time they wait.
async fn runs(steps: u64, seeds: std::ops::Range<u64>) {
    let runs: Vec<_> = seeds.map(|seed| tokio::spawn(run(steps, seed))).collect();
    for run in runs {
        run.await.unwrap();
    }
}

#[tokio::test]
async fn whatever_a_service_does_the_store_ends_equal_to_its_list() {
    runs(150, 0..20).await;
}

#[tokio::test]
#[ignore = "takes a while; make soak runs it"]
async fn whatever_a_service_does_ten_thousand_times_the_store_ends_equal_to_its_list() {
    runs(10_000, 100..120).await;
}
