//! A watch outlives its server, again and again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::config_map;
use super::server::{Server, Writer};
use super::watcher::Watcher;

const RESTARTS: usize = 20;
const NAMES: [&str; 3] = ["a", "b", "c"];

/// One write that the server has acknowledged.
#[derive(Clone, Debug)]
struct Acknowledged {
    name: &'static str,
    version: u64,
    value: String,
}

#[derive(Default)]
struct Record {
    writes: Mutex<Vec<Acknowledged>>,
    stop: AtomicBool,
    count: AtomicUsize,
}

/// Writes value after value, each once, and notes those that were acknowledged. What fails may have been done or not.
fn write(writer: Writer, record: &Record) {
    let mut value = 0;
    while !record.stop.load(Ordering::Relaxed) {
        let name = NAMES[value % NAMES.len()];
        value += 1;
        let value = format!("v{value}");
        let path = format!("/api/v1/namespaces/default/configmaps/{name}");
        let Ok(object) = writer.try_send("PUT", &path, &config_map(name, &format!(r#"{{"n":"{value}"}}"#)))
        else {
            thread::yield_now();
            continue;
        };
        let version = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        record.writes.lock().unwrap().push(Acknowledged { name, version, value });
        record.count.fetch_add(1, Ordering::Relaxed);
        // So few that there is no checkpoint: after a restart, the past would begin there.
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn through_twenty_restarts_every_acknowledged_change_is_shown_once_and_in_order() {
    let began = Instant::now();
    let mut server = Server::start();
    for name in NAMES {
        server.writer().create("configmaps", "writer", &config_map(name, r#"{"n":"v0"}"#));
    }
    let watcher = Watcher::ready(server.watch(&["configmaps", "-o", "json", "--no-initial"]));
    let record = Arc::new(Record::default());
    let writing = thread::spawn({
        let (writer, record) = (server.writer(), Arc::clone(&record));
        move || write(writer, &record)
    });
    let more = |count: usize| {
        let wanted = record.count.load(Ordering::Relaxed) + count;
        while record.count.load(Ordering::Relaxed) < wanted {
            assert!(began.elapsed() < Duration::from_secs(120));
            thread::yield_now();
        }
    };

    let mut seen: Vec<Value> = Vec::new();
    for restart in 0..RESTARTS {
        more(10);
        // Half of them while the watch is surely connected, so that it is cut off within changes.
        if restart % 2 == 0 {
            let newest = record.writes.lock().unwrap().last().unwrap().version;
            see(&watcher, &mut seen, newest);
        }
        server.end(if restart % 4 < 2 { "KILL" } else { "TERM" });
        server.again();
    }
    more(10);
    record.stop.store(true, Ordering::Relaxed);
    writing.join().unwrap();
    let acknowledged = record.writes.lock().unwrap().clone();
    see(&watcher, &mut seen, acknowledged.last().unwrap().version);
    let notes = watcher.notes();

    let mut by_name: HashMap<String, Vec<(u64, String, String)>> = HashMap::new();
    for line in &seen {
        assert_eq!(
            (&line["type"], &line["compared"]),
            (&"MODIFIED".into(), &Value::Null),
            "{line} {notes:?}"
        );
        let change = &line["changes"][0];
        assert_eq!(
            (line["changes"].as_array().unwrap().len(), &change["path"]),
            (1, &"data.n".into()),
            "{line}"
        );
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let version = text(&line["resourceVersion"]).parse().unwrap();
        let states = by_name.entry(text(&line["name"])).or_default();
        states.push((version, text(&change["from"]), text(&change["to"])));
    }
    let mut unacknowledged = 0;
    for name in NAMES {
        let states = &by_name[name];
        assert_eq!(states[0].1, "v0");
        for pair in states.windows(2) {
            assert!(pair[0].0 < pair[1].0, "in order and once: {pair:?}");
            assert_eq!(pair[0].2, pair[1].1, "each begins where the last ended");
        }
        let own: Vec<_> = acknowledged.iter().filter(|write| write.name == name).collect();
        for write in &own {
            let shown = states
                .iter()
                .filter(|(version, _, to)| *version == write.version && *to == write.value)
                .count();
            assert_eq!(shown, 1, "{write:?}");
        }
        unacknowledged += states.len() - own.len();
    }
    // What was cut off within a write may have been done.
    assert!(unacknowledged <= RESTARTS, "{unacknowledged}");
    let lost = notes.iter().filter(|note| note.starts_with("-- connection lost: ")).count();
    let again = notes.iter().filter(|note| *note == "-- connected again, nothing missed").count();
    // A quarter of them killed it while it was connected. Of the others it may notice nothing: because it waits for its next
    // try, or because the watch was ended in good order and could be resumed at once.
    assert!(lost >= RESTARTS / 4 && again >= RESTARTS / 4, "{notes:?}");
    assert!(acknowledged.len() >= 10 * RESTARTS);
}

/// Reads lines until a version is there.
fn see(watcher: &Watcher, seen: &mut Vec<Value>, version: u64) {
    let is_newer =
        |line: &Value| line["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() >= version;
    while !seen.last().is_some_and(is_newer) {
        seen.push(serde_json::from_str(&watcher.line()).unwrap());
    }
}
