//! `watch` and `run` over a table of a real MariaDB.

use super::mysql::Server;
use super::place::{Place, ended};
use super::server::watchkeeper;
use super::watcher::Watcher;

#[test]
fn rows_of_mysql_are_shown_as_kinds_are_and_no_password_is() {
    let database = Server::shared().database();
    database.items();
    database.sql("CREATE USER IF NOT EXISTS 'reader'@'%' IDENTIFIED BY 'pass-word'; GRANT SELECT ON *.* TO 'reader'@'%'");
    database.put("a", 1);
    let url = database.url.replace("mysql://root@", "mysql://reader:pass-word@");
    let mut command = watchkeeper();
    command.arg("watch").arg(format!("{url}?table=items&interval=50ms&ssl-mode=preferred"));
    let watcher = Watcher::start(command);
    assert_eq!(watcher.told(), "PRESENT   a");
    watcher.note("-- watching ");
    database.put("b", 2);
    assert_eq!(watcher.told(), "ADDED     b");
    database.put("a", 7);
    assert_eq!(watcher.told(), "MODIFIED  a  value: 1 -> 7");
    database.sql("DELETE FROM items WHERE name = 'b'");
    assert_eq!(watcher.told(), "DELETED   b");
    watcher.signal("INT");
    let (code, out, notes) = watcher.end();
    assert_eq!(code, Some(0));
    assert!(!format!("{out:?} {notes:?}").contains("pass-word"), "{notes:?}");
}

#[test]
fn rows_of_mysql_are_reacted_to_and_what_was_delivered_survives_a_restart() {
    let database = Server::shared().database();
    database.items();
    database.put("a", 1);
    let place = Place::empty();
    let reactor = |url: &str| {
        format!(
            "apiVersion: run.watchkeeper.dev/v1alpha1\nkind: Reactor\nmetadata: {{name: test}}\nspec:\n  sources:\n  - name: items\n    \
             url: {url}?table=items\n    settings: {{interval: 50ms}}\n  reactions:\n  - {{name: log, on: items, do: {{shell: \
             'echo \"$WATCHKEEPER_EVENT $WATCHKEEPER_NAME\" >> log'}}}}\n"
        )
    };
    place.write("reactor.yaml", &reactor(&database.url));
    let state = place.path("state");
    let arguments = ["--state", state.to_str().unwrap()];
    let mut runner = place.run(&arguments);
    place.has("log", &["added a"]);
    database.put("b", 1);
    place.has("log", &["added a", "added b"]);
    runner.signal("TERM");
    assert_eq!(runner.end().0, Some(0));
    // While nobody looks.
    database.sql("DELETE FROM items WHERE name = 'a'");
    database.put("b", 2);
    let (code, _, said) = ended(place.command(&["--once", arguments[0], arguments[1]]));
    assert_eq!(code, Some(0), "{said}");
    place.has("log", &["added a", "added b", "gone a", "changed b"]);
    let (code, _, said) = ended(place.command(&["--once", arguments[0], arguments[1]]));
    assert_eq!(code, Some(0), "{said}");
    place.has("log", &["added a", "added b", "gone a", "changed b"]);
}
