//! What clients see when etcd fails.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use watchkeeper_etcd::Client;
use watchkeeper_etcd::testing::Server as Etcd;

use crate::world::{LONG, MAPS, Server, TOKEN, ask_as, config_map, directory, etcd, free_address, three};

/// The head of the answer to a request on a connection of its own.
fn head(server: SocketAddr, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.0\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split("\r\n\r\n").next().unwrap().to_lowercase()
}

/// The lines of a watch, as they come.
fn watch(server: SocketAddr, path: &str) -> mpsc::Receiver<String> {
    let mut stream = TcpStream::connect(server).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n")
        .unwrap();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if line.starts_with('{') && sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < LONG, "never: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Two servers over three members, of which each knows all.
fn over_three_members() -> Option<(tempfile::TempDir, Vec<Etcd>, Vec<Server>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let members = runtime.block_on(Etcd::cluster(3, &[])).unwrap()?;
    let endpoints: Vec<_> = members.iter().map(Etcd::endpoint).collect();
    let (directory, endpoints) = (directory(), endpoints.join(","));
    let servers = (0..2).map(|_| Server::start(directory.path(), &endpoints, free_address())).collect();
    Some((directory, members, servers))
}

#[test]
fn without_a_quorum_clients_are_told_to_come_again_and_watches_stay() {
    let Some((_directory, members, servers)) = over_three_members() else { return };
    let (_, list) = servers[0].ask("GET", MAPS, None);
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let told = watch(servers[0].http, &format!("{MAPS}?watch=1&resourceVersion={version}"));
    // One of three may go.
    members[0].kill();
    until("a write with two of three members", || {
        matches!(servers[0].ask("POST", MAPS, Some(&config_map("one"))).0, 201 | 409)
    });
    assert!(told.recv_timeout(LONG).unwrap().contains("\"one\""));
    // Without two of them, nothing is certain.
    members[1].kill();
    let written = head(servers[0].http, "POST", MAPS, &config_map("two").to_string());
    assert!(written.starts_with("http/1.0 503") || written.starts_with("http/1.0 504"), "{written}");
    assert!(written.contains("retry-after: "), "{written}");
    let read = head(servers[0].http, "GET", &format!("{MAPS}/one"), "");
    assert!(read.starts_with("http/1.0 503") || read.starts_with("http/1.0 504"), "{read}");
    assert!(read.contains("retry-after: "), "{read}");
    // What need not be new is answered.
    assert!(
        head(servers[0].http, "GET", &format!("{MAPS}?resourceVersion=0"), "").starts_with("http/1.0 200")
    );
    until("that a server without etcd is not ready", || {
        servers.iter().all(|server| head(server.http, "GET", "/readyz/etcd", "").starts_with("http/1.0 500"))
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Both at once: one alone waits for the other.
    members[0].launch_again();
    runtime.block_on(members[1].restart()).unwrap();
    until("a write with all members", || {
        matches!(servers[1].ask("POST", MAPS, Some(&config_map("three"))).0, 201 | 409)
    });
    loop {
        let line = told.recv_timeout(LONG).expect("the watch goes on");
        assert!(!line.contains("\"ERROR\""), "{line}");
        if line.contains("\"three\"") {
            break;
        }
    }
    until("that the server is ready again", || {
        head(servers[0].http, "GET", "/readyz", "").starts_with("http/1.0 200")
    });
}

#[test]
fn a_client_that_shows_a_version_of_another_server_waits_for_it_and_a_watch_moves_on() {
    let Some((_directory, _etcd, servers)) = three() else { return };
    let (_, list) = servers[0].ask("GET", MAPS, None);
    let mut version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    for round in 0..30 {
        let (writer, reader) = (&servers[round % 3], &servers[(round + 1) % 3]);
        let name = format!("m-{round}");
        let (_, made) = writer.ask("POST", MAPS, Some(&config_map(&name)));
        // The watch of one server is gone on with on the next, where the last one ended.
        let told = watch(reader.http, &format!("{MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=30"));
        let line = told.recv_timeout(LONG).unwrap();
        assert!(line.contains(&format!("\"{name}\"")), "nothing twice, nothing left out: {line}");
        version = made["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        let path = format!("{MAPS}/{name}?resourceVersion={version}");
        assert_eq!(reader.ask("GET", &path, None).0, 200);
    }
}

/// Whether an answer says that the storage cannot be asked, and when to come again.
fn is_put_off(code: u16, head: &str) -> bool {
    matches!(code, 503 | 504) && head.contains("retry-after: ")
}

fn metric(server: &Server, name: &str) -> Option<f64> {
    let (_, _, text) = ask_as(TOKEN, server.http, "GET", "/metrics", None).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.parse().ok()
}

#[test]
fn tokens_of_service_accounts_are_good_again_once_etcd_answers_and_never_refused_for_its_silence() {
    let Some(etcd) = etcd() else { return };
    let directory = directory();
    let server = Server::start(directory.path(), &etcd.endpoint(), free_address());
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    until("the account", || server.ask("GET", account, None).0 == 200);
    let (code, made) = server.ask("POST", &format!("{account}/token"), Some(&json!({"spec": {}})));
    assert_eq!(code, 201, "{made}");
    let token = made["status"]["token"].as_str().unwrap();
    let as_account = |path: &str| ask_as(token, server.http, "GET", path, None).unwrap();
    assert_eq!(as_account("/version").0, 200);
    assert_eq!(as_account(MAPS).0, 403, "known, and without rights");
    etcd.pause(true);
    for path in ["/version", MAPS] {
        let (code, head, body) = as_account(path);
        assert!(code == 503 && is_put_off(code, &head), "{path}: {head}");
        let status: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(status["reason"], "ServiceUnavailable", "{body}");
        assert_eq!(status["details"]["retryAfterSeconds"], 1, "{body}");
    }
    let review =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let (code, head, _) = ask_as(TOKEN, server.http, "POST", reviews, Some(&review)).unwrap();
    assert!(is_put_off(code, &head), "{head}");
    etcd.pause(false);
    until("that the token is good again", || as_account("/version").0 == 200);
}

#[test]
fn a_full_etcd_is_named_by_health_and_metrics_while_reads_and_deletions_go_on() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let full = runtime.block_on(Etcd::with(&["--quota-backend-bytes", "3000000"])).unwrap();
    let Some(etcd) = full else { return };
    let directory = directory();
    let servers = [(); 2].map(|()| Server::start(directory.path(), &etcd.endpoint(), free_address()));
    let ask = |server: &Server, path: &str| ask_as(TOKEN, server.http, "GET", path, None).unwrap();
    assert_eq!(metric(&servers[0], "watchkeeper_etcd_full"), Some(0.0));
    assert_eq!(metric(&servers[0], "watchkeeper_etcd_following"), Some(1.0));
    assert_eq!(metric(&servers[0], "watchkeeper_etcd_lag_revisions"), Some(0.0));
    until("that one leads", || {
        servers.iter().filter(|server| metric(server, "watchkeeper_etcd_leading") == Some(1.0)).count() == 1
    });
    let large = |number: usize| {
        let mut map = config_map(&format!("large-{number}"));
        map["data"] = json!({"text": "x".repeat(100_000)});
        map
    };
    let mut made = 0;
    let refused = loop {
        let (code, head, body) = ask_as(TOKEN, servers[0].http, "POST", MAPS, Some(&large(made))).unwrap();
        match code {
            201 => made += 1,
            _ => break (code, head, body),
        }
        assert!(made < 200, "it takes everything");
    };
    assert!(is_put_off(refused.0, &refused.1), "{refused:?}");
    assert!(refused.2.contains("space exceeded"), "{refused:?}");
    for server in &servers {
        until("that metrics say so", || metric(server, "watchkeeper_etcd_full") == Some(1.0));
        let (code, _, health) = ask(server, "/healthz");
        assert!(code == 500 && health.contains("[-]etcd-space failed: "), "{health}");
        let (code, _, space) = ask(server, "/readyz/etcd-space");
        assert!(code == 500 && space.contains("space exceeded") | space.contains("NOSPACE"), "{space}");
        let (code, _, ready) = ask(server, "/readyz?verbose");
        assert!(code == 200 && ready.contains("[-]etcd-space failed: "), "clients have to delete: {ready}");
        assert_eq!(ask(server, "/livez").0, 200);
    }
    assert_eq!(servers[1].ask("GET", &format!("{MAPS}/large-0"), None).0, 200);
    for number in 0..made {
        assert_eq!(servers[1].ask("DELETE", &format!("{MAPS}/large-{number}"), None).0, 200);
    }
    // What the book says to do.
    runtime.block_on(async {
        let client: Client = etcd.builder().build().unwrap();
        let header = client.status().await.unwrap().header;
        client.compact(header.revision, true).await.unwrap();
        client.defragment().await.unwrap();
        client.disarm_no_space(header.member).await.unwrap();
    });
    until("that it is well again", || {
        servers.iter().all(|server| {
            ask(server, "/healthz").0 == 200 && metric(server, "watchkeeper_etcd_full") == Some(0.0)
        })
    });
    assert_eq!(servers[0].ask("POST", MAPS, Some(&large(made))).0, 201);
}

#[test]
fn a_slow_disk_makes_clients_wait_or_come_again_and_nothing_else() {
    let Some(etcd) = etcd() else { return };
    let directory = directory();
    let server = Server::start(directory.path(), &etcd.endpoint(), free_address());
    let done = std::sync::atomic::AtomicBool::new(false);
    let is_done = || done.load(std::sync::atomic::Ordering::SeqCst);
    let acknowledged = thread::scope(|scope| {
        // Whoever writes to a disk that is slow is stopped most of the time.
        scope.spawn(|| {
            while !is_done() {
                etcd.pause(true);
                thread::sleep(Duration::from_millis(150));
                etcd.pause(false);
                thread::sleep(Duration::from_millis(20));
            }
        });
        let mut acknowledged = Vec::new();
        for number in 0..20 {
            let name = format!("slow-{number}");
            let (code, head, body) =
                ask_as(TOKEN, server.http, "POST", MAPS, Some(&config_map(&name))).unwrap();
            match code {
                201 => acknowledged.push(name),
                code => assert!(is_put_off(code, &head), "{head} {body}"),
            }
        }
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        acknowledged
    });
    until("that it is ready", || server.ask("GET", "/readyz", None).0 == 200);
    for name in acknowledged {
        assert_eq!(server.ask("GET", &format!("{MAPS}/{name}"), None).0, 200, "{name}");
    }
}

#[test]
fn after_a_restore_nothing_is_shown_that_was_lost() {
    let Some(etcd) = etcd() else { return };
    let directory = directory();
    let server = Server::start(directory.path(), &etcd.endpoint(), free_address());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(server.ask("POST", MAPS, Some(&config_map("kept"))).0, 201);
    etcd.kill();
    let backup = etcd.back_up().unwrap();
    runtime.block_on(etcd.restart()).unwrap();
    until("that it is ready", || server.ask("GET", "/readyz", None).0 == 200);
    for number in 0..20 {
        let map = config_map(&format!("lost-{number}"));
        until("a write", || matches!(server.ask("POST", MAPS, Some(&map)).0, 201 | 409));
    }
    let (_, list) = server.ask("GET", MAPS, None);
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let told = watch(server.http, &format!("{MAPS}?watch=1&resourceVersion={version}"));
    etcd.kill();
    etcd.restore(&backup).unwrap();
    runtime.block_on(etcd.restart()).unwrap();
    let begin = Instant::now();
    loop {
        let (code, head, body) = ask_as(TOKEN, server.http, "GET", &format!("{MAPS}/lost-19"), None).unwrap();
        match code {
            404 => break,
            _ => assert!(is_put_off(code, &head), "{head} {body}"),
        }
        assert!(begin.elapsed() < LONG);
    }
    assert_eq!(server.ask("GET", &format!("{MAPS}/kept"), None).0, 200);
    // Watchers are told to begin anew.
    let line = told.recv_timeout(LONG).unwrap();
    assert!(line.contains("\"ERROR\"") && line.contains("410"), "{line}");
    until("that it is ready again", || server.ask("GET", "/readyz", None).0 == 200);
    // Clients whose versions are of what was lost are told so, and not given something else.
    let (code, _) =
        server.ask("GET", &format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact"), None);
    assert!(matches!(code, 410 | 504), "{code}");
}

#[test]
fn a_server_that_is_started_before_etcd_waits_for_it() {
    let Some(etcd) = etcd() else { return };
    let directory = directory();
    etcd.kill();
    let endpoint = etcd.endpoint();
    let server = thread::scope(|scope| {
        let starting = scope.spawn(|| Server::start(directory.path(), &endpoint, free_address()));
        thread::sleep(Duration::from_secs(2));
        assert!(!starting.is_finished(), "it gave up");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(etcd.restart()).unwrap();
        starting.join().unwrap()
    });
    assert_eq!(server.ask("GET", MAPS, None).0, 200);
    // The tasks of the storage are among those that the server answers for.
    for task in ["etcd-feed", "etcd-status", "etcd-leadership", "etcd-compaction"] {
        assert_eq!(server.ask("GET", &format!("/readyz/task/{task}"), None).0, 200, "{task}");
    }
}
