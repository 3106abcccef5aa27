//! A service that fails in every way it can, against a model of what it has.

use std::time::Duration;

use serde_json::Value;
use watchkeeper_core::{Change, ChangeKind};
use watchkeeper_informer::{Informer, Object, SourceBackoff};
use watchkeeper_sources::http::{Http, Pages};

use crate::service::{Fault, Service, Validator};
use crate::tap::LONG;

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn fault(dice: &mut Dice) -> Fault {
    match dice.below(8) {
        0 => Fault::Status(500, String::new()),
        1 => Fault::Status(404, String::new()),
        2 => Fault::Status(503, "retry-after: 0\r\n".into()),
        3 => Fault::Truncated,
        4 => Fault::Closed,
        5 => Fault::Html,
        6 => Fault::Stale,
        _ => Fault::AnotherTag,
    }
}

async fn run(steps: u64, seed: u64) {
    let mut dice = Dice(seed);
    let service = Service::start().await;
    service.change(|items| items.extend((0..20).map(|number| (format!("still-{number}"), 1))));
    let validators = [Validator::Strong, Validator::Weak, Validator::Date, Validator::None];
    service.lock().validator = validators[seed as usize % 4];
    let http =
        Http::get(&service.url("/items")).items("/items").key("/id").interval(Duration::from_millis(1));
    let http = if seed.is_multiple_of(3) {
        service.lock().page = Some(7);
        http.pages(Pages::Link)
    } else {
        http
    };
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
        match dice.below(10) {
            0..4 => service.put(&format!("n{}", dice.below(8)), step),
            4 => service.remove(&format!("n{}", dice.below(8))),
            5 => service.lock().skew = dice.below(7 * 86_400),
            _ => service.fail(fault(&mut dice)),
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

#[tokio::test]
async fn whatever_a_service_does_the_store_ends_equal_to_its_list() {
    for seed in 0..12 {
        run(150, seed).await;
    }
}

#[tokio::test]
#[ignore = "takes a while; make soak runs it"]
async fn whatever_a_service_does_ten_thousand_times_the_store_ends_equal_to_its_list() {
    for seed in 100..104 {
        run(10_000, seed).await;
    }
}
