//! A server that is killed, whose connections are cut, whose slots are dropped and whose notifications are lost, against a model of its table.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use watchkeeper_core::{Change, ChangeKind, Source as _};
use watchkeeper_informer::{Informer, Object, SourceBackoff, Subscription};
use watchkeeper_sources::postgres::Postgres;

use crate::server::{Database, LONG, Server, connect};

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

type Model = BTreeMap<String, i64>;

/// How often the table is compared with its log meanwhile.
const OFTEN: Duration = Duration::from_millis(100);

/// One change of the table, or of several rows of it; and of the model. Returns how many rows it may have changed.
async fn change(dice: &mut Dice, database: &Database, model: &mut Model, step: i64) -> u64 {
    let name = format!("n{}", dice.below(12));
    match dice.below(10) {
        0..5 => {
            database.put(&name, step).await;
            model.insert(name, step);
            1
        }
        5 | 6 => {
            database.sql(&format!("DELETE FROM items WHERE name = '{name}'")).await;
            model.remove(&name);
            1
        }
        7 => {
            database.sql(&format!("BEGIN; INSERT INTO items VALUES ('undone', {step}); ROLLBACK")).await;
            0
        }
        8 => {
            let other = format!("m{}", dice.below(12));
            database
                .sql(&format!(
                    "BEGIN; DELETE FROM items WHERE name = '{other}'; UPDATE items SET name = '{other}' WHERE name = '{name}'; COMMIT"
                ))
                .await;
            model.remove(&other);
            if let Some(value) = model.remove(&name) {
                model.insert(other, value);
            }
            2
        }
        _ => {
            database
                .sql(&format!(
                    "INSERT INTO items SELECT 'k' || n, {step} FROM generate_series(1, 30) n ON CONFLICT (name) DO UPDATE SET value = {step}"
                ))
                .await;
            model.extend((1..=30).map(|number| (format!("k{number}"), step)));
            30
        }
    }
}

/// What trouble there was.
#[derive(Debug, Default)]
struct Troubles {
    count: u64,
    dropped_slots: u64,
    /// Rows that may have changed without a notification.
    silent: u64,
}

/// Every kind of trouble, one after the other.
async fn trouble(
    dice: &mut Dice,
    server: &mut Server,
    database: &mut Database,
    model: &mut Model,
    step: i64,
    troubles: &mut Troubles,
) {
    let kind = troubles.count % 6;
    troubles.count += 1;
    match kind {
        0 => {
            server.kill();
            tokio::time::sleep(Duration::from_millis(dice.below(100))).await;
            server.restart();
            database.client = connect(&database.url).await;
        }
        1 => database.cut().await,
        2 => {
            let drop = "SELECT pg_drop_replication_slot('chaos')";
            let dropped = async {
                // Its reader may have come back already, or not have made it yet.
                while database.client.batch_execute(drop).await.is_err() {
                    database.cut().await;
                }
            };
            tokio::time::timeout(LONG, dropped).await.expect("the slot is dropped");
            troubles.dropped_slots += 1;
        }
        3 => {
            database.sql("SET session_replication_role = replica").await;
            troubles.silent += change(dice, database, model, step).await;
            database.sql("RESET session_replication_role").await;
        }
        // Begins before others and is committed after them.
        _ => {
            let late = connect(&database.url).await;
            let name = format!("late{}", dice.below(5));
            let write = format!(
                "BEGIN; INSERT INTO items VALUES ('{name}', {step}) ON CONFLICT (name) DO UPDATE SET value = {step}"
            );
            late.batch_execute(&write).await.unwrap();
            for after in 0..dice.below(5) {
                change(dice, database, model, step + after as i64).await;
            }
            late.batch_execute("COMMIT").await.unwrap();
            model.insert(name, step);
        }
    }
}

fn shown(informer: &Informer<Value>) -> Model {
    let value = |object: &Value| object["value"].as_i64().unwrap();
    let list = informer.store().list();
    list.iter().map(|object| (object.key().to_string(), value(&object.get().unwrap()))).collect()
}

async fn run(steps: i64, seed: u64) {
    let mut dice = Dice(seed);
    let mut server = Server::start(&[]);
    let mut database = server.database().await;
    let source = database.items().await.rescan(Duration::from_millis(500));
    let mut model: Model = (0..20).map(|number| (format!("still-{number}"), 1)).collect();
    database.sql("INSERT INTO items SELECT 'still-' || n, 1 FROM generate_series(0, 19) n").await;
    let modes: [(&str, Postgres); 4] = [
        ("polled", source.clone()),
        ("notified", source.clone().notify()),
        ("replicated", source.clone().replicate().check_drift(OFTEN)),
        ("replicated durably", source.replicate_durably("chaos").check_drift(OFTEN)),
    ];
    let quick = Duration::from_millis(50);
    let backoff = SourceBackoff::new(Duration::from_millis(5), quick).with_refused_cap(quick);
    let mut readers: Vec<(&str, Postgres, Informer<Value>, Subscription<Value>)> = Vec::new();
    for (mode, source) in modes {
        source.install().await.unwrap();
        let informer = Informer::<Value>::builder().backoff(backoff).start(source.clone());
        let changes = informer.subscribe("test");
        readers.push((mode, source, informer, changes));
    }
    let check = |mode: &str, change: Change<Object<Value>>| {
        let (still, kind) = (change.key.name().starts_with("still"), change.kind());
        assert!(!still || kind == ChangeKind::Added, "seed {seed}: {mode}: {kind} {}", change.key);
        assert_ne!(change.key.name(), "undone");
    };
    let mut troubles = Troubles::default();
    for step in 0..steps {
        // What is told meanwhile is looked at before something else takes its place.
        for (mode, .., changes) in &mut readers {
            while let Some(change) = changes.try_next() {
                check(mode, change);
            }
        }
        if dice.below(40) == 0 {
            trouble(&mut dice, &mut server, &mut database, &mut model, step, &mut troubles).await;
        } else {
            change(&mut dice, &database, &mut model, step).await;
        }
        if dice.below(20) == 0 {
            tokio::time::sleep(Duration::from_millis(dice.below(100))).await;
        }
    }
    for (mode, source, informer, changes) in &mut readers {
        while shown(informer) != model {
            let Ok(change) = tokio::time::timeout(LONG, changes.next()).await else {
                panic!("seed {seed}: {mode}: the store has {:#?}, the table has {model:#?}", shown(informer));
            };
            check(mode, change.unwrap());
        }
        while let Some(change) = changes.try_next() {
            check(mode, change);
        }
        // Notifications do get lost here: the next rescan finds what they were about, which is what it is for.
        let most = if *mode == "notified" { troubles.silent } else { 0 };
        assert!(source.drift() <= most, "seed {seed}: {mode}: {} of {most}", source.drift());
    }
    assert!(troubles.dropped_slots > 0, "seed {seed}: {troubles:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_to_a_server_the_stores_end_equal_to_its_table() {
    for seed in 0..2 {
        run(300, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a while; make soak runs it"]
async fn whatever_happens_to_a_server_ten_thousand_times_the_stores_end_equal_to_its_table() {
    run(10_000, 100).await;
}
