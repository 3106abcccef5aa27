//! What a server that is attacked costs, and whether others notice: memory at its peak and after, and how long an innocent
//! client waits meanwhile. `cargo test --release -p watchkeeper-cli --test burden -- --nocapture` prints the numbers;
//! `WATCHKEEPER_BINARY` measures another binary.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The tokens of the administrator, and of somebody with no rights at all.
const ADMIN: &str = "admin-token";
const NOBODY: &str = "nobody-token";

/// The attacks come one after the other: each is measured against what the server was like before.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

struct Server {
    child: Child,
    http: SocketAddr,
    _directory: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let tokens = directory.path().join("tokens.csv");
        std::fs::write(&tokens, format!("{ADMIN},admin,1,system:masters\n{NOBODY},nobody,2,nobodies\n"))
            .unwrap();
        std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
        let http = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let binary = std::env::var("WATCHKEEPER_BINARY");
        let mut child = Command::new(binary.as_deref().unwrap_or(env!("CARGO_BIN_EXE_watchkeeper")))
            .args([
                "serve",
                "--in-memory",
                "--listen",
                "127.0.0.1:0",
                "--http",
                &http.to_string(),
                "--token-file",
            ])
            .arg(&tokens)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        assert!(ready.starts_with("ready"), "{ready}");
        Self { child, http, _directory: directory }
    }

    /// Resident memory in MiB, now or at its peak.
    fn memory(&self, line: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|found| found.strip_prefix(line)).unwrap();
        line.trim_start_matches(':').trim().strip_suffix(" kB").unwrap().parse::<f64>().unwrap() / 1024.0
    }

    /// How long it has computed, in seconds.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // The 12th and 13th field after the name, in hundredths.
        let fields = stat.rsplit_once(") ").unwrap().1.split(' ').skip(11).take(2);
        fields.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.http).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream
    }

    /// Sends a request on a new connection and returns the code.
    fn send(&self, token: &str, method: &str, path: &str, body: &[u8]) -> u16 {
        let mut stream = self.connect();
        request(&mut stream, token, method, path, body);
        let mut answer = Vec::new();
        // A body that is refused before it is read may break the connection, after the answer.
        let _ = stream.read_to_end(&mut answer);
        code(&answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn request(stream: &mut TcpStream, token: &str, method: &str, path: &str, body: &[u8]) {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         accept-encoding: gzip\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
}

fn code(answer: &[u8]) -> u16 {
    let text = String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned();
    text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

/// Asks for one small object over a kept connection, again and again, until told to stop; returns how long each took.
fn innocent(server: &Server, stop: &AtomicBool) -> Vec<Duration> {
    let mut stream = BufReader::new(server.connect());
    let mut times = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let begin = Instant::now();
        let get = format!(
            "GET /api/v1/namespaces/default HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {ADMIN}\r\n\r\n"
        );
        stream.get_mut().write_all(get.as_bytes()).unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the connection was closed");
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        stream.read_exact(&mut vec![0; length]).unwrap();
        times.push(begin.elapsed());
        thread::sleep(Duration::from_millis(2));
    }
    times
}

/// Runs something while an innocent client asks; says how long that client waited.
fn during(server: &Server, what: &str, attack: impl FnOnce()) -> Duration {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let innocent = scope.spawn(|| innocent(server, &stop));
        let begin = Instant::now();
        // The other client stops in any case, or a failure would never be heard of.
        let attacked = catch_unwind(AssertUnwindSafe(attack));
        let took = begin.elapsed();
        stop.store(true, Ordering::Relaxed);
        if let Err(failure) = attacked {
            resume_unwind(failure);
        }
        let mut times = innocent.join().unwrap();
        times.sort();
        let at = |share: usize| times[(times.len() - 1) * share / 100];
        println!(
            "{what}: {took:.1?}; innocent of {}: p50 {:.1?}, p99 {:.1?}, max {:.1?}",
            times.len(),
            at(50),
            at(99),
            at(100)
        );
        at(50)
    })
}

fn by(clients: usize, attack: impl Fn(usize) + Sync) {
    let attack = &attack;
    thread::scope(|scope| {
        for client in 0..clients {
            scope.spawn(move || attack(client));
        }
    });
}

/// A review with a list of small objects of this many bytes.
fn review(bytes: usize) -> Vec<u8> {
    let list = vec![r#"{"":0}"#; bytes / 7].join(",");
    format!(r#"{{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{{"nonResourceAttributes":{{"path":"/","verb":"get"}}}},"x":[{list}]}}"#)
        .into_bytes()
}

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

#[test]
fn memory_that_hostile_bodies_took_is_given_back_and_others_are_served_meanwhile() {
    let _alone = ALONE.lock();
    let server = Server::start();
    during(&server, "nothing else", || thread::sleep(Duration::from_secs(1)));
    let before = server.memory("VmRSS");
    // Three megabytes are refused, and 600 kB are the most that is not: both are bounded.
    for (bytes, expected) in [(3_000_000, 413), (600_000, 201)] {
        let body = review(bytes);
        let what = format!("16 reviews of {bytes} bytes");
        let median = during(&server, &what, || {
            by(16, |_| {
                let code = server.send(NOBODY, "POST", REVIEWS, &body);
                println!("  {code}");
                assert!(code == expected || std::env::var("WATCHKEEPER_BINARY").is_ok(), "{code}");
            });
        });
        assert!(median < Duration::from_secs(1), "{median:?}");
    }
    let peak = server.memory("VmHWM");
    let begin = Instant::now();
    let mut after = server.memory("VmRSS");
    while after > before * 1.5 && begin.elapsed() < Duration::from_secs(30) {
        thread::sleep(Duration::from_millis(200));
        after = server.memory("VmRSS");
    }
    println!(
        "memory: {before:.0} MiB before, {peak:.0} at its peak, {after:.0} after {:.0?}",
        begin.elapsed()
    );
    assert!(after <= before * 1.5, "{before:.0} MiB before, {after:.0} after 30 s");
    assert!(peak < 320.0, "{peak:.0} MiB");
}

/// Adds a definition of its own group, after which every document is another one.
fn define(server: &Server, index: usize) {
    let definition = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"things{index}.e{index}.example.com"}},
        "spec":{{"group":"e{index}.example.com","scope":"Namespaced","names":{{"plural":"things{index}","singular":"thing{index}","kind":"Thing{index}"}},
        "versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{
        "spec":{{"type":"object","properties":{{{}}}}}}}}}}}}}]}}}}"#,
        (0..60)
            .map(|field| format!(
                r#""field{field}":{{"type":"string","description":"what field {field} is for"}}"#
            ))
            .collect::<Vec<_>>()
            .join(",")
    );
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(server.send(ADMIN, "POST", path, definition.as_bytes()), 201);
}

#[test]
fn documents_asked_for_by_many_at_once_are_made_once() {
    /// What a document may cost without anybody noticing, in seconds of computing.
    const CHEAP: f64 = 0.2;
    let _alone = ALONE.lock();
    let definitions = if cfg!(debug_assertions) { 30 } else { 300 };
    let server = Server::start();
    (0..definitions).for_each(|index| define(&server, index));
    during(&server, "nothing else", || thread::sleep(Duration::from_secs(1)));
    for (number, path) in
        ["/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/apis"].into_iter().enumerate()
    {
        define(&server, definitions + 2 * number);
        let cpu = server.cpu();
        assert_eq!(server.send(NOBODY, "GET", path, b""), 200);
        let first = server.cpu() - cpu;
        define(&server, definitions + 2 * number + 1);
        let cpu = server.cpu();
        let what = format!("{path} at {definitions} definitions, 8 clients, 10 times each");
        during(&server, &what, || {
            by(8, |_| {
                for _ in 0..10 {
                    assert_eq!(server.send(NOBODY, "GET", path, b""), 200);
                }
            });
        });
        let all = server.cpu() - cpu;
        println!(
            "  the first: {first:.2} s of computing, all of them: {all:.2}; memory {:.0} MiB, peak {:.0}",
            server.memory("VmRSS"),
            server.memory("VmHWM")
        );
        // Made for each, it would be 80 times as much, and 8 times if it were made for those who come at once.
        assert!(all < 4.0 * first.max(CHEAP), "{path}: {all:.2} s of computing for 80, {first:.2} for one");
    }
}

#[test]
fn watchers_that_do_not_read_hold_large_objects_together_and_not_each() {
    const WATCHERS: usize = 600;
    const OBJECTS: usize = 200;
    const BYTES: usize = 100_000;
    let _alone = ALONE.lock();
    let server = Server::start();
    let path = "/api/v1/namespaces/default/configmaps";
    let mut watchers: Vec<TcpStream> = Vec::new();
    for _ in 0..WATCHERS {
        let mut stream = server.connect();
        request(&mut stream, ADMIN, "GET", &format!("{path}?watch=true&resourceVersion=0"), b"");
        // It has begun, and from now on nothing is read of it.
        stream.read_exact(&mut [0; 12]).unwrap();
        watchers.push(stream);
    }
    let before = server.memory("VmRSS");
    let text = "x".repeat(BYTES);
    during(&server, &format!("{OBJECTS} objects of {BYTES} bytes"), || {
        for index in 0..OBJECTS {
            let object = format!(r#"{{"metadata":{{"name":"large-{index}"}},"data":{{"k":"{text}"}}}}"#);
            assert_eq!(server.send(ADMIN, "POST", path, object.as_bytes()), 201);
        }
    });
    let stored = (OBJECTS * BYTES) as f64 / f64::from(1 << 20);
    let settled = |most: f64| {
        let begin = Instant::now();
        let mut now = server.memory("VmRSS");
        while now > most && begin.elapsed() < Duration::from_secs(30) {
            thread::sleep(Duration::from_millis(200));
            now = server.memory("VmRSS");
        }
        println!("memory: {before:.0} MiB before, {now:.0} of {most:.0} after {:.0?}", begin.elapsed());
        assert!(now <= most, "{now:.0} MiB, {most:.0} would do");
    };
    println!("peak {:.0} MiB, {stored:.0} MiB of objects", server.memory("VmHWM"));
    // The objects, and what watchers are told of them, once.
    settled(before + 3.0 * stored);
    // Whoever takes nothing for so long is left, and with them what was kept for them.
    settled(before + 1.5 * stored);
    drop(watchers);
}
