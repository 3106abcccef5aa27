//! `watchkeeper gateway`, as a stranger meets it: the commands of the chapter.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../../sources/tests/postgres/server.rs"]
mod postgres;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(60);

fn gateway(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    command.arg("gateway").args(arguments).stdin(Stdio::null());
    command
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway")
}

/// A copy of the example that may be changed.
fn copied() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(example()).unwrap() {
        let file = entry.unwrap().path();
        fs::copy(&file, directory.path().join(file.file_name().unwrap())).unwrap();
    }
    directory
}

/// One that runs, killed if the test does not end it.
struct Running {
    child: Child,
    web: String,
    admin: String,
    log: Arc<Mutex<String>>,
}

impl Running {
    fn start(directory: &Path) -> Self {
        Self::start_with(directory, &[])
    }

    fn start_with(directory: &Path, more: &[&str]) -> Self {
        let from = format!("file:{}", directory.display());
        let mut child = gateway(&["--from", &from, "--listen", "web=127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let (mut web, mut admin) = (None, None);
        while web.is_none() || admin.is_none() {
            let mut line = String::new();
            assert!(log.read_line(&mut line).unwrap() > 0, "it ended");
            let after = |mark: &str| {
                let rest = line.split(mark).nth(1)?;
                Some(rest.split([' ', '/', '\n']).next()?.to_owned())
            };
            web = web.or_else(|| after("listening on "));
            admin = admin.or_else(|| after("admin endpoint on http://"));
        }
        let said = Arc::<Mutex<String>>::default();
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            let mut line = String::new();
            while log.read_line(&mut line).is_ok_and(|length| length > 0) {
                heard.lock().unwrap().push_str(&std::mem::take(&mut line));
            }
        });
        Self { child, web: web.unwrap(), admin: admin.unwrap(), log: said }
    }

    fn stop(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn text(output: &Output) -> (Option<i32>, String, String) {
    let read = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), read(&output.stdout), read(&output.stderr))
}

#[test]
fn the_example_serves_at_once_and_an_edit_changes_the_next_answer() {
    let directory = copied();
    let running = Running::start(directory.path());
    let begin = Instant::now();
    while !get(&running.admin, "/readyz").ends_with("\r\n\r\nok\n") {
        assert!(begin.elapsed() < TIMEOUT);
        sleep(Duration::from_millis(5));
    }
    assert!(get(&running.web, "/hello").ends_with("\r\n\r\nHello from the gateway.\n"));
    let file = directory.path().join("routes.yaml");
    let routes = fs::read_to_string(&file).unwrap();
    fs::write(&file, routes.replace("Hello from", "Servus from")).unwrap();
    while !get(&running.web, "/hello").ends_with("\r\n\r\nServus from the gateway.\n") {
        assert!(begin.elapsed() < TIMEOUT);
        sleep(Duration::from_millis(5));
    }
    let url = format!("http://{}/hello", running.web);
    let output = gateway(&["explain", "--admin", &running.admin, "GET", &url]).output().unwrap();
    let (code, said, _) = text(&output);
    assert_eq!(code, Some(0));
    assert!(
        said.contains("route     default/hello rules[0].matches[0]: host *, path prefix /hello\n"),
        "{said}"
    );
    assert_eq!(running.stop(), Some(0));
}

/// Asks again and again over one connection, and over another one only when it is told to: over how many.
fn ask_on(address: &str, stop: &AtomicBool, asked: &AtomicUsize) -> usize {
    let mut connections = 0;
    while !stop.load(Relaxed) {
        let mut stream = BufReader::new(TcpStream::connect(address).expect("refused"));
        stream.get_ref().set_read_timeout(Some(TIMEOUT)).unwrap();
        connections += 1;
        loop {
            write!(stream.get_mut(), "GET /hello HTTP/1.1\r\nhost: a\r\n\r\n")
                .expect("closed before it was used");
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert!(stream.read_line(&mut head).expect("reset") > 0, "an answer was lost: {head:?}");
            }
            let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            stream.read_exact(&mut body).expect("an answer was cut");
            assert!(head.starts_with("HTTP/1.1 200 ") && body == b"Hello from the gateway.\n", "{head}");
            asked.fetch_add(1, Relaxed);
            if head.contains("connection: close\r\n") || stop.load(Relaxed) {
                break;
            }
        }
    }
    connections
}

#[test]
fn another_process_takes_over_and_nobody_is_refused() {
    let directory = copied();
    let mut running = Running::start(directory.path());
    let begin = Instant::now();
    let wait = |what: &str| {
        assert!(begin.elapsed() < TIMEOUT, "{what}");
        sleep(Duration::from_millis(5));
    };
    while !get(&running.admin, "/readyz").ends_with("\r\n\r\nok\n") {
        wait("ready");
    }
    let stop = Arc::new(AtomicBool::new(false));
    let asking = std::thread::spawn({
        let (stop, web) = (Arc::clone(&stop), running.web.clone());
        move || {
            let mut count = 0;
            while !stop.load(Relaxed) {
                assert!(get(&web, "/hello").ends_with("\r\n\r\nHello from the gateway.\n"));
                count += 1;
            }
            count
        }
    });
    let asked = Arc::<AtomicUsize>::default();
    let staying = std::thread::spawn({
        let (stop, asked, web) = (Arc::clone(&stop), Arc::clone(&asked), running.web.clone());
        move || ask_on(&web, &stop, &asked)
    });
    while asked.load(Relaxed) == 0 {
        wait("the first answer");
    }
    let signal = |signal: &str, process: &str| {
        assert!(Command::new("kill").args(["-s", signal, process]).status().unwrap().success());
    };
    signal("USR2", &running.child.id().to_string());
    let code = loop {
        match running.child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None => wait("the first process to end"),
        }
    };
    assert_eq!(code, Some(0), "{}", running.log.lock().unwrap());
    stop.store(true, Relaxed);
    assert!(asking.join().unwrap() > 0);
    assert_eq!(staying.join().unwrap(), 2, "it was told once to connect anew, of {asked:?} answers");
    assert!(get(&running.web, "/hello").ends_with("\r\n\r\nHello from the gateway.\n"));
    assert!(get(&running.admin, "/readyz").ends_with("\r\n\r\nok\n"));
    let log = running.log.lock().unwrap().clone();
    let second = log.split(" serves in the place of this one").next().unwrap().rsplit(' ').next().unwrap();
    assert_ne!(second, running.child.id().to_string());
    signal("TERM", second);
    while TcpStream::connect(&running.web).is_ok() {
        wait("the second process to end");
    }
}

#[test]
fn files_are_checked_without_a_gateway() {
    let directory = copied();
    let path = directory.path().display().to_string();
    let (code, said, _) = text(&gateway(&["check", &path]).output().unwrap());
    assert_eq!((code, said), (Some(0), format!("{path}: no mistakes; objects: 4\n")));
    let file = directory.path().join("routes.yaml");
    let routes = fs::read_to_string(&file).unwrap();
    fs::write(&file, routes.replace("prefix: /hello", "prefix: hello")).unwrap();
    let (code, said, complaint) = text(&gateway(&["check", &path]).output().unwrap());
    assert_eq!(code, Some(1));
    let expected = format!(
        "{path}/routes.yaml:10:9: document 1: GatewayRoute default/hello: spec.rules[0].matches[0].path.prefix: \"hello\" does not begin \
         with a slash\n"
    );
    assert_eq!((said, complaint), (expected, format!("watchkeeper: {path}: mistakes: 1\n")));
}

#[test]
fn what_makes_no_sense_is_said_in_a_line() {
    for (arguments, expected) in [
        (&[][..], "--from"),
        (
            &["--from", "examples"],
            "--from \"examples\" is neither kubernetes nor a URL: for files, file:examples",
        ),
        (&["--from", "ftp://x"], "is no URL that can be watched"),
        (&["--from", "file:x", "--admin", "0.0.0.0:1"], "is not a loopback address"),
        (&["--from", "file:x", "--listen", "web"], "--listen \"web\" is not of the form NAME=ADDRESS:PORT"),
        (
            &["--from", "file:x", "--share-budgets=mysql://x"],
            "--share-budgets: expected postgres://user@host/database",
        ),
        (
            &["--from", "file:x", "--records-database", "postgres://h/db"],
            "--records-database: it names no user",
        ),
        (&["usage"], "--records"),
        (&["usage", "--records-database", "x"], "--records-database: expected postgres://user@host/database"),
        (&["check", "does/not/exist"], "does/not/exist: "),
        (&["explain", "GET", "/path"], "\"/path\" is not a URL"),
    ] {
        let (code, _, complaint) = text(&gateway(arguments).output().unwrap());
        assert_eq!((code, complaint.lines().count()), (Some(2), 1), "{arguments:?}: {complaint}");
        assert!(complaint.contains(expected), "{arguments:?}: {complaint}");
    }
}

#[test]
fn the_kinds_are_printed_for_a_cluster() {
    let (code, said, _) = text(&gateway(&["crds"]).output().unwrap());
    assert_eq!(code, Some(0));
    for kind in ["GatewayListener", "GatewayRoute", "GatewayBackend", "GatewayPolicy"] {
        assert!(said.contains(&format!("    kind: {kind}\n")), "{kind}");
    }
}

#[test]
fn the_example_with_models_does_what_its_chapter_says() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ai-gateway");
    let output = Command::new(example.join("try"))
        .env("WATCHKEEPER", env!("CARGO_BIN_EXE_watchkeeper"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("== all as it should be"), "{said}");
    let checked = gateway(&["check", &example.display().to_string()]).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn a_key_is_shown_once_and_its_digest_goes_into_a_policy() {
    let output = gateway(&["key", "jane"]).output().unwrap();
    let key = String::from_utf8(output.stdout).unwrap();
    let entry = String::from_utf8(output.stderr).unwrap();
    assert!(key.starts_with("wk-") && key.trim().len() == 67, "{key}");
    let digest = entry.split("sha256: ").nth(1).unwrap().trim();
    assert!(
        entry.starts_with("- name: \"jane\"\n") && digest.len() == 64 && !entry.contains(key.trim()),
        "{entry}"
    );
    let other = gateway(&["key", "jane"]).output().unwrap().stdout;
    assert_ne!(other, key.into_bytes());
}

/// Calls a model with the key of the example; the code.
fn call(address: &str) -> String {
    let body = r#"{"model": "m", "messages": [{"role": "user", "content": "hi"}]}"#;
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer wk-example\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// A provider that has no models, and the objects of a gateway whose key may make so many requests a month.
fn models(requests: u32) -> (Child, tempfile::TempDir) {
    let mut mock = gateway(&["mock", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(mock.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let policy = fs::read_to_string(example().join("../ai-gateway/policy.yaml")).unwrap();
    let digest = policy.lines().find_map(|line| line.trim().strip_prefix("sha256: ")).unwrap().to_owned();
    let text = format!(
        "apiVersion: gateway.watchkeeper.dev/v1alpha1\nkind: GatewayListener\nmetadata: {{name: web}}\nspec: {{port: 8080}}\n---\n\
         apiVersion: gateway.watchkeeper.dev/v1alpha1\nkind: AIGatewayConfig\nmetadata: {{name: models}}\nspec: {{providers: [{{name: one, dialect: OpenAI, url: '{}'}}]}}\n---\n\
         apiVersion: gateway.watchkeeper.dev/v1alpha1\nkind: ModelContextMapping\nmetadata: {{name: m}}\nspec: {{model: m, targets: [{{provider: one, model: echo}}]}}\n---\n\
         apiVersion: gateway.watchkeeper.dev/v1alpha1\nkind: LLMGatewayPolicy\nmetadata: {{name: p}}\nspec: {{keys: [{{name: jane, sha256: '{digest}'}}], limits: [{{per: Month, requests: {requests}}}]}}\n",
        url.trim()
    );
    let objects = tempfile::tempdir().unwrap();
    fs::write(objects.path().join("objects.yaml"), text).unwrap();
    (mock, objects)
}

/// A gateway that serves.
fn ready(objects: &Path, more: &[&str]) -> Running {
    let running = Running::start_with(objects, more);
    let begin = Instant::now();
    while !get(&running.admin, "/readyz").ends_with("\r\n\r\nok\n") {
        assert!(begin.elapsed() < TIMEOUT);
        sleep(Duration::from_millis(5));
    }
    running
}

#[test]
fn processes_share_a_budget_and_a_table_of_records_and_one_is_killed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(postgres::Server::shared().database());
    let (mut mock, objects) = models(40);
    let shared = format!("--share-budgets={}", database.url);
    let start = || ready(objects.path(), &[&shared, "--records-database", &database.url]);
    let (mut one, other) = (start(), start());
    for _ in 0..5 {
        assert_eq!((call(&one.web), call(&other.web)), ("200".to_owned(), "200".to_owned()));
    }
    // Calls and costs by key, as the table tells.
    let used = || {
        let said = gateway(&["usage", "--records-database", &database.url, "--by", "key", "-o", "json"])
            .output()
            .unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let line = String::from_utf8(said.stdout).unwrap();
        assert!(line.is_empty() || line.contains("\"key\":\"jane\""), "{line}");
        line.split("\"calls\":")
            .nth(1)
            .map_or(0, |rest| rest.split(',').next().unwrap().parse::<u32>().unwrap())
    };
    let until = |count: u32| {
        let begin = Instant::now();
        while used() != count {
            assert!(begin.elapsed() < TIMEOUT, "{}", used());
        }
    };
    runtime.block_on(database.until("to_regclass('watchkeeper_ai_calls') IS NOT NULL"));
    until(10);
    one.child.kill().unwrap();
    one.child.wait().unwrap();
    let served = (0..100).take_while(|_| call(&other.web) == "200").count() as u32;
    // What the one that was killed had leased and not spent is at most a slice, of one request.
    assert!((29..=30).contains(&served), "{served}");
    until(10 + served + 1);
    drop(other);
    mock.kill().unwrap();
    mock.wait().unwrap();
}

#[test]
fn usage_is_told_of_one_namespace() {
    let records = tempfile::tempdir().unwrap();
    let line = |namespace: &str, key: &str, tokens: u32| {
        format!(
            "{{\"time\":\"2026-11-18T00:00:00.000000Z\",\"namespace\":\"{namespace}\",\"key\":\"{key}\",\"model\":\"m\",\"inputTokens\":{tokens}}}\n"
        )
    };
    let lines = [line("team-a", "jane", 3), line("team-b", "jane", 50), line("team-a", "joe", 7)].concat();
    fs::write(records.path().join("calls-1.jsonl"), lines).unwrap();
    let directory = records.path().display().to_string();
    let told = |more: &[&str]| {
        let arguments =
            [&["usage", "--records", &directory, "--by", "namespace", "-o", "json"], more].concat();
        let (code, said, _) = text(&gateway(&arguments).output().unwrap());
        assert_eq!(code, Some(0));
        let part = |line: &str| (line.contains("team-a"), line.contains("\"inputTokens\":10,"));
        said.lines().map(part).collect::<Vec<_>>()
    };
    assert_eq!(told(&[]), [(true, true), (false, false)]);
    assert_eq!(told(&["--namespace", "team-a"]), [(true, true)]);
    assert_eq!(told(&["--namespace", "team-c"]), []);
}

#[test]
fn a_gateway_that_is_killed_knows_afterwards_what_was_used() {
    let records = tempfile::tempdir().unwrap();
    let (mut mock, objects) = models(3);
    let directory = records.path().display().to_string();
    let start = || ready(objects.path(), &["--records", &directory]);
    let mut running = start();
    assert_eq!((call(&running.web), call(&running.web)), ("200".to_owned(), "200".to_owned()));
    let begin = Instant::now();
    let lines = || -> usize {
        let files = fs::read_dir(records.path()).unwrap().map(|entry| entry.unwrap().path());
        files.map(|file| fs::read_to_string(file).unwrap().lines().count()).sum()
    };
    while lines() < 2 {
        assert!(begin.elapsed() < TIMEOUT);
    }
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let again = start();
    assert_eq!((call(&again.web), call(&again.web)), ("200".to_owned(), "429".to_owned()));
    mock.kill().unwrap();
    mock.wait().unwrap();
}
