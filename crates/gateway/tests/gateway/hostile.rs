//! Clients that mean no good.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use http::Request;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use watchkeeper_front::Body;

use crate::support::{Bench, Server, connect_http2, within};

/// What a raw request is answered with, to the end of the connection.
async fn raw(bench: &Bench, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    // The gateway may close before it has read all of it.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut read = Vec::new();
    let _ = within("an answer", stream.read_to_end(&mut read)).await;
    String::from_utf8_lossy(&read).into_owned()
}

/// A gateway whose backend counts the requests that reach it, and those that were smuggled.
async fn guarded() -> (Bench, Server, Arc<AtomicUsize>) {
    let bench = Bench::start().await;
    let reached = Arc::new(AtomicUsize::new(0));
    let server = Server::start({
        let reached = Arc::clone(&reached);
        move |request: watchkeeper_front::Request| {
            assert!(!request.uri().path().contains("smuggled"), "it was");
            reached.fetch_add(1, Relaxed);
            async move {
                let _ = request.into_body().read(1 << 20).await;
                watchkeeper_front::Response::new(Body::whole("reached"))
            }
        }
    });
    bench.backend("one", &[&server]).await;
    let rule = json!({"matches": [{"path": {"prefix": "/files"}}], "filters": {"rewrite": {"path": {"prefix": "/public"}}}, "backends": [{"name": "one"}]});
    bench.put("GatewayRoute", "files", json!({"rules": [rule, {"backends": [{"name": "one"}]}]})).await;
    (bench, server, reached)
}

#[tokio::test]
async fn requests_that_can_be_read_in_two_ways_reach_no_backend() {
    let (bench, _server, reached) = guarded().await;
    let smuggled = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
    for head in [
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5, 6\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +5\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0x5\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nx: y\r\n folded: z\r\n\r\n",
        "GET / HTTP/1.1\r\n host: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nna me: x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nname: x\0y\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\n: x\r\n\r\n",
        "GET http://b/ HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET http://user@a/ HTTP/1.1\r\nhost: user@a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a/../b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: \r\nhost: a\r\n\r\n",
        "GET /\tx HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.2\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1 x\r\nhost: a\r\n\r\n",
        "GET a HTTP/1.1\r\nhost: a\r\n\r\n",
        "CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n",
        "GET /files/../secret HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /files/%2e%2e/secret HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /files/..%2fsecret HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /files/..;/secret HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /files\\..\\secret HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /files/%00 HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /files/%zz HTTP/1.1\r\nhost: a\r\n\r\n",
    ] {
        let answer = raw(&bench, format!("{head}{smuggled}").as_bytes()).await;
        assert!(!answer.contains("200 OK"), "{head:?}: {answer}");
        assert_eq!(reached.load(Relaxed), 0, "{head:?}");
    }
    // Both lengths, in either order: one length is sent on, and what is behind it is a request of its own, or nothing.
    for head in [
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n",
    ] {
        raw(&bench, format!("{head}24\r\n{smuggled}\r\n0\r\n\r\n").as_bytes()).await;
    }
    assert_eq!(bench.get("/").await.text(), "reached", "and nobody else noticed");
}

#[tokio::test]
async fn chunks_that_are_not_chunks_break_off() {
    let (bench, _server, _) = guarded().await;
    for chunks in [
        "5\r\nhello\r\nzz\r\n",
        "ffffffffffffffffff\r\n",
        "-1\r\n",
        "5\r\nhelloXX0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
    ] {
        let head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
        let answer =
            raw(&bench, format!("{head}{chunks}GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await;
        assert!(!answer.contains("200 OK"), "{chunks:?}: {answer}");
    }
    assert_eq!(bench.get("/").await.text(), "reached");
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let (bench, _server, reached) = guarded().await;
    let long = "x".repeat(300 << 10);
    let many: String = (0..2_000).map(|number| format!("x-{number}: y\r\n")).collect();
    for head in [
        format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: a\r\nx: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: a\r\n{many}\r\n"),
    ] {
        let answer = raw(&bench, head.as_bytes()).await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }
    assert_eq!(reached.load(Relaxed), 0);
}

#[tokio::test]
async fn who_sends_slowly_is_left_alone_and_then_cut() {
    let bench = Bench::with(json!({"port": 0, "limits": {"headers": "200ms", "idle": "200ms"}})).await;
    bench.put("GatewayRoute", "hello", json!({"rules": [{"filters": {"respond": {"body": "hello"}}}]})).await;
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nx: ").await.unwrap();
        slow.push(stream);
    }
    assert_eq!(bench.get("/").await.text(), "hello");
    for mut stream in slow {
        let mut read = Vec::new();
        let _ = within("the end", stream.read_to_end(&mut read)).await;
    }
}

#[tokio::test]
async fn who_resets_rapidly_disturbs_nobody() {
    let bench = Bench::start().await;
    let server =
        Server::start(|_: watchkeeper_front::Request| std::future::pending::<watchkeeper_front::Response>());
    bench.backend("slow", &[&server]).await;
    bench.route("slow", "/slow", "slow").await;
    bench.put("GatewayRoute", "hello", json!({"rules": [{"filters": {"respond": {"body": "hello"}}}]})).await;
    for _ in 0..5 {
        let mut client = connect_http2(bench.address).await;
        for _ in 0..1_000 {
            let asked = Request::get("http://a/slow").body(Body::empty()).unwrap();
            let mut sent = std::pin::pin!(client.send_request(asked));
            // Begun, and given up.
            if futures_util::poll!(&mut sent).is_ready() {
                break;
            }
        }
    }
    assert_eq!(bench.get("/").await.text(), "hello");
    let table = bench.handle.table();
    let state = &table.backend(&crate::support::id("GatewayBackend", "slow").key).unwrap().state;
    within("the requests end with their clients", async {
        while state.active.load(Relaxed) > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}
