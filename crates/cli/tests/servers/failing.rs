//! What clients see when etcd fails.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use watchkeeper_etcd::testing::Server as Etcd;

use crate::world::{LONG, MAPS, Server, TOKEN, config_map, directory, free_address, three};

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
