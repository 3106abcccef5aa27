//! How servers end, and what their clients notice.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::world::{LONG, MAPS, Server, TOKEN, ask, config_map, directory, etcd, free_address};

/// As one stops a server behind a balancer.
const GENTLY: [&str; 3] = ["--shutdown-delay-duration", "500ms", "--shutdown-send-retry-after"];

/// The head of an answer on a connection that stays open, and its body.
fn exchange(stream: &mut BufReader<TcpStream>, request: &str) -> Option<(String, String)> {
    stream.get_mut().write_all(request.as_bytes()).ok()?;
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    let length = lower.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).ok()?))
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n")
}

fn connect(server: &Server) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(server.http).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    BufReader::new(stream)
}

#[test]
fn a_server_that_stops_is_unready_first_then_sends_clients_elsewhere_and_ends_its_watches() {
    let directory = directory();
    let arguments = ["--in-memory", "--shutdown-delay-duration", "3s", "--shutdown-send-retry-after"];
    let mut server = Server::in_memory(directory.path(), &arguments);
    let mut watch = connect(&server);
    watch.get_mut().write_all(get(&format!("{MAPS}?watch=1&allowWatchBookmarks=true")).as_bytes()).unwrap();
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        watch.read_line(&mut line).unwrap();
    }
    let mut kept = connect(&server);
    assert!(exchange(&mut kept, &get("/readyz")).unwrap().0.starts_with("HTTP/1.1 200"));
    server.signal();
    let begin = Instant::now();
    let unready = loop {
        let (head, body) = exchange(&mut kept, &get("/readyz")).unwrap();
        if head.starts_with("HTTP/1.1 500") {
            break body;
        }
        assert!(begin.elapsed() < LONG);
    };
    assert!(unready.contains("[-]shutdown failed"), "{unready}");
    // While balancers notice, everything is as ever, and watches go on.
    if begin.elapsed() < Duration::from_secs(2) {
        assert_eq!(server.ask("POST", MAPS, Some(&config_map("late"))).0, 201);
    }
    let (head, body) = loop {
        let mut stream = connect(&server);
        let (head, body) = exchange(&mut stream, &get(MAPS)).expect("an answer, as long as it listens");
        if !head.starts_with("HTTP/1.1 200") {
            break (head, body);
        }
        assert!(begin.elapsed() < LONG);
    };
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
    assert!(head.to_lowercase().contains("retry-after: 5\r\n"), "{head}");
    assert!(head.to_lowercase().contains("connection: close\r\n"), "{head}");
    assert_eq!(body, "The apiserver is shutting down, please try again later.\n");
    let mut told = String::new();
    watch.read_to_string(&mut told).unwrap();
    assert!(told.contains("\"late\""), "the watch told what happened, and ended in good order: {told}");
    assert!(told.ends_with("0\r\n\r\n"), "{told}");
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn tokens_are_read_again_while_the_server_runs() {
    let directory = directory();
    let server = Server::in_memory(directory.path(), &["--in-memory"]);
    assert_eq!(server.ask("GET", MAPS, None).0, 200);
    let tokens = directory.path().join("tokens.csv");
    let renewed = format!("{TOKEN}-2,tester,1,\"system:masters\"\n");
    std::fs::write(&tokens, renewed).unwrap();
    let begin = Instant::now();
    while server.ask("GET", MAPS, None).0 != 401 {
        assert!(begin.elapsed() < LONG, "the old token is still in force");
        thread::sleep(Duration::from_millis(100));
    }
    let new = get(MAPS).replace(TOKEN, &format!("{TOKEN}-2"));
    assert!(exchange(&mut connect(&server), &new).unwrap().0.starts_with("HTTP/1.1 200"));
}

/// What a watch tells, which moves to the next server when one ends it: the names of new objects, until one has this name.
fn watch_on(addresses: &[SocketAddr], mut version: String, last: &str) -> Vec<String> {
    let mut names = Vec::new();
    for attempt in 0.. {
        let Ok(mut stream) = TcpStream::connect(addresses[attempt % addresses.len()]) else {
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        stream.set_read_timeout(Some(LONG)).unwrap();
        let path = format!("{MAPS}?watch=1&resourceVersion={version}");
        let request =
            format!("GET {path} HTTP/1.0\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
        if stream.write_all(request.as_bytes()).is_err() {
            continue;
        }
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        for line in lines.filter(|line| line.starts_with('{')) {
            let event: Value = serde_json::from_str(&line).unwrap();
            // One that is not ready yet, or stops, sends its clients elsewhere.
            if event["kind"] == "Status" {
                break;
            }
            assert_eq!(event["type"], "ADDED", "{line}");
            let meta = &event["object"]["metadata"];
            version = meta["resourceVersion"].as_str().unwrap().to_owned();
            names.push(meta["name"].as_str().unwrap().to_owned());
            if names.last().is_some_and(|name| name == last) {
                return names;
            }
        }
    }
    names
}

#[test]
fn servers_are_restarted_one_by_one_and_no_client_that_tries_again_fails() {
    let Some(etcd) = etcd() else { return };
    let (directory, endpoint) = (directory(), etcd.endpoint());
    let addresses = [(); 3].map(|()| free_address());
    let arguments = [&["--storage", "etcd", "--etcd-endpoints", &endpoint][..], &GENTLY].concat();
    let mut servers = addresses.map(|address| Server::with(directory.path(), address, &arguments));
    let (done, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (_, list) = servers[0].ask("GET", MAPS, None);
    let version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let told = thread::scope(|scope| {
        let watching = scope.spawn(|| watch_on(&addresses, version, "the-last-one"));
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
            servers[at] = Server::with(directory.path(), addresses[at], &arguments);
            let begin = Instant::now();
            while written.load(SeqCst) < before + 20 {
                assert!(begin.elapsed() < LONG, "nothing is written any more");
                thread::sleep(Duration::from_millis(10));
            }
        }
        done.store(true, SeqCst);
        // Those who were about to write have written by the time the scope ends; the watch ends with what comes after them.
        let mut before = 0;
        while before != written.load(SeqCst) {
            before = written.load(SeqCst);
            thread::sleep(Duration::from_millis(500));
        }
        assert_eq!(servers[2].ask("POST", MAPS, Some(&config_map("the-last-one"))).0, 201);
        watching.join().unwrap()
    });
    let (_, list) = servers[2].ask("GET", MAPS, None);
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len() - 2, written.load(SeqCst), "what was acknowledged is there");
    // Nothing twice, nothing left out, on however many servers it was watched.
    let mut there: Vec<_> = items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
    there.retain(|name| *name != "kube-root-ca.crt");
    let mut told: Vec<_> =
        told.iter().map(String::as_str).filter(|name| *name != "kube-root-ca.crt").collect();
    told.sort_unstable();
    assert_eq!(told, there);
}
