//! The recipes of the book, as they stand there.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::{fs, thread};

use serde_json::json;

use super::hook::Hook;
use super::place::{Place, Runner, ended, eventually};
use super::postgres;
use super::server::Server;

fn chapter() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/run.md");
    fs::read_to_string(path).unwrap()
}

/// The block of the chapter that has this name behind its language.
fn block(name: &str) -> String {
    let chapter = chapter();
    let mut lines =
        chapter.lines().skip_while(|line| !(line.starts_with("```") && line.ends_with(&format!(" {name}"))));
    assert!(lines.next().is_some(), "there is no block {name}");
    lines.take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect()
}

/// A command of the chapter, with the program that is tested in the place of `watchkeeper`.
fn command(line: &str, place: &Place) -> Command {
    let (program, arguments) = line.split_once(' ').unwrap();
    assert_eq!(program, "watchkeeper");
    let mut command = super::server::watchkeeper();
    command.args(arguments.split(' ')).current_dir(place.path("")).env("PATH", path());
    command.env("TMPDIR", place.path(""));
    command
}

/// Servers are not in the path of everybody, and `scripts/setup` puts one beside what it installs for other tests.
fn path() -> String {
    let target = Path::new(env!("CARGO_BIN_EXE_watchkeeper")).ancestors().nth(2).unwrap();
    let unpacked = target.join("conformance/bin");
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/local/sbin:/usr/sbin:/sbin:{}", unpacked.display())
}

fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer.split_once("\r\n\r\n")?.1.to_owned())
}

#[test]
fn the_first_file_of_the_chapter_runs() {
    let place = Place::empty();
    place.write("reactor.yaml", &block("reactor.yaml"));
    place.route("a", 1);
    let (code, _, said) = ended(command("watchkeeper run -f reactor.yaml --once", &place));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("say: Route.example.com/a | Route.example.com/a added"), "{said}");
    let (_, out, _) = ended(command("watchkeeper run -f reactor.yaml --check", &place));
    assert!(chapter().contains(out.trim()), "{out}");
}

/// Ends the nginx of a test.
struct Nginx<'a>(&'a Place);

impl Drop for Nginx<'_> {
    fn drop(&mut self) {
        if let Ok(id) = fs::read_to_string(self.0.path("nginx.pid")) {
            let _ = Command::new("kill").arg(id.trim()).status();
        }
    }
}

#[test]
fn nginx_is_reloaded_when_a_directory_changes() {
    let place = Place::empty();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let site = block("sites/hello.conf").replace("8080", &port.to_string());
    fs::create_dir(place.path("sites")).unwrap();
    place.write("nginx.conf", &block("nginx.conf"));
    place.write("sites/hello.conf", &site);
    place.write("nginx.yaml", &block("nginx.yaml"));
    let script = block("start-nginx");
    let (start, run) = script.trim().split_once('\n').unwrap();
    let nginx = Nginx(&place);
    let started =
        Command::new("sh").args(["-c", start]).current_dir(place.path("")).env("PATH", path()).status();
    assert!(started.unwrap().success(), "scripts/setup installs nginx");
    assert_eq!(get(port, "/").as_deref(), Some("hello\n"));
    let runner = Runner::start(command(run, &place));
    runner.says("reload: added .: done in ");

    place.write("sites/hello.conf", &site.replace("hello", "good morning"));
    eventually("the new text", || get(port, "/").as_deref() == Some("good morning\n"));
    // What nginx does not accept is not loaded, and said.
    place.write("sites/more.conf", "nonsense;\n");
    runner.says("nonsense");
    runner.says("reload: changed .: failed: exit code 1; trying again in ");
    assert_eq!(get(port, "/").as_deref(), Some("good morning\n"));
    place.write("sites/more.conf", "# nothing\n");
    place.write("sites/hello.conf", &site.replace("hello", "good night"));
    eventually("the newest text", || get(port, "/").as_deref() == Some("good night\n"));
    drop(runner);
    drop(nginx);
}

/// A service with a list of routes.
fn routes() -> (u16, Arc<Mutex<serde_json::Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let list = Arc::new(Mutex::new(json!([])));
    let shown = Arc::clone(&list);
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let body = json!({"routes": *shown.lock().unwrap()}).to_string();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    (port, list)
}

/// Runs the recipe with a source in the place of the chapter's, whose routes `set` replaces: each a name and a port.
fn kept_equal_to_a_table(source: &str, set: impl Fn(&[(&str, u16)])) {
    let server = Server::start();
    let writer = server.writer();
    let place = Place::empty();
    let table = block("table.yaml");
    let chapters = "  - name: routes\n    url: postgres://app@db.example.com/shop?table=routes\n";
    assert!(table.contains(chapters));
    place.write("table.yaml", &table.replace(chapters, source));
    set(&[("cart", 80), ("pay", 81), ("ship", 82)]);
    let start = || {
        let mut command = command(block("run-table").trim(), &place);
        command.env("KUBECONFIG", server.path("kubeconfig"));
        Runner::start(command)
    };
    let upstreams = || {
        let maps = writer.send("GET", "/api/v1/namespaces/default/configmaps", "");
        let maps = maps["items"].as_array().unwrap().clone();
        let routes = maps.iter().filter_map(|map| map["data"]["upstream"].as_str().map(str::to_owned));
        routes.collect::<Vec<_>>()
    };
    let mut runner = start();
    eventually("three", || upstreams() == ["http://cart:80", "http://pay:81", "http://ship:82"]);
    let map = writer.send("GET", "/api/v1/namespaces/default/configmaps/route-cart", "");
    assert_eq!(map["data"]["host"], "cart.example.com");
    set(&[("cart", 8080), ("ship", 82)]);
    eventually("a change and an end", || upstreams() == ["http://cart:8080", "http://ship:82"]);
    runner.kill();
    set(&[("cart", 8080), ("back", 1)]);
    let _runner = start();
    eventually("what happened meanwhile", || upstreams() == ["http://back:1", "http://cart:8080"]);
}

#[test]
fn config_maps_are_kept_equal_to_a_table() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(postgres::Server::shared().database());
    let sql = |statements: &str| runtime.block_on(database.sql(statements));
    sql("CREATE TABLE routes (name text PRIMARY KEY, host text, service text, port integer)");
    let source = format!("  - name: routes\n    url: {}?table=routes&interval=100ms\n", database.url);
    kept_equal_to_a_table(&source, |routes| {
        let row = |(name, port): &(&str, u16)| format!("('{name}', '{name}.example.com', '{name}', {port})");
        let rows: Vec<String> = routes.iter().map(row).collect();
        sql(&format!("BEGIN; DELETE FROM routes; INSERT INTO routes VALUES {}; COMMIT", rows.join(", ")));
    });
}

#[test]
fn config_maps_are_kept_equal_to_a_list_behind_a_url() {
    let (port, list) = routes();
    let source = block("table-source.yaml").replace("8081", &port.to_string());
    kept_equal_to_a_table(&source, |routes| {
        let row = |(name, port): &(&str, u16)| json!({"name": name, "host": format!("{name}.example.com"), "service": name, "port": port});
        *list.lock().unwrap() = routes.iter().map(row).collect();
    });
}

const BACKUPS: &str = r#"{"metadata":{"name":"backups.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
 "names":{"plural":"backups","singular":"backup","kind":"Backup"},
 "versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
  "schema":{"openAPIV3Schema":{"type":"object","properties":{"status":{"type":"object","properties":{"phase":{"type":"string"},"percent":{"type":"integer"}}}}}}}]}}"#;

#[test]
fn a_webhook_is_called_when_the_phase_of_a_custom_resource_flips() {
    let server = Server::start();
    let writer = server.writer();
    let hook = Hook::start(&[]);
    let place = Place::empty();
    place.write("phase.yaml", &block("phase.yaml"));
    place.write("hook-url", &hook.url("/services/secret-word"));
    let start = || {
        let mut command = command(block("run-phase").trim(), &place);
        command.env("KUBECONFIG", server.path("kubeconfig"));
        Runner::start(command)
    };
    // Before there is such a kind at all.
    let mut runner = start();
    runner.says(
        "backups: missing: the kind Backup of example.com/v1 does not exist in the cluster; trying again in ",
    );
    writer.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", BACKUPS);
    runner.says("backups: 0 objects");
    let backups = "/apis/example.com/v1/namespaces/default/backups";
    let mut created = Err(std::io::Error::other("not yet"));
    eventually("the kind", || {
        created = writer.try_send(
            "POST",
            backups,
            r#"{"apiVersion":"example.com/v1","kind":"Backup","metadata":{"name":"db"}}"#,
        );
        created.is_ok()
    });
    let status = |status: &str| {
        writer.send("PATCH", &format!("{backups}/db/status"), &format!(r#"{{"status":{status}}}"#))
    };
    let texts = || {
        hook.received()
            .iter()
            .map(|received| received.json()["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    eventually("the object", || {
        runner.said().iter().any(|line| line.contains("backups")) && place.lines("phase.state").len() > 1
    });
    status(r#"{"phase":"Running"}"#);
    eventually("one", || texts() == ["backup default/db: new -> Running"]);
    // What is no flip is not told.
    status(r#"{"percent":50}"#);
    status(r#"{"phase":"Complete"}"#);
    eventually("two", || texts().len() == 2);
    assert_eq!(texts()[1], "backup default/db: Running -> Complete");
    eventually("the end of it", || runner.said().iter().filter(|line| line.contains("done in")).count() == 2);
    runner.kill();
    status(r#"{"phase":"Failed"}"#);
    let mut runner = start();
    eventually("three", || texts().len() == 3);
    assert_eq!(texts()[2], "backup default/db: Complete -> Failed");
    runner.says("done in");
    runner.signal("TERM");
    assert!(!runner.end().1.join("\n").contains("secret-word"));
}
