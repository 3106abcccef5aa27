//! What reaches a backend of what clients send, byte by byte: requests that it could take for others than the gateway did do not.
//!
//! Each request comes over a socket of its own, as it is written here. The backend is a socket, too, which notes all that it gets. What it could
//! understand in more than one way fails the test, whoever wrote it.

use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use watchkeeper_front::Body;

use crate::support::{Bench, Server, within};

/// A request that nobody sends but as part of another, or behind one that is refused.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";

/// A backend that notes what it gets.
struct Recorder {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(record(stream, Arc::clone(&noted)));
            }
        });
        Self { address, requests }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock())
    }
}

/// Reads requests as the strictest of servers, and answers them.
async fn record(mut stream: TcpStream, noted: Arc<Mutex<Vec<String>>>) {
    let mut read = Vec::new();
    loop {
        let end = loop {
            match read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                Some(end) => break end,
                None if matches!(stream.read_buf(&mut read).await, Ok(1..)) => {}
                None if read.is_empty() => return,
                None => return noted.lock().push(format!("half a request: {}", read.escape_ascii())),
            }
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        read.drain(..end + 4);
        let mut lines = head.split("\r\n");
        let line = lines.next().unwrap().to_owned();
        let mut headers: Vec<&str> = lines.collect();
        headers.sort_unstable();
        let is_plain = |line: &str| !line.contains(['\r', '\n', '\0']) && !line.starts_with([' ', '\t']);
        let mut mistakes: Vec<&str> = headers.iter().copied().filter(|line| !is_plain(line)).collect();
        let told = |name: &str| headers.iter().filter_map(|line| line.strip_prefix(name)).collect::<Vec<_>>();
        let body = match (&told("content-length: ")[..], &told("transfer-encoding: ")[..]) {
            ([], []) => String::new(),
            ([length], []) => {
                let length: usize = length.parse().unwrap_or(usize::MAX);
                while read.len() < length && matches!(stream.read_buf(&mut read).await, Ok(1..)) {}
                match read.len() < length {
                    true => return noted.lock().push(format!("{line}: half a body")),
                    false => String::from_utf8_lossy(&read.drain(..length).collect::<Vec<_>>()).into_owned(),
                }
            }
            ([], ["chunked"]) => match chunks(&mut stream, &mut read).await {
                Some(body) => body,
                None => return noted.lock().push(format!("{line}: half a body")),
            },
            _ => {
                mistakes.push("the length is told in two ways");
                String::new()
            }
        };
        let own = ["x-forwarded-for: 127.0.0.1", "x-forwarded-proto: http", "x-forwarded-host: a"];
        let headers: Vec<&str> = headers.iter().copied().filter(|line| !own.contains(line)).collect();
        let mut noted_down = format!("{line} | {} | {body}", headers.join(", "));
        if !mistakes.is_empty() {
            noted_down += &format!(" | mistakes: {mistakes:?}");
        }
        noted.lock().push(noted_down);
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.is_err() {
            return;
        }
    }
}

/// A body in chunks, and the trailers behind it.
async fn chunks(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<String> {
    let mut body = String::new();
    loop {
        let size = line(stream, read).await?;
        let size = usize::from_str_radix(&size, 16).ok()?;
        if size == 0 {
            break;
        }
        while read.len() < size {
            stream.read_buf(read).await.ok().filter(|count| *count > 0)?;
        }
        body += &String::from_utf8_lossy(&read.drain(..size).collect::<Vec<_>>());
        if !line(stream, read).await?.is_empty() {
            return None;
        }
    }
    loop {
        match line(stream, read).await? {
            trailer if trailer.is_empty() => return Some(body),
            trailer => body += &format!(" trailer {trailer}"),
        }
    }
}

async fn line(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = read.windows(2).position(|bytes| bytes == b"\r\n") {
            let line = String::from_utf8_lossy(&read[..end]).into_owned();
            read.drain(..end + 2);
            return Some(line);
        }
        stream.read_buf(read).await.ok().filter(|count| *count > 0)?;
    }
}

/// A gateway before a recorder.
async fn recorded() -> (Bench, Recorder) {
    let (bench, recorder) = (Bench::start().await, Recorder::start().await);
    let endpoints = json!([{"address": recorder.address.to_string()}]);
    bench.put("GatewayBackend", "recorder", json!({"endpoints": endpoints})).await;
    let rule = json!({"matches": [{"path": {"prefix": "/files"}}], "filters": {"rewrite": {"path": {"prefix": "/public"}}}, "backends": [{"name": "recorder"}]});
    let rules = json!({"rules": [rule, {"backends": [{"name": "recorder"}]}]});
    bench.put("GatewayRoute", "all", rules).await;
    (bench, recorder)
}

/// How many requests were refused because of how they were written.
fn malformed(bench: &Bench) -> usize {
    let metrics = bench.handle.metrics();
    let line = metrics.lines().find_map(|line| line.strip_prefix("gateway_malformed_total "));
    line.unwrap().parse().unwrap()
}

#[tokio::test]
async fn requests_that_can_be_read_in_two_ways_reach_no_backend_and_are_counted() {
    let (bench, recorder) = recorded().await;
    for head in [
        // Two lengths, or none that is one.
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\nTransfer-Encoding: chunked\r\nx: y\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nContent-Length: 6\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5, 6\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5, 5\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5 5\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +5\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0x5\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5.0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length:\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 18446744073709551616\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length : 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent_length: 5\r\n\r\nhello",
        // Encodings that are not `chunked`, once.
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: identity\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding:\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: identity\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer_encoding: chunked\r\n\r\n0\r\n\r\n",
        // Lines that end elsewhere for others.
        "GET / HTTP/1.1\r\nhost: a\r\nx: y\r\n folded: z\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nx: y\r\n\tfolded: z\r\n\r\n",
        "GET / HTTP/1.1\r\n host: a\r\n\r\n",
        "GET / HTTP/1.1\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\nx: y\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\n\n",
        "GET / HTTP/1.1\nhost: a\n\n",
        "GET / HTTP/1.1\r\nhost: a\rx: y\r\n\r\n",
        "GET / HTTP/1.1\rhost: a\r\r",
        "GET / HTTP/1.1\r\nhost: a\r\nname: x\0y\r\n\r\n",
        // Names that are none, or those of others.
        "GET / HTTP/1.1\r\nhost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nna me: x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\n: x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nname\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nn\u{e4}me: x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nX_Forwarded_For: 10.0.0.1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nx-forwarded_proto: https\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nX_Consumer: admin\r\n\r\n",
        // Hosts that are several, or none.
        "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: \r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a, b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a/../b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a:80@b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a?b\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET http://b/ HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET http://a:81/ HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET http://user@a/ HTTP/1.1\r\nhost: user@a\r\n\r\n",
        // Lines that are no requests, or that not everybody reads alike.
        "GET /\tx HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / x HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.2\r\nhost: a\r\n\r\n",
        "GET / HTTP/2.0\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1 x\r\nhost: a\r\n\r\n",
        "GET /\r\n\r\n",
        "GET a HTTP/1.1\r\nhost: a\r\n\r\n",
        "G(T / HTTP/1.1\r\nhost: a\r\n\r\n",
        "CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n",
        // Paths that lead elsewhere.
        "GET /files/../secret HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /files/%2e%2e/secret HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /files/..%2fsecret HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /files/..;/secret HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /files\\..\\secret HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /files/%00 HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /files/%zz HTTP/1.1\r\nhost: a\r\n\r\n",
    ] {
        let before = malformed(&bench);
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        // The gateway may close before it has read all of it.
        let _ = stream.write_all(format!("{head}{SMUGGLED}").as_bytes()).await;
        let mut read = Vec::new();
        let _ = within("the end of the connection", stream.read_to_end(&mut read)).await;
        let read = String::from_utf8_lossy(&read);
        assert!(read.starts_with("HTTP/1.1 4") || read.starts_with("HTTP/1.1 505"), "{head:?}: {read}");
        assert_eq!(read.matches("HTTP/1.1 ").count(), 1, "{head:?}: one answer, and then the end: {read}");
        assert_eq!(recorder.take(), [""; 0], "{head:?}");
        assert_eq!(malformed(&bench), before + 1, "{head:?}: {read}");
    }
    assert_eq!(bench.get("/").await.text(), "ok", "and nobody else noticed");
}

#[tokio::test]
async fn a_length_that_is_padded_hides_no_request_behind_it() {
    let (bench, recorder) = recorded().await;
    let (spaces, zeros) = (" ".repeat(60), "0".repeat(60));
    let length = SMUGGLED.len();
    // Whoever takes the body for a request does not look at the one that follows it.
    let ambiguous =
        "POST /two HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    for told in [
        format!("content-length:{spaces}{length}"),
        format!("content-length: {zeros}{length}"),
        format!("content-length: {length}{spaces}"),
        format!("Content-Length:{}{length}", "\t".repeat(60)),
    ] {
        let before = malformed(&bench);
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        let request = format!("POST /one HTTP/1.1\r\nhost: a\r\n{told}\r\n\r\n{SMUGGLED}{ambiguous}");
        let _ = stream.write_all(request.as_bytes()).await; // may be closed before all is written
        let mut read = Vec::new();
        let _ = within("the end of the connection", stream.read_to_end(&mut read)).await;
        let read = String::from_utf8_lossy(&read);
        assert!(read.starts_with("HTTP/1.1 400 "), "{told:?}: {read}");
        assert_eq!(read.matches("HTTP/1.1 ").count(), 1, "{told:?}: {read}");
        assert_eq!(recorder.take(), [""; 0], "{told:?}");
        assert_eq!(malformed(&bench), before + 1, "{told:?}");
    }
}

#[tokio::test]
async fn what_reaches_a_backend_can_be_read_in_one_way_only() {
    let (bench, recorder) = recorded().await;
    let inside =
        format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{SMUGGLED}", SMUGGLED.len());
    let chunk = format!(
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{SMUGGLED}\r\n0\r\n\r\n",
        SMUGGLED.len()
    );
    let body = format!("POST / HTTP/1.1 | content-length: {}, host: a | {SMUGGLED}", SMUGGLED.len());
    let chunked = format!("POST / HTTP/1.1 | host: a, transfer-encoding: chunked | {SMUGGLED}");
    let plain = "GET / HTTP/1.1 | host: a | ";
    let cases: [(&str, &[&str]); 23] = [
        ("GET / HTTP/1.1\r\nhost: a\r\n\r\n", &[plain]),
        (SMUGGLED, &["GET /smuggled HTTP/1.1 | host: a | "]),
        (&inside, &[&body]),
        (&chunk, &[&chunked]),
        (
            "POST / HTTP/1.1\r\nhost: a\r\nTransfer-Encoding:\tChunked \r\n\r\n005;x=\"y\"\r\nhello\r\n0;z\r\n\r\n",
            &["POST / HTTP/1.1 | host: a, transfer-encoding: chunked | hello"],
        ),
        (
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntrailer: x-consumer\r\n\r\n0\r\ncontent-length: 3\r\nx-consumer: admin\r\n\r\n",
            &["POST / HTTP/1.1 | host: a, transfer-encoding: chunked | "],
        ),
        (
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n",
            &["POST / HTTP/1.1 | content-length: 0, host: a | "],
        ),
        (
            "GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi",
            &["GET / HTTP/1.1 | content-length: 2, host: a | hi"],
        ),
        (
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 005\r\n\r\nhello",
            &["POST / HTTP/1.1 | content-length: 005, host: a | hello"],
        ),
        (
            "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\nhello",
            &["POST / HTTP/1.1 | content-length: 5, host: a | hello"],
        ),
        (
            "GET /1 HTTP/1.1\r\nhost: a\r\n\r\nPOST /2 HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello\r\nGET /3 HTTP/1.1\r\nhost: a\r\n\r\n",
            &[
                "GET /1 HTTP/1.1 | host: a | ",
                "POST /2 HTTP/1.1 | content-length: 5, host: a | hello",
                "GET /3 HTTP/1.1 | host: a | ",
            ],
        ),
        ("\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n", &[plain]),
        ("GET / HTTP/1.0\r\nhost: a\r\n\r\n", &[plain]),
        ("GET http://a/x?y HTTP/1.1\r\nhost: a\r\n\r\n", &["GET /x?y HTTP/1.1 | host: a | "]),
        ("GET /files/x%2fy?z HTTP/1.1\r\nhost: a\r\n\r\n", &["GET /public/x%2Fy?z HTTP/1.1 | host: a | "]),
        ("GET //b/x HTTP/1.1\r\nhost: a\r\n\r\n", &["GET //b/x HTTP/1.1 | host: a | "]),
        ("GET /x?y=/../z HTTP/1.1\r\nhost: a\r\n\r\n", &["GET /x?y=/../z HTTP/1.1 | host: a | "]),
        ("GET / HTTP/1.1\r\nhost: a\r\nx: \t y \t\r\n\r\n", &["GET / HTTP/1.1 | host: a, x: y | "]),
        ("GET / HTTP/1.1\r\nhost: a\r\napi_key: 1\r\n\r\n", &["GET / HTTP/1.1 | api_key: 1, host: a | "]),
        (
            "GET / HTTP/1.1\r\nhost: a\r\nconnection: keep-alive, x-secret, host\r\nx-secret: 1\r\nkeep-alive: 5\r\nproxy-connection: x\r\nte: gzip\r\n\r\n",
            &[plain],
        ),
        (
            "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n",
            &[plain],
        ),
        ("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket, h2c\r\n\r\n", &[plain]),
        (
            "GET / HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 10.0.0.1\r\nx-consumer: admin\r\nforwarded: for=10.0.0.1\r\n\r\n",
            &[plain],
        ),
    ];
    for (sent, expected) in cases {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut read = Vec::new();
        let answers = |read: &[u8]| String::from_utf8_lossy(read).matches("\r\n\r\nok").count();
        while answers(&read) < expected.len() {
            let count = within("an answer", stream.read_buf(&mut read)).await.unwrap();
            assert!(count > 0, "{sent:?}: {}", String::from_utf8_lossy(&read));
        }
        assert_eq!(recorder.take(), expected, "{sent:?}");
    }
    assert_eq!(malformed(&bench), 0);
}

#[tokio::test]
async fn trailers_say_nothing_to_a_backend_that_only_a_head_may_say() {
    let bench = Bench::start().await;
    let server = Server::start(|request: watchkeeper_front::Request| async move {
        let trailers = request.into_body().collect().await.unwrap().trailers().cloned().unwrap_or_default();
        let mut trailers: Vec<String> =
            trailers.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap())).collect();
        trailers.sort();
        watchkeeper_front::Response::new(Body::whole(format!("trailers: {trailers:?}")))
    });
    let endpoints = json!([{"address": server.address.to_string()}]);
    bench.put("GatewayBackend", "b", json!({"endpoints": endpoints, "protocol": "HTTP2"})).await;
    bench.route("all", "/", "b").await;
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    let head = "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    let trailers = "x-sum: 1\r\nx-consumer: admin\r\nx_consumer: admin\r\ncontent-length: 3\r\nauthorization: a\r\nhost: b\r\n";
    stream.write_all(format!("{head}5\r\nhello\r\n0\r\n{trailers}\r\n").as_bytes()).await.unwrap();
    let mut read = String::new();
    within("an answer", stream.read_to_string(&mut read)).await.unwrap();
    assert!(read.ends_with("trailers: [\"x-sum=1\"]"), "{read}");
}
