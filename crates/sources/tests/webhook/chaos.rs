//! Webhooks that are lost, doubled, late, out of order, replayed and forged, against a model.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use watchkeeper_core::{Change, ChangeKind, Key};
use watchkeeper_informer::{Informer, Object};
use watchkeeper_sources::webhook::Receiver;

use crate::hooked::{Polled, payload};
use crate::sender::{SECRET, Shop, github, now, signed};

/// How far the time of a delivery may be off, in seconds: what receivers allow unless they are told otherwise.
const TOLERANCE: u64 = 300;

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// How deliveries are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Standard,
    /// Neither the time nor the id.
    GitHub,
}

impl Scheme {
    fn shop(self) -> Shop {
        match self {
            Self::Standard => Shop::standard(),
            Self::GitHub => Shop::open(Receiver::github),
        }
    }

    fn delivery(self, secret: &str, id: &str, time: u64, body: &str) -> Delivery {
        let headers = match self {
            Self::Standard => signed(secret, id, time, body),
            Self::GitHub => github(secret, id, body),
        };
        Delivery { id: id.into(), time, genuine: secret == SECRET, headers, body: body.into() }
    }
}

/// A delivery as it is on the wire, and what its sender knows of it.
#[derive(Clone)]
struct Delivery {
    id: String,
    /// When it was signed.
    time: u64,
    genuine: bool,
    headers: String,
    body: String,
}

impl Delivery {
    /// The same under another id, which nobody has signed.
    fn under(mut self, id: &str) -> Self {
        let header = |id: &str| format!("x-github-delivery: {id}\r\n");
        self.headers = self.headers.replace(&header(&self.id), &header(id));
        self.id = id.into();
        self
    }
}

/// What a receiver has to answer, told by what it has taken so far. No run lasts as long as ids are remembered.
struct Answers {
    scheme: Scheme,
    taken: BTreeSet<String>,
    refused: u64,
}

impl Answers {
    fn identity(&self, delivery: &Delivery) -> String {
        match self.scheme {
            Scheme::Standard => delivery.id.clone(),
            Scheme::GitHub => format!("{} {}", delivery.id, delivery.body),
        }
    }

    /// Sends a delivery, and gives the answer if that is as it has to be.
    async fn of(&mut self, shop: &Shop, delivery: &Delivery) -> u16 {
        let before = now();
        let answer = shop.send("POST", &delivery.headers, &delivery.body).await;
        let after = now();
        let taken = if self.taken.contains(&self.identity(delivery)) { 200 } else { 202 };
        let expected = match self.scheme {
            _ if !delivery.genuine => vec![401],
            Scheme::GitHub => vec![taken],
            Scheme::Standard if after - delivery.time <= TOLERANCE => vec![taken],
            Scheme::Standard if before - delivery.time > TOLERANCE => vec![401],
            // Its time was up while it was on its way.
            Scheme::Standard => vec![taken, 401],
        };
        assert!(
            expected.contains(&answer),
            "{answer} in place of {expected:?}: {} {}",
            delivery.headers,
            delivery.body
        );
        if answer == 401 {
            self.refused += 1;
        } else {
            self.taken.insert(self.identity(delivery));
        }
        answer
    }
}

/// How many deliveries that had been taken were sent again and answered as doubles, taken again under another id, and refused since their time was up.
#[derive(Debug, Default)]
struct Replays {
    doubles: u64,
    renamed: u64,
    refused: u64,
}

async fn run(steps: u64, seed: u64, scheme: Scheme, states: bool) -> Replays {
    let mut dice = Dice(seed);
    let shop = scheme.shop();
    let mut answers = Answers { scheme, taken: BTreeSet::new(), refused: 0 };
    let mut replays = Replays::default();
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
    let mut told: BTreeMap<String, u64> = BTreeMap::new();
    let mut check = |change: Change<Object<Value>>| {
        let (name, kind) = (change.key.name().to_owned(), change.kind());
        assert!(!name.starts_with("still") || kind == ChangeKind::Added, "seed {seed}: {kind} {name}");
        let Some(new) = change.new else { return };
        let version = new.get().unwrap()["v"].as_u64().unwrap();
        // What was told to be gone does not come back, and nothing goes back.
        let before = told.insert(name.clone(), version);
        let newer = before.is_none_or(|before| match kind {
            ChangeKind::Added => version > before,
            _ => version >= before,
        });
        assert!(newer, "seed {seed}: {kind} {name} with version {version} after {before:?}");
    };
    let mut truth = BTreeMap::new();
    // Deliveries on their way: id, body.
    let mut underway: Vec<(String, String)> = Vec::new();
    // What somebody has recorded, byte by byte, and whether it was taken.
    let mut recorded: Vec<(Delivery, bool)> = Vec::new();
    if scheme == Scheme::Standard {
        // An hour ago, before the shop was set up anew, versions were larger.
        recorded.extend((0..3).map(|number| {
            let body = json!({"data": {"id": format!("still-{number}"), "v": 1_000_000}, "deleted": true});
            let id = format!("before-{number}");
            (scheme.delivery(SECRET, &id, now() - 3600, &body.to_string()), false)
        }));
    }
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
        // Some arrive, in any order.
        while underway.len() > 4 {
            let at = dice.below(underway.len() as u64) as usize;
            let (id, body) = underway.remove(at);
            let delivery = match dice.below(8) {
                0 => scheme.delivery("forged", &id, now(), &body),
                1 => scheme.delivery(SECRET, &id, now() - 1000, &body),
                // In time, and no more in the next second.
                2 => scheme.delivery(SECRET, &id, now() - TOLERANCE, &body),
                _ => scheme.delivery(SECRET, &id, now(), &body),
            };
            let taken = answers.of(&shop, &delivery).await != 401;
            recorded.push((delivery, taken));
        }
        // Some that arrived are sent again by somebody else, who cannot sign.
        if dice.below(6) == 0 && !recorded.is_empty() {
            let (replay, was_taken) = recorded[dice.below(recorded.len() as u64) as usize].clone();
            let replay = match (scheme, dice.below(4)) {
                (Scheme::GitHub, 0) => replay.under(&format!("again-{step}")),
                // That of a delivery that is not there yet, to keep it out.
                (Scheme::GitHub, 1) if !underway.is_empty() => replay.under(&underway[0].0),
                _ => replay,
            };
            match answers.of(&shop, &replay).await {
                200 => replays.doubles += 1,
                202 => replays.renamed += u64::from(was_taken),
                _ => replays.refused += u64::from(was_taken),
            }
        }
    }
    assert_eq!(shop.receiver.refused(), answers.refused, "seed {seed}");
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
    replays
}

#[tokio::test]
async fn whatever_becomes_of_webhooks_the_store_ends_equal_to_the_other_source() {
    for seed in 0..3 {
        for scheme in [Scheme::Standard, Scheme::GitHub] {
            run(200, seed, scheme, false).await;
            run(200, seed, scheme, true).await;
        }
    }
}

#[tokio::test]
#[ignore = "takes a while; make soak runs it"]
async fn whatever_becomes_of_ten_thousand_webhooks_the_store_ends_equal_to_the_other_source() {
    for (seed, states) in [(100, false), (101, true)] {
        let replays = run(10_000, seed, Scheme::Standard, states).await;
        assert!(replays.doubles > 100 && replays.refused > 10, "{replays:?}");
        let replays = run(10_000, seed, Scheme::GitHub, states).await;
        assert!(replays.doubles > 100 && replays.renamed > 100, "{replays:?}");
    }
}
