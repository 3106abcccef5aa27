//! Sources that are no cluster: files and lists behind URLs.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use super::run;
use super::server::watchkeeper;
use super::watcher::Watcher;

fn watch(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = watchkeeper();
    command.arg("watch").args(arguments).current_dir(directory);
    command
}

fn route(directory: &Path, name: &str, port: u16) {
    let text = format!(
        "apiVersion: example.com/v1\nkind: Route\nmetadata: {{name: {name}}}\nspec: {{port: {port}}}\n"
    );
    let new = directory.join(".new");
    fs::write(&new, text).unwrap();
    fs::rename(new, directory.join(format!("config/{name}.yaml"))).unwrap();
}

#[test]
fn documents_in_a_directory_are_shown_as_kinds_are() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    fs::create_dir(here.join("config")).unwrap();
    route(here, "a", 80);
    let watcher = Watcher::start(watch(here, &["file:./config/"]));
    assert_eq!(watcher.told(), "PRESENT   Route.example.com/a");
    assert_eq!(watcher.note("-- watching"), "-- watching ./config/ (1 there)");
    route(here, "b", 81);
    assert_eq!(watcher.told(), "ADDED     Route.example.com/b");
    route(here, "a", 8080);
    assert_eq!(watcher.told(), "MODIFIED  Route.example.com/a  spec.port: 80 -> 8080");
    fs::remove_file(here.join("config/a.yaml")).unwrap();
    assert_eq!(watcher.told(), "DELETED   Route.example.com/a");
    fs::write(here.join("config/c.yaml"), "a: [").unwrap();
    let note = watcher.note("-- a change of ./config/ cannot be shown: ");
    assert!(note.contains("config/c.yaml:2:1: "), "{note}");
    let secret =
        |data: &str| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\ndata: {{a: {data}}}\n");
    fs::write(here.join("config/s.yaml"), secret("c2VjcmV0")).unwrap();
    assert_eq!(watcher.told(), "ADDED     Secret/s");
    fs::write(here.join("config/s.yaml"), secret("c2VjcmV0cw==")).unwrap();
    assert_eq!(watcher.told(), "MODIFIED  Secret/s  data.a: (6 bytes) -> (7 bytes) changed");
    watcher.signal("INT");
    let (code, _, notes) = watcher.end();
    assert_eq!(code, Some(0));
    assert!(notes.last().unwrap().starts_with("-- 5 changes of 3 objects in "), "{notes:?}");
}

#[test]
fn programs_get_the_source_and_what_the_object_says_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    fs::create_dir(here.join("config")).unwrap();
    route(here, "a", 80);
    let arguments = ["file:./config/?apiVersion=example.com/v1&kind=Route", "-o", "json", "--timeout", "1s"];
    let (code, lines, _) = run(watch(here, &arguments));
    let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(code, Some(0));
    for (member, expected) in [
        ("type", "PRESENT"),
        ("source", "./config/"),
        ("apiVersion", "example.com/v1"),
        ("kind", "Route"),
        ("name", "a"),
    ] {
        assert_eq!(line[member], expected, "{line}");
    }
}

#[test]
fn items_behind_a_url_are_shown_without_the_secrets_of_the_url() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let body = Arc::new(Mutex::new(r#"{"items":[{"id":7,"state":"new"}]}"#.to_owned()));
    let shown = Arc::clone(&body);
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 4096];
            let count = stream.read(&mut request).unwrap_or(0);
            seen.lock().unwrap().push(String::from_utf8_lossy(&request[..count]).into_owned());
            let body = shown.lock().unwrap().clone();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    let url =
        format!("http://me:pass-word@{address}/items.json?token=query-word#/items?key=/id&interval=100ms");
    let watcher = Watcher::start(watch(Path::new("."), &[&url]));
    assert_eq!(watcher.note("-- "), format!("-- watching http://{address}/items.json (1 there)"));
    assert_eq!(watcher.told(), "PRESENT   7");
    *body.lock().unwrap() = r#"{"items":[{"id":7,"state":"paid"},{"id":8}]}"#.to_owned();
    let mut told = [watcher.told(), watcher.told()];
    told.sort();
    assert_eq!(told, ["ADDED     8", "MODIFIED  7  state: new -> paid"]);
    *body.lock().unwrap() = "oops".to_owned();
    let lost = watcher.note("-- connection lost: ");
    assert!(!lost.contains("-word"), "{lost}");
    watcher.signal("INT");
    let (_, out, notes) = watcher.end();
    let said = format!("{out:?} {notes:?}");
    assert!(!said.contains("pass-word") && !said.contains("query-word"), "{said}");
    let request = requests.lock().unwrap()[0].to_lowercase();
    assert!(request.starts_with("get /items.json?token=query-word http/1.1"), "{request}");
    assert!(request.contains("authorization: basic bwu6cgfzcy13b3jk"), "{request}");
}

#[test]
fn what_cannot_be_watched_is_said_in_one_line_without_secrets() {
    let here = Path::new("/");
    for (arguments, code, expected) in [
        (
            &["postgres://me:pass-word@host/db"][..],
            2,
            "postgres://host/db: it names no table: expected ...?table=NAME",
        ),
        (
            &["etcd://me:pass-word@host/prefix"],
            2,
            "etcd://host/prefix: has a user in it: use the settings user and passwordFile",
        ),
        (
            &["ftp://me:pass-word@host/x"],
            2,
            "ftp://host/x: is no URL that can be watched: it has to begin with one of file:, http:, https:, postgres:, postgresql:, mysql:, mariadb:, sqlite:, etcd:",
        ),
        (
            &["file:x", "pods"],
            2,
            "\"pods\" is a kind of a cluster, which cannot be watched together with URLs",
        ),
        (&["file:x", "-n", "shop"], 2, "--namespace is for kinds of a cluster, not for URLs"),
        (&["file:x", "-l", "a=b"], 2, "--selector is for kinds of a cluster, not for URLs"),
        (
            &["file:x?as=bundle"],
            2,
            "file:x: \"bundle\" is not one of documents, bundles; did you mean bundles?",
        ),
        (&["file:/nonexistent/routes/"], 1, "/nonexistent/routes/: "),
    ] {
        let (ended, lines, said) = run(watch(here, arguments));
        assert_eq!((ended, lines.len()), (Some(code), 0), "{said}");
        assert!(said.starts_with(&format!("watchkeeper: {expected}")), "{said}");
        assert!(said.lines().count() == 1 && !said.contains("pass-word"), "{said}");
    }
}
