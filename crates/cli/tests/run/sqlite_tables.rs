//! `watch` and `run` over a table in a file of SQLite.

use rusqlite::Connection;

use super::place::{Place, ended};
use super::server::watchkeeper;
use super::watcher::Watcher;

fn items(place: &Place) -> Connection {
    let connection = Connection::open(place.path("app.db")).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE items (name TEXT PRIMARY KEY, value INTEGER NOT NULL); INSERT INTO items VALUES ('a', 1)",
        )
        .unwrap();
    connection
}

#[test]
fn rows_of_sqlite_are_shown_as_kinds_are() {
    let place = Place::empty();
    let items = items(&place);
    let mut command = watchkeeper();
    command.arg("watch").arg("sqlite:./app.db?table=items&interval=20ms").current_dir(place.path(""));
    let watcher = Watcher::start(command);
    assert_eq!(watcher.told(), "PRESENT   a");
    watcher.note("-- watching ");
    items.execute_batch("INSERT INTO items VALUES ('b', 2)").unwrap();
    assert_eq!(watcher.told(), "ADDED     b");
    items.execute_batch("UPDATE items SET value = 7 WHERE name = 'a'").unwrap();
    assert_eq!(watcher.told(), "MODIFIED  a  value: 1 -> 7");
    items.execute_batch("DELETE FROM items WHERE name = 'b'").unwrap();
    assert_eq!(watcher.told(), "DELETED   b");
    watcher.signal("INT");
    assert_eq!(watcher.end().0, Some(0));
}

#[test]
fn rows_of_sqlite_are_reacted_to_and_what_was_delivered_survives_a_restart() {
    let place = Place::empty();
    let items = items(&place);
    place.write(
        "reactor.yaml",
        "apiVersion: run.watchkeeper.dev/v1alpha1\nkind: Reactor\nmetadata: {name: test}\nspec:\n  sources:\n  - name: items\n    \
         url: sqlite:./app.db\n    settings: {table: items, interval: 20ms}\n  reactions:\n  - {name: log, on: items, do: {shell: \
         'echo \"$WATCHKEEPER_EVENT $WATCHKEEPER_NAME\" >> log'}}\n",
    );
    let state = place.path("state");
    let arguments = ["--state", state.to_str().unwrap()];
    let mut runner = place.run(&arguments);
    place.has("log", &["added a"]);
    items.execute_batch("INSERT INTO items VALUES ('b', 1)").unwrap();
    place.has("log", &["added a", "added b"]);
    runner.signal("TERM");
    assert_eq!(runner.end().0, Some(0));
    // While nobody looks.
    items.execute_batch("DELETE FROM items WHERE name = 'a'; UPDATE items SET value = 2").unwrap();
    for _ in 0..2 {
        let (code, _, said) = ended(place.command(&["--once", arguments[0], arguments[1]]));
        assert_eq!(code, Some(0), "{said}");
        place.has("log", &["added a", "added b", "gone a", "changed b"]);
    }
}
