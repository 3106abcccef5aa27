//! The source of SQLite: its contract, and what files and other processes do.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use rusqlite::Connection;
use serde::Deserialize;
use serde_json::{Value, json};
use watchkeeper_core::contract::{World, check};
use watchkeeper_core::{Change, ChangeKind, Error, Event, Feed, Freshness, Source, Start};
use watchkeeper_informer::{Entry, Informer, Object, SourceBackoff};
use watchkeeper_sources::sqlite::Sqlite;

const LONG: Duration = Duration::from_secs(30);
const TABLE: &str = "CREATE TABLE items (name TEXT PRIMARY KEY, value INTEGER NOT NULL)";

struct Place {
    directory: tempfile::TempDir,
    writer: Connection,
}

impl Place {
    fn new(schema: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let writer = Connection::open(directory.path().join("app.db")).unwrap();
        writer.execute_batch(schema).unwrap();
        Self { directory, writer }
    }

    fn sql(&self, statements: &str) {
        self.writer.execute_batch(statements).unwrap();
    }

    fn source(&self, table: &str) -> Sqlite {
        Sqlite::table(self.directory.path().join("app.db"), table).interval(Duration::from_millis(5))
    }
}

impl World for Place {
    fn source(&self) -> impl Source {
        Self::source(self, "items")
    }

    async fn put(&self, name: &str, value: u64) {
        self.sql(&format!("INSERT OR REPLACE INTO items (name, value) VALUES ('{name}', {value})"));
    }

    async fn delete(&self, name: &str) {
        self.sql(&format!("DELETE FROM items WHERE name = '{name}'"));
    }

    async fn expire(&self) -> bool {
        false
    }

    async fn corrupt(&self, name: &str) -> bool {
        self.sql(&format!("UPDATE items SET note = '{{' WHERE name = '{name}'"));
        true
    }
}

struct Tap {
    feed: Feed,
    values: BTreeMap<String, Value>,
    log: Vec<String>,
}

impl Tap {
    fn on(source: &Sqlite) -> Self {
        let feed = source.open(Start::Snapshot(Freshness::Any));
        Self { feed, values: BTreeMap::new(), log: Vec::new() }
    }

    async fn step(&mut self) -> Result<(), Error> {
        let event = tokio::time::timeout(LONG, self.feed.next()).await.expect("an event").expect("more")?;
        self.log.push(match event {
            Event::Item(document) | Event::Put { document, .. } => {
                let name = document.header.key.to_string();
                let line = format!("put {name}");
                self.values.insert(name, serde_json::from_slice(&document.body).unwrap());
                line
            }
            Event::Gone { key, .. } => {
                self.values.remove(&key.to_string());
                format!("gone {key}")
            }
            Event::Rejected(rejection) => format!("rejected {rejection}"),
            Event::Complete(_) => "complete".into(),
            other => format!("{other:?}"),
        });
        Ok(())
    }

    async fn until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            self.step().await.unwrap();
        }
    }

    async fn failure(&mut self) -> Error {
        loop {
            if let Err(error) = self.step().await {
                return error;
            }
        }
    }
}

#[tokio::test]
async fn the_source_of_sqlite_holds_the_contract() {
    for journal in ["DELETE", "WAL"] {
        let place =
            Place::new(&format!("PRAGMA journal_mode = {journal}; {TABLE}; ALTER TABLE items ADD note JSON"));
        assert_eq!(check(&place).await.unwrap().len(), 5);
    }
}

#[tokio::test]
async fn rows_are_objects() {
    let place = Place::new(
        "CREATE TABLE items (site TEXT, n INTEGER, flag BOOLEAN, real REAL, more JSON, blob BLOB, ignored TEXT, PRIMARY KEY (site, n))",
    );
    place.sql(r#"INSERT INTO items VALUES ('a/b', 7, 1, 0.5, '{"x": [1]}', x'00ff', NULL), ('c', 8, 0, 9e999, 'broken', x'', 't')"#);
    let mut tap = Tap::on(&place.source("items").without(["ignored"]));
    tap.until(|tap| tap.log.iter().any(|line| line == "complete")).await;
    let row = json!({"site": "a/b", "n": 7, "flag": true, "real": 0.5, "more": {"x": [1]}, "blob": "AP8="});
    assert_eq!(tap.values["a%2Fb/7"], row);
    let said = "rejected c/8: unreadable (the value of the column more is not JSON)";
    assert!(tap.log.iter().any(|line| line == said), "{:?}", tap.log);
    place.sql("UPDATE items SET more = '[]', ignored = 'u'");
    tap.until(|tap| tap.values.len() == 2 && tap.values["a%2Fb/7"]["more"] == json!([])).await;
    assert_eq!(tap.values["c/8"]["real"], "inf");
}

#[tokio::test]
async fn a_file_that_is_exchanged_is_read_anew_and_one_that_is_gone_is_missing() {
    let place = Place::new(TABLE);
    place.sql("INSERT INTO items VALUES ('a', 1)");
    let source = place.source("items");
    let mut tap = Tap::on(&source);
    tap.until(|tap| tap.values.contains_key("a")).await;
    let other = Place::new(TABLE);
    other.sql("INSERT INTO items VALUES ('b', 1)");
    let path = |place: &Place| place.directory.path().join("app.db");
    std::fs::rename(path(&other), path(&place)).unwrap();
    assert_eq!(tap.failure().await.class(), "unavailable");
    let mut tap = Tap::on(&source);
    tap.until(|tap| tap.values.contains_key("b")).await;
    std::fs::remove_file(path(&place)).unwrap();
    assert_eq!(tap.failure().await.class(), "missing");
    assert_eq!(Tap::on(&source).failure().await.class(), "missing");
    std::fs::write(path(&place), "this is not a database, though it is long enough to be looked at").unwrap();
    assert_eq!(Tap::on(&source).failure().await.class(), "fatal");
}

#[derive(Debug, Deserialize)]
struct Counted {
    value: i64,
}

#[tokio::test]
async fn a_value_of_another_type_is_named_its_row_stays_as_it_was_and_the_others_come() {
    let place = Place::new(TABLE);
    place.sql("INSERT INTO items VALUES ('a', 1), ('b', 1)");
    let (journal, mut entries) = tokio::sync::mpsc::channel(1_000);
    let informer = Informer::<Counted>::builder().check(true).journal(journal).start(place.source("items"));
    informer.synced().await.unwrap();
    let value = |name: &str| {
        let object = informer.store().get(&watchkeeper_core::Key::new(None, name));
        object.map(|object| object.get().unwrap().value)
    };
    // SQLite minds types less than whoever reads them.
    place.sql(
        "UPDATE items SET value = 'hunter2' WHERE name = 'a'; UPDATE items SET value = 2 WHERE name = 'b'",
    );
    let said = loop {
        let entry = tokio::time::timeout(LONG, entries.recv()).await.unwrap().unwrap();
        if let Entry::Rejected(rejection) = entry {
            break rejection.to_string();
        }
    };
    assert!(said.contains("a: ") && said.contains("value: expected i64"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    let begun = std::time::Instant::now();
    while (value("a"), value("b")) != (Some(1), Some(2)) {
        assert!(begun.elapsed() < LONG, "{:?} {:?}", value("a"), value("b"));
        let _ = tokio::time::timeout(Duration::from_millis(20), entries.recv()).await;
    }
}

#[tokio::test]
async fn what_cannot_be_watched_is_said() {
    let place = Place::new("CREATE TABLE keyless (name TEXT)");
    let refused = async |source: Sqlite| Tap::on(&source).failure().await.to_string();
    assert!(refused(place.source("nowhere")).await.contains("there is no such table"));
    assert!(refused(place.source("keyless")).await.contains("no primary key"));
    assert!(refused(place.source("keyless").key(["no"])).await.contains("no column no"));
    place.sql("INSERT INTO keyless VALUES ('a'), ('a'), (NULL)");
    let mut tap = Tap::on(&place.source("keyless").key(["name"]));
    tap.until(|tap| tap.log.iter().any(|line| line == "complete")).await;
    assert!(tap.log.iter().any(|line| line.starts_with("rejected a: conflict")), "{:?}", tap.log);
    assert!(tap.log.iter().any(|line| line.contains("is part of the key, and is NULL")), "{:?}", tap.log);
}

async fn run(steps: i64) {
    let place = Place::new(&format!("PRAGMA journal_mode = WAL; {TABLE}"));
    place.sql("INSERT INTO items VALUES ('still', 1)");
    let quick = Duration::from_millis(20);
    let backoff = SourceBackoff::new(Duration::from_millis(1), quick).with_refused_cap(quick);
    let informer = Informer::<Value>::builder().backoff(backoff).start(place.source("items"));
    let mut changes = informer.subscribe("test");
    let mut model = BTreeMap::from([("still".to_owned(), 1)]);
    let mut dice = 7u64;
    let check = |change: Change<Object<Value>>| {
        assert!(change.key.name() != "still" || change.kind() == ChangeKind::Added);
        assert_ne!(change.key.name(), "undone");
    };
    for step in 2..steps {
        // What is told meanwhile is looked at before something else takes its place.
        while let Some(change) = changes.try_next() {
            check(change);
        }
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let name = format!("n{}", (dice >> 40) % 20);
        match (dice >> 33) % 6 {
            0 => {
                place.sql(&format!("DELETE FROM items WHERE name = '{name}'"));
                model.remove(&name);
            }
            1 => place.sql("BEGIN; INSERT INTO items VALUES ('undone', 1); ROLLBACK"),
            _ => {
                place.sql(&format!("INSERT OR REPLACE INTO items VALUES ('{name}', {step})"));
                model.insert(name, step);
            }
        }
        if step % 50 == 0 {
            tokio::time::sleep(Duration::from_millis(7)).await;
        }
    }
    let shown = || -> BTreeMap<String, i64> {
        let value = |object: &Value| object["value"].as_i64().unwrap();
        let list = informer.store().list();
        list.iter().map(|object| (object.key().to_string(), value(&object.get().unwrap()))).collect()
    };
    while shown() != model {
        check(tokio::time::timeout(LONG, changes.next()).await.expect("the store differs").unwrap());
    }
    while let Some(change) = changes.try_next() {
        check(change);
    }
}

#[tokio::test]
async fn whatever_writers_do_the_store_ends_equal_to_the_table() {
    run(2_000).await;
}

#[tokio::test]
#[ignore = "takes a while; make soak runs it"]
async fn whatever_writers_do_ten_thousand_times_the_store_ends_equal_to_the_table() {
    run(10_000).await;
}
