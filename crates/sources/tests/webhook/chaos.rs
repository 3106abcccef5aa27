//! Webhooks that are lost, doubled, late, out of order, replayed and forged, against a model.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use watchkeeper_core::{Change, ChangeKind, Key};
use watchkeeper_informer::{Informer, Object};

use crate::hooked::{Polled, payload};
use crate::sender::{SECRET, Shop, now, signed};

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

async fn run(steps: u64, seed: u64, states: bool) {
    let mut dice = Dice(seed);
    let shop = Shop::standard();
    let (sender, polled) = Polled::new(Duration::from_millis(50));
    for number in 0..20 {
        let name = format!("still-{number}");
        sender.put(&Key::new(None, &name), &json!({"id": name, "v": 1})).unwrap();
    }
    let source =
        if states { shop.receiver.states_of(polled, payload()) } else { shop.receiver.hints_for(polled) };
    let informer = Informer::<Value>::builder().start(source);
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("test");
    let check = |change: Change<Object<Value>>| {
        let (still, kind) = (change.key.name().starts_with("still"), change.kind());
        assert!(!still || kind == ChangeKind::Added, "seed {seed}: {kind} {}", change.key);
    };
    let mut truth = BTreeMap::new();
    // Deliveries on their way: id, body.
    let mut underway: Vec<(String, String)> = Vec::new();
    for step in 2..steps {
        // What is told meanwhile is looked at before something else takes its place.
        while let Some(change) = changes.try_next() {
            check(change);
        }
        let name = format!("n{}", dice.below(6));
        let gone = dice.below(5) == 0 && truth.contains_key(&name);
        if gone {
            truth.remove(&name);
            sender.remove(&Key::new(None, &name));
        } else {
            truth.insert(name.clone(), step);
            sender.put(&Key::new(None, &name), &json!({"id": name, "v": step})).unwrap();
        }
        let body = json!({"data": {"id": name, "v": step}, "deleted": gone}).to_string();
        match dice.below(6) {
            0 => {}
            1 => underway.extend([(step.to_string(), body.clone()), (step.to_string(), body)]),
            _ => underway.push((step.to_string(), body)),
        }
        // Some arrive, in any order; some that arrived are sent again by somebody else.
        while underway.len() > 4 {
            let at = dice.below(underway.len() as u64) as usize;
            let (id, body) = underway.remove(at);
            let headers = match dice.below(8) {
                0 => signed("forged", &id, now(), &body),
                1 => signed(SECRET, &id, now() - 1000, &body),
                _ => signed(SECRET, &id, now(), &body),
            };
            shop.send("POST", &headers, &body).await;
        }
    }
    truth.extend((0..20).map(|number| (format!("still-{number}"), 1)));
    let shown = || -> BTreeMap<String, u64> {
        let list = informer.store().list();
        list.iter()
            .map(|object| (object.key().to_string(), object.get().unwrap()["v"].as_u64().unwrap()))
            .collect()
    };
    while shown() != truth {
        match tokio::time::timeout(Duration::from_secs(30), changes.next()).await {
            Ok(change) => check(change.unwrap()),
            Err(_) => panic!("seed {seed}: the store has {:#?}, the shop has {truth:#?}", shown()),
        }
    }
    while let Some(change) = changes.try_next() {
        check(change);
    }
}

#[tokio::test]
async fn whatever_becomes_of_webhooks_the_store_ends_equal_to_the_other_source() {
    for seed in 0..3 {
        run(200, seed, false).await;
        run(200, seed, true).await;
    }
}

#[tokio::test]
#[ignore = "takes a while; make soak runs it"]
async fn whatever_becomes_of_ten_thousand_webhooks_the_store_ends_equal_to_the_other_source() {
    run(10_000, 100, false).await;
    run(10_000, 101, true).await;
}
