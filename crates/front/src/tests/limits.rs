//! Connections of strangers, and whom they do not keep out.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::Instant;

use super::*;
use crate::metrics::Dropped;

/// A new connection of the administrator, and one request on it.
async fn asks(server: &Server, alpn: &str) -> u16 {
    let asked = async {
        let mut client = server.client(alpn).await;
        client.get("/whoami", Some(TOKEN)).await.status().as_u16()
    };
    tokio::time::timeout(TIMEOUT, asked).await.expect("the administrator is kept out")
}

/// Whether the server has closed a connection. What it says before that is of no interest.
async fn is_closed(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> bool {
    let mut buffer = [0; 4096];
    loop {
        match tokio::time::timeout(Duration::from_millis(1), stream.read(&mut buffer)).await {
            Ok(Ok(0) | Err(_)) => return true,
            Ok(Ok(_)) => {}
            Err(_) => return false,
        }
    }
}

#[tokio::test]
async fn silent_and_idle_strangers_do_not_keep_the_authenticated_out() {
    // As with a limit of 256 files.
    let server = Server::limited(Limits::of_files(256));
    let mut known = server.client("h2").await;
    assert_eq!(known.get("/whoami", Some(TOKEN)).await.status(), 200);
    let mut watching = server.client("http/1.1").await;
    let mut watch = watching.get("/watch", Some(TOKEN)).await.into_body();
    watch.frame().await.unwrap().unwrap();

    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(server.https).await.unwrap());
    }
    let mut idle = Vec::new();
    for number in 0..243 {
        idle.push(tokio::time::timeout(TIMEOUT, server.connect(BOTH[number % 2])).await.unwrap());
        if number % 20 == 0 {
            assert_eq!(asks(&server, BOTH[number / 20 % 2]).await, 200);
        }
    }
    assert!(idle.iter().all(Result::is_ok), "strangers are let in, too");
    for alpn in BOTH {
        let before = Instant::now();
        assert_eq!(asks(&server, alpn).await, 200);
        assert!(before.elapsed() < Duration::from_secs(5), "{alpn}: {:?}", before.elapsed());
    }

    // Whoever was there before is still there.
    assert_eq!(known.get("/whoami", None).await.status(), 200);
    assert_eq!(server.example.open.load(Ordering::SeqCst), 1, "the watch goes on");
    server.front.shutdown(Duration::from_secs(5)).await;
    assert_eq!(watch.frame().await.unwrap().unwrap().into_data().unwrap(), "bye\n");
}

#[tokio::test]
async fn strangers_that_do_not_take_their_answers_make_room() {
    let server = Server::limited(Limits::of_connections(8));
    let mut stalled = Vec::new();
    for _ in 0..12 {
        // A preface, settings with windows of zero bytes, and a GET of /watch, of which no byte can be sent.
        let mut stream = server.tls("h2").await;
        let settings = b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00";
        let headers = b"\x82\x87\x04\x06/watch\x41\x01x";
        let begin = [0, 0, headers.len() as u8, 1, 5, 0, 0, 0, 1];
        let all = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..], &begin, headers].concat();
        stream.write_all(&all).await.unwrap();
        stalled.push(stream);
    }
    assert!(server.example.open.load(Ordering::SeqCst) <= 5);
    for alpn in BOTH {
        assert_eq!(asks(&server, alpn).await, 200);
    }
}

#[tokio::test]
async fn an_address_has_a_limit_of_its_own_but_not_this_machine() {
    let limits = Limits { strangers_per_address: 3, ..Limits::of_connections(100) };
    let server = Server::limited(limits);
    let connect = async |ip: &str| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(ip.parse().unwrap(), 0)).unwrap();
        socket.connect(server.https).await.unwrap()
    };
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(connect("127.0.0.2").await);
    }
    let here = server.client("h2").await;
    let dropped = |reason| server.front.metrics().dropped_so_far(reason);
    until(|| dropped(Dropped::AddressFull) + dropped(Dropped::Evicted) == 2).await;
    let mut closed = 0;
    for other in &mut others {
        closed += usize::from(is_closed(other).await);
    }
    assert_eq!(closed, 2, "three of five are left");
    let mut many = Vec::new();
    for _ in 0..10 {
        many.push(TcpStream::connect(server.https).await.unwrap());
    }
    assert_eq!(asks(&server, "h2").await, 200);
    assert_eq!(dropped(Dropped::AddressFull) + dropped(Dropped::Evicted), 2, "nobody of this machine");
    drop(here);
}

#[tokio::test]
async fn when_all_places_are_taken_by_the_authenticated_more_are_refused_until_one_goes() {
    let server = Server::limited(Limits { connections_per_user: 4, ..Limits::of_connections(4) });
    let mut known = Vec::new();
    for number in 0..4 {
        let mut client = server.client(BOTH[number % 2]).await;
        assert_eq!(text(client.get("/whoami", Some(TOKEN)).await).await.split(' ').next(), Some("admin"));
        known.push(client);
    }
    let mut refused = TcpStream::connect(server.https).await.unwrap();
    // At once: without a limit it would be let in, and have ten seconds for its handshake.
    let read = tokio::time::timeout(Duration::from_secs(5), refused.read(&mut [0; 1])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)));
    for client in &mut known {
        assert_eq!(client.get("/whoami", None).await.status(), 200);
    }
    known.pop();
    until_asked(&server).await;
}

/// Waits until the administrator is let in.
async fn until_asked(server: &Server) {
    let asked = async {
        loop {
            if let Ok(stream) = server.connect("http/1.1").await {
                let mut client = Client::over(stream, "http/1.1").await;
                if client.send(get("/whoami", Some(TOKEN))).await.is_ok() {
                    return;
                }
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, asked).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn idle_connections_of_strangers_are_closed_sooner_than_others() {
    let server = Server::start().await;
    for alpn in BOTH {
        for (token, seconds) in [(None, 30..=32), (Some(TOKEN), 90..=102)] {
            let mut client = server.client(alpn).await;
            let before = Instant::now();
            text(client.get("/whoami", token).await).await;
            let closed = async {
                loop {
                    match &client {
                        Client::One(client) if client.is_closed() => return,
                        Client::Two(client) if client.is_closed() => return,
                        _ => tokio::time::sleep(Duration::from_millis(100)).await,
                    }
                }
            };
            tokio::time::timeout(Duration::from_secs(300), closed).await.expect("it stays open");
            let after = before.elapsed().as_secs();
            assert!(seconds.contains(&after), "{alpn} {} after {after} s", token.is_some());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_runs_for_long_keeps_its_connection() {
    let server = Server::start().await;
    for alpn in BOTH {
        let mut client = server.client(alpn).await;
        let mut watch = client.get("/watch", None).await.into_body();
        watch.frame().await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_secs(1_000)).await;
        assert_eq!(server.example.open.load(Ordering::SeqCst), 1, "{alpn}");
        drop((watch, client));
        until(|| server.example.open.load(Ordering::SeqCst) == 0).await;
    }
}
