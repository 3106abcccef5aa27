use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

#[tokio::test]
async fn an_open_watch_ends_with_the_last_chunk() {
    let server = Server::start().await;
    let mut stream = server.tls("http/1.1").await;
    stream.write_all(b"GET /watch HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"6\r\nfirst\n\r\n") {
        assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0);
    }
    let shutdown = tokio::spawn(server.front.shutdown(TIMEOUT));
    stream.read_to_end(&mut seen).await.expect("a close_notify at the end");
    assert!(seen.ends_with(b"4\r\nbye\n\r\n0\r\n\r\n"), "{}", String::from_utf8_lossy(&seen));
    assert_eq!(shutdown.await.unwrap(), Drained::Clean);
}

#[tokio::test]
async fn a_watch_over_http2_ends_cleanly_and_its_connection_with_it() {
    let server = Server::start().await;
    let mut client = server.client("h2").await;
    let response = client.get("/watch", None).await;
    let shutdown = tokio::spawn(server.front.shutdown(TIMEOUT));
    assert_eq!(text(response).await, "first\nbye\n");
    assert_eq!(shutdown.await.unwrap(), Drained::Clean);
    assert!(client.send(get("/whoami", None)).await.is_err());
}

#[tokio::test]
async fn a_slow_request_finishes() {
    for alpn in ["http/1.1", "h2"] {
        let server = Server::start().await;
        let mut client = server.client(alpn).await;
        let Server { front, https: address, example, .. } = server;
        let answer = tokio::spawn(async move { text(client.get("/slow", None).await).await });
        example.arrived.notified().await;
        let shutdown = tokio::spawn(front.shutdown(TIMEOUT));
        // Nobody new gets in, and that is how we know that the shutdown has begun.
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert!(!shutdown.is_finished());
        example.finish.notify_one();
        assert_eq!(answer.await.unwrap(), "done");
        assert_eq!(shutdown.await.unwrap(), Drained::Clean);
    }
}

#[tokio::test]
async fn idle_connections_and_unfinished_handshakes_do_not_hold_it_up() {
    let server = Server::start().await;
    let mut used = server.client("http/1.1").await;
    text(used.get("/whoami", None).await).await;
    let mut multiplexed = server.client("h2").await;
    text(multiplexed.get("/whoami", None).await).await;
    let fresh = server.tls("http/1.1").await;
    let silent = TcpStream::connect(server.https).await.unwrap();
    let plain = TcpStream::connect(server.http).await.unwrap();
    assert_eq!(server.front.shutdown(TIMEOUT).await, Drained::Clean);
    drop((used, multiplexed, fresh, silent, plain));
}

#[tokio::test]
async fn what_does_not_end_is_cut_off_when_the_time_is_over() {
    for alpn in ["http/1.1", "h2"] {
        let server = Server::start().await;
        let mut client = server.client(alpn).await;
        let stubborn = client.get("/stubborn", None).await;
        let mut other = server.client(alpn).await;
        let slow = tokio::spawn(async move { other.send(get("/slow", None)).await.map(|_| ()) });
        server.example.arrived.notified().await;
        assert_eq!(server.front.shutdown(Duration::from_millis(50)).await, Drained::CutOff);
        assert!(stubborn.into_body().collect().await.is_err(), "{alpn}");
        assert!(slow.await.unwrap().is_err());
        assert_eq!(server.example.open.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn dropping_the_front_closes_everything() {
    let server = Server::start().await;
    let mut client = server.client("h2").await;
    let body = client.get("/stubborn", None).await.into_body();
    let Server { front, example, .. } = server;
    drop(front);
    assert!(body.collect().await.is_err());
    until(|| example.open.load(Ordering::SeqCst) == 0).await;
}
