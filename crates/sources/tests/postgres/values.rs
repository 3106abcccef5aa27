//! Rows as objects, the same however they are read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use watchkeeper_informer::{Entry, Informer};

use crate::server::Server;
use crate::tap::Tap;

const TABLE: &str = r#"
CREATE TYPE mood AS ENUM ('glad', 'so so');
CREATE DOMAIN percent AS numeric CHECK (VALUE <= 100);
CREATE DOMAIN half AS percent CHECK (VALUE <= 50);
CREATE TYPE point2 AS (x int, y int);
CREATE TABLE items (
    name text PRIMARY KEY, b bool, i2 smallint, i4 int, i8 bigint, f4 real, f8 double precision, n numeric, d half,
    v varchar(9), c char(3), u uuid, j json, jb jsonb, bin bytea, day date, t time, ts timestamp, tz timestamptz, span interval,
    m mood, moods mood[], ints int[], texts text[], grid int[], jsons jsonb[], dates timestamptz[], bytes bytea[], boxes box[],
    net inet, r int4range, p point2, "odd ""name" text, nothing text)"#;

const ROW: &str = r#"
INSERT INTO items VALUES ('a', true, -2, 4, 9007199254740993, 1.5, 0.1, 12345678901234567890.123, 12.50,
    'v', 'c', '0b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a10', '{"a" : [1, null]}', '{"b":{"c":"\u00e9"}}', '\x00ff', '2026-02-03', '04:05:06',
    '2026-02-03 04:05:06.7', '2026-02-03 04:05:06.789+02', '1 day 2 hours', 'so so', '{glad,"so so"}', '{1,NULL,3}',
    ARRAY['x', 'y "z"', NULL, 'NULL', '', 'a,b', '{}'], '{{1,2},{3,4}}', ARRAY['{"a":1}', '2']::jsonb[], '{2026-02-03 04:05:06+00}',
    ARRAY['\x00ff'::bytea], '{(1,1),(0,0);(2,2),(1,1)}', '10.0.0.0/8', '[1,5)', ROW(1, 2), 'odd', NULL)"#;

fn expected() -> Value {
    json!({
        "name": "a", "b": true, "i2": -2, "i4": 4, "i8": 9007199254740993i64, "f4": 1.5, "f8": 0.1, "n": 12345678901234567890.123, "d": 12.50,
        "v": "v", "c": "c  ", "u": "0b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a10", "j": {"a": [1, null]}, "jb": {"b": {"c": "é"}}, "bin": "AP8=",
        "day": "2026-02-03", "t": "04:05:06", "ts": "2026-02-03T04:05:06.7", "tz": "2026-02-03T02:05:06.789Z", "span": "P1DT2H",
        "m": "so so", "moods": ["glad", "so so"], "ints": [1, null, 3], "texts": ["x", "y \"z\"", null, "NULL", "", "a,b", "{}"],
        "grid": [[1, 2], [3, 4]], "jsons": [{"a": 1}, 2], "dates": ["2026-02-03T04:05:06Z"], "bytes": ["AP8="],
        "boxes": ["(1,1),(0,0)", "(2,2),(1,1)"], "net": "10.0.0.0/8", "r": "[1,5)", "p": "(1,2)", "odd \"name": "odd", "nothing": null
    })
}

#[tokio::test]
async fn a_row_is_the_same_object_however_it_is_read() {
    let database = Server::shared().database().await;
    database.sql(TABLE).await;
    // Nor do the settings of the database matter.
    database
        .sql(&format!(
            "ALTER DATABASE {0} SET datestyle = 'German'; ALTER DATABASE {0} SET timezone = 'Asia/Tokyo';
             ALTER DATABASE {0} SET bytea_output = 'escape'; ALTER DATABASE {0} SET extra_float_digits = -3",
            database.name
        ))
        .await;
    let source = database.source("items");
    source.clone().notify().install().await.unwrap();
    source.clone().replicate().install().await.unwrap();
    let mut taps = Vec::new();
    for source in [source.clone(), source.clone().notify(), source.replicate()] {
        taps.push(Tap::on(&source).await);
    }
    database.sql(ROW).await;
    for tap in &mut taps {
        tap.until(|tap| !tap.values.is_empty()).await;
        assert_eq!(tap.values["a"], expected());
    }
    for source in [database.source("items"), database.source("items").replicate()] {
        assert_eq!(Tap::on(&source).await.values["a"], expected());
    }
}

#[derive(Debug, Deserialize, PartialEq)]
struct Item {
    name: String,
    i8: i64,
    jb: BTreeMap<String, Value>,
    moods: Vec<String>,
    nothing: Option<String>,
}

#[tokio::test]
async fn rows_are_read_as_types_of_serde() {
    let database = Server::shared().database().await;
    database.sql(TABLE).await;
    database.sql(ROW).await;
    let informer = Informer::<Item>::builder().start(database.source("items"));
    informer.synced().await.unwrap();
    let all = informer.store().list();
    let item = all[0].get().unwrap();
    assert_eq!(
        (&*item.name, item.i8, item.moods.len(), &item.nothing),
        ("a", 9_007_199_254_740_993, 2, &None)
    );
    assert_eq!(item.jb["b"]["c"], "é");
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_named_and_the_others_come() {
    let database = Server::shared().database().await;
    let source = database.items().await.max_row_bytes(1000);
    database.sql("ALTER TABLE items ADD COLUMN more json").await;
    let deep = "[".repeat(300) + &"]".repeat(300);
    database
        .sql(&format!(
            "INSERT INTO items VALUES ('deep', 1, '{deep}'), ('fine', 1, NULL), ('large', 1, '\"{}\"')",
            "x".repeat(2000)
        ))
        .await;
    source.clone().replicate().install().await.unwrap();
    let said = |tap: &Tap, text: &str| tap.log.iter().filter(|line| line.contains(text)).count();
    for source in [source.clone(), source.clone().replicate()] {
        let mut tap = Tap::on(&source).await;
        assert_eq!(tap.names(), ["fine"]);
        let why = "rejected deep: unreadable (the value of the column more is nested too deeply to be read)";
        assert_eq!(said(&tap, why), 1, "{:?}", tap.log);
        assert_eq!(said(&tap, "rejected large: too_large (the row has 2"), 1, "{:?}", tap.log);
        assert!(!tap.log.concat().contains("xxx"));
        database.put("fine", 2).await;
        tap.until_value("fine", 2).await;
        database.sql("UPDATE items SET more = '[]' WHERE name = 'deep'").await;
        tap.until_value("deep", 1).await;
        database
            .sql(&format!("UPDATE items SET more = '{deep}' WHERE name = 'deep'; UPDATE items SET value = 1"))
            .await;
        tap.until(|tap| said(tap, why) == 2).await;
        assert_eq!(tap.value("deep"), Some(1), "it stays as it was");
    }
}

#[tokio::test]
async fn a_row_without_a_key_is_named_and_puts_no_other_in_doubt() {
    let database = Server::shared().database().await;
    database.sql("CREATE TABLE items (name text UNIQUE, value bigint); INSERT INTO items VALUES (NULL, 1), ('a', 1)").await;
    let source = database.source("items").key(["name"]);
    let mut tap = Tap::on(&source).await;
    assert!(
        tap.log.iter().any(|line| line.contains("the column name is part of the key, and is empty or NULL")),
        "{:?}",
        tap.log
    );
    database.sql("DELETE FROM items WHERE name = 'a'").await;
    tap.until_gone("a").await;
}

#[derive(Debug, Deserialize)]
struct Counted {
    value: i64,
}

/// The rejection of an object, as it is told.
async fn rejection(entries: &mut mpsc::Receiver<Entry<Counted>>, key: &str) -> String {
    loop {
        let entry = tokio::time::timeout(crate::server::LONG, entries.recv()).await.unwrap().unwrap();
        if let Entry::Rejected(rejection) = entry
            && rejection.key.as_ref().is_some_and(|rejected| rejected.name() == key)
        {
            return rejection.to_string();
        }
    }
}

#[tokio::test]
async fn a_column_of_another_type_is_named_its_rows_stay_as_they_were_and_the_others_come() {
    let database = Server::shared().database().await;
    let source = database.items().await;
    source.clone().replicate().install().await.unwrap();
    for source in [source.clone(), source.replicate()] {
        database.sql("DELETE FROM items; INSERT INTO items VALUES ('a', 1)").await;
        let (journal, mut entries) = mpsc::channel(1_000);
        let informer = Informer::<Counted>::builder().check(true).journal(journal).start(source);
        informer.synced().await.unwrap();
        let store = informer.store();
        let value = |name: &str| {
            let object = store.get(&watchkeeper_core::Key::new(None, name));
            object.map(|object| object.get().unwrap().value)
        };
        assert_eq!(value("a"), Some(1));
        // A migration that the program does not know of.
        database
            .sql("ALTER TABLE items ALTER COLUMN value TYPE text; UPDATE items SET value = 'hunter2'")
            .await;
        let said = rejection(&mut entries, "a").await;
        assert!(said.contains("value: expected i64") && !said.contains("hunter2"), "{said}");
        assert_eq!(value("a"), Some(1), "it stays as it was");
        database.sql("UPDATE items SET value = '7'; ALTER TABLE items ALTER COLUMN value TYPE bigint USING value::bigint; INSERT INTO items VALUES ('b', 2)").await;
        let begun = std::time::Instant::now();
        while (value("a"), value("b")) != (Some(7), Some(2)) {
            assert!(begun.elapsed() < crate::server::LONG, "{:?} {:?}", value("a"), value("b"));
            let _ = tokio::time::timeout(std::time::Duration::from_millis(20), entries.recv()).await;
        }
    }
}
