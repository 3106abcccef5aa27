//! Several servers over one etcd.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use watchkeeper_etcd::testing::Server as Etcd;

const TOKEN: &str = "a-token-for-tests";
/// How long anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// One of the servers. Killed if the test does not end it.
struct Server {
    child: Child,
    http: SocketAddr,
}

impl Server {
    fn start(directory: &Path, etcd: &str, http: SocketAddr) -> Self {
        let tokens = directory.join("tokens.csv");
        let data = directory.join("data");
        let mut child = Command::new(env!("CARGO_BIN_EXE_watchkeeper"))
            .args(["serve", "--listen", "127.0.0.1:0", "--storage", "etcd", "--etcd-endpoints", etcd])
            .args(["--http", &http.to_string()])
            .arg("--token-file")
            .arg(tokens)
            .arg("--data-dir")
            .arg(data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        assert!(ready.starts_with("ready"), "{ready}");
        Self { child, http }
    }

    fn terminate(&mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }

    fn try_ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value), String> {
        ask(self.http, method, path, body)
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        self.try_ask(method, path, body).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One request on a connection of its own; what is said if there is no answer.
fn ask(server: SocketAddr, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value), String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(server).map_err(failed)?;
    stream.set_read_timeout(Some(LONG)).map_err(failed)?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.0\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the answer is cut off")?;
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or("no status")?;
    Ok((code, serde_json::from_str(body).unwrap_or(Value::Null)))
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Three servers over one etcd; `None` where there is no etcd.
fn three() -> Option<(tempfile::TempDir, Etcd, Vec<Server>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let etcd = runtime.block_on(Etcd::start()).unwrap()?;
    let directory = tempfile::tempdir().unwrap();
    let tokens = directory.path().join("tokens.csv");
    std::fs::write(&tokens, format!("{TOKEN},tester,1,\"system:masters\"\n")).unwrap();
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    let servers: Vec<_> =
        (0..3).map(|_| Server::start(directory.path(), &etcd.endpoint(), free_address())).collect();
    Some((directory, etcd, servers))
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn what_is_written_to_one_server_is_in_force_on_all() {
    let Some((_directory, _etcd, servers)) = three() else { return };
    for round in 0..30 {
        let (writer, reader) = (&servers[round % 3], &servers[(round + 1) % 3]);
        let name = format!("map-{round}");
        let (code, made) = writer.ask("POST", MAPS, Some(&config_map(&name)));
        assert_eq!(code, 201, "{made}");
        let (code, read) = reader.ask("GET", &format!("{MAPS}/{name}"), None);
        assert_eq!((code, &read), (200, &made));
        let version = made["metadata"]["resourceVersion"].as_str().unwrap();
        let (code, list) = reader.ask("GET", &format!("{MAPS}?resourceVersion={version}"), None);
        assert_eq!(code, 200, "{list}");
        assert_eq!(list["items"].as_array().unwrap().len(), round + 1 + 1, "with kube-root-ca.crt");
    }
    // A definition that one server takes is served by the others as soon as they hear of it.
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(servers[0].ask("POST", definitions, Some(&definition)).0, 201);
    let widget =
        |name: &str| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}});
    let begin = Instant::now();
    while servers[1].ask("POST", "/apis/example.com/v1/namespaces/default/widgets", Some(&widget("a"))).0
        != 201
    {
        assert!(begin.elapsed() < LONG, "it is never served");
    }
}

#[test]
fn no_two_services_of_several_servers_share_an_address() {
    let Some((_directory, _etcd, servers)) = three() else { return };
    let path = "/api/v1/namespaces/default/services";
    let service = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"type": "NodePort", "ports": [{"port": 80}]},
        })
    };
    thread::scope(|scope| {
        for client in 0..9 {
            let server = &servers[client % 3];
            scope.spawn(move || {
                for round in 0..10 {
                    let (code, made) =
                        server.ask("POST", path, Some(&service(&format!("s-{client}-{round}"))));
                    assert_eq!(code, 201, "{made}");
                }
            });
        }
    });
    let (_, list) = servers[0].ask("GET", path, None);
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 91, "with that of the API server");
    let addresses: BTreeSet<_> = items.iter().map(|item| item["spec"]["clusterIP"].as_str()).collect();
    let ports: BTreeSet<_> =
        items.iter().filter_map(|item| item["spec"]["ports"][0]["nodePort"].as_u64()).collect();
    assert_eq!((addresses.len(), ports.len()), (91, 90));
    // Of servers that all want the same one at once, one gives it away; and what was given back can be given away again.
    let wanted = |name: &str| {
        let mut service = service(name);
        service["spec"]["clusterIP"] = "10.0.0.77".into();
        service
    };
    for round in 0..5 {
        let won = AtomicUsize::new(0);
        thread::scope(|scope| {
            for (number, server) in servers.iter().enumerate() {
                let (won, wanted) = (&won, &wanted);
                scope.spawn(move || {
                    let name = format!("w-{round}-{number}");
                    let (code, made) = server.ask("POST", path, Some(&wanted(&name)));
                    match code {
                        201 => {
                            won.fetch_add(1, SeqCst);
                        }
                        // Taken; or taken while it was tried, as often as that is tried.
                        _ => assert!(matches!(code, 422 | 409 | 500), "{made}"),
                    }
                });
            }
        });
        assert_eq!(won.load(SeqCst), 1);
        for number in 0..3 {
            servers[(round + 1) % 3].ask("DELETE", &format!("{path}/w-{round}-{number}"), None);
        }
    }
}

#[test]
fn servers_are_restarted_one_by_one_and_no_client_that_tries_again_fails() {
    let Some((directory, etcd, mut servers)) = three() else { return };
    let addresses: Vec<_> = servers.iter().map(|server| server.http).collect();
    let (done, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for client in 0..4 {
            let (addresses, done, written) = (&addresses, &done, &written);
            scope.spawn(move || {
                let mut number = 0;
                while !done.load(SeqCst) {
                    let name = format!("c-{client}-{number}");
                    let begin = Instant::now();
                    for attempt in 0.. {
                        assert!(begin.elapsed() < LONG, "nobody takes {name}");
                        match ask(addresses[(client + attempt) % 3], "POST", MAPS, Some(&config_map(&name))) {
                            // A doubt is resolved by the next attempt.
                            Ok((201 | 409, _)) => break,
                            Ok((429 | 500..=599, _)) | Err(_) => {}
                            Ok((code, answer)) => panic!("{code} {answer}"),
                        }
                    }
                    written.fetch_add(1, SeqCst);
                    number += 1;
                }
            });
        }
        for at in 0..3 {
            let before = written.load(SeqCst);
            servers[at].terminate();
            servers[at] = Server::start(directory.path(), &etcd.endpoint(), addresses[at]);
            let begin = Instant::now();
            while written.load(SeqCst) < before + 20 {
                assert!(begin.elapsed() < LONG, "nothing is written any more");
                thread::sleep(Duration::from_millis(10));
            }
        }
        done.store(true, SeqCst);
    });
    let (_, list) = servers[2].ask("GET", MAPS, None);
    let ours = list["items"].as_array().unwrap().len() - 1;
    assert_eq!(ours, written.load(SeqCst), "what was acknowledged is there");
}
