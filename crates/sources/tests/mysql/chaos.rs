//! A server that is killed and whose connections are cut, against a model of its table.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use watchkeeper_core::{Change, ChangeKind};
use watchkeeper_informer::{Informer, Object, SourceBackoff};

use crate::server::{Database, LONG, Server};

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

type Model = BTreeMap<String, i64>;

/// One change of the table, or of several rows of it; and of the model.
fn change(dice: &mut Dice, database: &Database, model: &mut Model, step: i64) {
    let name = format!("n{}", dice.below(12));
    match dice.below(10) {
        0..5 => {
            database.put(&name, step);
            model.insert(name, step);
        }
        5 | 6 => {
            database.sql(&format!("DELETE FROM items WHERE name = '{name}'"));
            model.remove(&name);
        }
        7 => {
            database.sql(&format!("BEGIN; INSERT INTO items VALUES ('undone', {step}); ROLLBACK"));
        }
        8 => {
            let other = format!("m{}", dice.below(12));
            database.sql(&format!(
                "BEGIN; DELETE FROM items WHERE name = '{other}'; UPDATE items SET name = '{other}' WHERE name = '{name}'; COMMIT"
            ));
            model.remove(&other);
            if let Some(value) = model.remove(&name) {
                model.insert(other, value);
            }
        }
        _ => {
            database.sql(&format!("REPLACE INTO items SELECT CONCAT('k', seq), {step} FROM seq_1_to_30"));
            model.extend((1..=30).map(|number| (format!("k{number}"), step)));
        }
    }
}

/// Every kind of trouble, one after the other.
fn trouble(
    dice: &mut Dice,
    server: &mut Server,
    database: &mut Database,
    model: &mut Model,
    step: i64,
    kind: u64,
) {
    match kind % 4 {
        0 => {
            server.kill();
            std::thread::sleep(Duration::from_millis(dice.below(100)));
            server.restart();
            database.client = database.another();
        }
        1 => database.cut(),
        2 => {
            database.sql("ALTER TABLE items ADD COLUMN extra bigint DEFAULT 7");
            database.sql("ALTER TABLE items DROP COLUMN extra");
        }
        // Begins before others and is committed after them.
        _ => {
            let late = database.another();
            let name = format!("late{}", dice.below(5));
            late.sql(&format!("BEGIN; REPLACE INTO items VALUES ('{name}', {step})"));
            for after in 0..dice.below(5) {
                let other = format!("n{}", dice.below(12));
                database.put(&other, step + after as i64);
                model.insert(other, step + after as i64);
            }
            late.sql("COMMIT");
            model.insert(name, step);
        }
    }
}

fn shown(informer: &Informer<Value>) -> Model {
    let value = |object: &Value| object["value"].as_i64().unwrap();
    let list = informer.store().list();
    list.iter().map(|object| (object.key().to_string(), value(&object.get().unwrap()))).collect()
}

async fn chaos(steps: i64, seed: u64) {
    let mut dice = Dice(seed);
    // What was committed stays, also where the server is killed.
    let mut server = Server::start(&["--innodb-flush-log-at-trx-commit=2"]);
    let mut database = server.database();
    let source = database.items();
    let mut model: Model = (0..20).map(|number| (format!("still-{number}"), 1)).collect();
    database.sql("INSERT INTO items SELECT CONCAT('still-', seq), 1 FROM seq_0_to_19");
    let quick = Duration::from_millis(50);
    let backoff = SourceBackoff::new(Duration::from_millis(5), quick).with_refused_cap(quick);
    let informer = Informer::<Value>::builder().backoff(backoff).start(source);
    let mut changes = informer.subscribe("test");
    let check = |change: Change<Object<Value>>| {
        let (still, kind) = (change.key.name().starts_with("still"), change.kind());
        // A column that comes is a change of every row, and nothing worse.
        assert!(!still || kind != ChangeKind::Deleted, "seed {seed}: {kind} {}", change.key);
        assert_ne!(change.key.name(), "undone");
    };
    let mut troubles = 0;
    for step in 0..steps {
        // What is told meanwhile is looked at before something else takes its place.
        while let Some(change) = changes.try_next() {
            check(change);
        }
        if dice.below(40) == 0 {
            trouble(&mut dice, &mut server, &mut database, &mut model, step, troubles);
            troubles += 1;
        } else {
            change(&mut dice, &database, &mut model, step);
        }
        if dice.below(20) == 0 {
            tokio::time::sleep(Duration::from_millis(dice.below(100))).await;
        }
    }
    while shown(&informer) != model {
        let Ok(change) = tokio::time::timeout(LONG, changes.next()).await else {
            panic!("seed {seed}: the store has {:#?}, the table has {model:#?}", shown(&informer));
        };
        check(change.unwrap());
    }
    while let Some(change) = changes.try_next() {
        check(change);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_to_a_server_the_store_ends_equal_to_its_table() {
    for seed in 0..2 {
        chaos(300, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a while; make soak runs it"]
async fn whatever_happens_to_a_server_ten_thousand_times_the_store_ends_equal_to_its_table() {
    chaos(10_000, 100).await;
}
