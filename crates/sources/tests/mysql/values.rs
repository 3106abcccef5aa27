//! Rows as objects.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use watchkeeper_core::Key;
use watchkeeper_informer::{Entry, Informer};

use crate::server::Server;
use crate::tap::Tap;

const TABLE: &str = r"
CREATE TABLE items (
    name varchar(20) PRIMARY KEY, b boolean, i1 tinyint, u8 bigint unsigned, z int(8) zerofill, n decimal(30,3), f float, d double, bit1 bit(1), bits bit(40),
    y year, v varchar(9) CHARACTER SET latin1, c char(3), j json, t longtext, bin binary(2), vb varbinary(4), bl longblob, day date, clock time(1),
    dt datetime(3), ts timestamp(3) NULL, zero datetime, e enum('glad', 'so so'), s set('x', 'y'), g point, gen bigint AS (i1 * 2), `odd ``name` text, nothing text
) CHARACTER SET utf8mb4";

/// At the server's own time, which is nine hours ahead.
const ROW: &str = r#"
INSERT INTO items (name, b, i1, u8, z, n, f, d, bit1, bits, y, v, c, j, t, bin, vb, bl, day, clock, dt, ts, zero, e, s, g, `odd ``name`, nothing) VALUES
('a', true, -2, 18446744073709551615, 42, 12345678901234567890.100, 0.1, 0.1, b'1', b'1000000000000000000000000000000000000001', 2026, 'é', 'c',
 '{"a" : [1, null]}', 'it''s \\ "quoted" 😀', x'00ff', x'ff', x'', '2026-02-03', '-04:05:06.7', '2026-02-03 04:05:06.789', '2026-02-03 09:05:06.5',
 '0000-00-00 00:00:00', 'so so', 'x,y', ST_GeomFromText('POINT(1 2)'), 'odd', NULL)"#;

fn expected() -> Value {
    json!({
        "name": "a", "b": true, "i1": -2, "u8": 18446744073709551615u64, "z": 42, "n": 12345678901234567890.100, "f": 0.10000000149011612, "d": 0.1,
        "bit1": true, "bits": 549755813889u64, "y": 2026, "v": "é", "c": "c", "j": {"a": [1, null]}, "t": "it's \\ \"quoted\" 😀", "bin": "AP8=",
        "vb": "/w==", "bl": "", "day": "2026-02-03", "clock": "-04:05:06.7", "dt": "2026-02-03T04:05:06.789", "ts": "2026-02-03T00:05:06.500Z",
        "zero": "0000-00-00 00:00:00", "e": "so so", "s": "x,y", "g": "AAAAAAEBAAAAAAAAAAAA8D8AAAAAAAAAQA==", "gen": -4, "odd `name": "odd", "nothing": null
    })
}

#[tokio::test]
async fn a_row_is_the_same_object_whatever_the_server_is_set_to() {
    let database = Server::shared().database();
    database.sql("SET SESSION sql_mode = ''");
    database.sql(TABLE);
    let mut tap = Tap::on(&database.source("items")).await;
    database.sql(ROW);
    tap.until(|tap| !tap.values.is_empty()).await;
    let row: Value = tap.values["a"].clone();
    for (name, value) in expected().as_object().unwrap() {
        assert_eq!(row[name], *value, "{name}");
    }
    assert_eq!(row, expected());
    // The digits that a reader of f64 would lose are there.
    assert!(tap.bodies["a"].contains("\"n\":12345678901234567890.100"), "{}", tap.bodies["a"]);
    for setting in ["sql_mode = 'ANSI,PAD_CHAR_TO_FULL_LENGTH'", "time_zone = '-05:00'"] {
        database.sql(&format!("SET GLOBAL {setting}"));
    }
    assert_eq!(Tap::on(&database.source("items")).await.values["a"], expected());
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_named_and_the_others_come() {
    let database = Server::shared().database();
    database.sql("CREATE TABLE items (name varchar(9) UNIQUE, value bigint, more json)");
    let deep = "[".repeat(30) + &"]".repeat(30);
    database.sql(&format!("INSERT INTO items VALUES (NULL, 1, NULL), ('fine', 1, '{deep}'), ('large', 1, CONCAT('\"', REPEAT('x', 2000), '\"'))"));
    let source = database.source("items").key(["name"]).max_row_bytes(1000);
    let mut tap = Tap::on(&source).await;
    assert_eq!(tap.names(), ["fine"]);
    let said = |tap: &Tap, text: &str| tap.log.iter().filter(|line| line.contains(text)).count();
    assert_eq!(said(&tap, "the column name is part of the key, and is empty or NULL"), 1, "{:?}", tap.log);
    assert_eq!(
        said(&tap, "rejected large: too_large (the row has 2002 bytes, and 1000 are read)"),
        1,
        "{:?}",
        tap.log
    );
    assert!(!tap.log.concat().contains("xxx"));
    database.sql("UPDATE items SET more = '1' WHERE name = 'large'");
    tap.until_value("large", 1).await;
}

#[tokio::test]
async fn a_row_that_is_larger_than_a_packet_is_named_and_the_others_come() {
    let server = Server::start(&["--max-allowed-packet=1M"]);
    let database = server.database();
    let source = database.items();
    database.sql("ALTER TABLE items ADD COLUMN a longtext, ADD COLUMN b longtext");
    // Each value fits into a packet, and both of them do not.
    database.sql("INSERT INTO items VALUES ('large', 1, REPEAT('a', 900000), ''), ('fine', 1, '', '')");
    database.sql("UPDATE items SET b = a WHERE name = 'large'");
    let mut tap = Tap::on(&source).await;
    assert_eq!(tap.names(), ["fine"]);
    assert!(
        tap.log.iter().any(|line| line.contains("rejected large: too_large (the row has 1800000 bytes")),
        "{:?}",
        tap.log
    );
    database.sql("UPDATE items SET a = '' WHERE name = 'large'; UPDATE items SET b = REPEAT('b', 400000) WHERE name = 'large'");
    tap.until_value("large", 1).await;
    assert_eq!(tap.values["large"]["b"].as_str().map(str::len), Some(400_000));
}

#[derive(Debug, Deserialize)]
struct Counted {
    value: i64,
}

#[tokio::test]
async fn a_column_of_another_type_is_named_its_rows_stay_as_they_were_and_the_others_come() {
    let database = Server::shared().database();
    let source = database.items();
    database.put("a", 1);
    let (journal, mut entries) = mpsc::channel(1_000);
    let informer = Informer::<Counted>::builder().check(true).journal(journal).start(source);
    informer.synced().await.unwrap();
    let value =
        |name: &str| informer.store().get(&Key::new(None, name)).map(|object| object.get().unwrap().value);
    assert_eq!(value("a"), Some(1));
    // A migration that the program does not know of.
    database.sql("ALTER TABLE items MODIFY value varchar(20)");
    database.sql("UPDATE items SET value = 'hunter2'");
    let said = loop {
        let entry = tokio::time::timeout(crate::server::LONG, entries.recv()).await.unwrap().unwrap();
        if let Entry::Rejected(rejection) = entry {
            break rejection.to_string();
        }
    };
    assert!(said.contains("a: ") && said.contains("value: expected i64"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    assert_eq!(value("a"), Some(1), "it stays as it was");
    database.sql("UPDATE items SET value = '7'");
    database.sql("ALTER TABLE items MODIFY value bigint NOT NULL");
    database.put("b", 2);
    let begun = std::time::Instant::now();
    while (value("a"), value("b")) != (Some(7), Some(2)) {
        assert!(begun.elapsed() < crate::server::LONG, "{:?} {:?}", value("a"), value("b"));
        let _ = tokio::time::timeout(std::time::Duration::from_millis(20), entries.recv()).await;
    }
}
