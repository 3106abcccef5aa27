//! Clients that mean no good. What they write so that it can be read in two ways is in `smuggling.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use watchkeeper_front::Body;
use watchkeeper_gateway::upstream::EndpointState;

use crate::support::{Bench, Control, Server, within};

/// What a raw request is answered with: to the end of the connection, or until nothing more comes. Nobody hangs up before that: a request whose
/// client has left is not sent on.
async fn raw(bench: &Bench, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    // The gateway may close before it has read all of it.
    let _ = stream.write_all(bytes).await;
    let mut read = Vec::new();
    let mut more = within("an answer", stream.read_buf(&mut read)).await;
    while matches!(more, Ok(1..)) {
        // Another answer would follow at once.
        let next = tokio::time::timeout(Duration::from_millis(300), stream.read_buf(&mut read)).await;
        more = next.unwrap_or(Ok(0));
    }
    String::from_utf8_lossy(&read).into_owned()
}

/// What the backend of a gateway saw.
#[derive(Default)]
struct Seen {
    reached: AtomicUsize,
    /// Whether there was a request for a path that is only in bodies.
    smuggled: AtomicBool,
    bodies: Mutex<Vec<String>>,
    /// Requests whose bodies broke off.
    cut: AtomicUsize,
}

/// A request that nobody sends but as part of another.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";

/// A gateway, and its backend, which notes what reaches it.
async fn guarded() -> (Bench, Server, Arc<Seen>) {
    let bench = Bench::start().await;
    let seen = Arc::<Seen>::default();
    let server = Server::start({
        let seen = Arc::clone(&seen);
        move |request: watchkeeper_front::Request| {
            let seen = Arc::clone(&seen);
            async move {
                seen.smuggled.fetch_or(request.uri().path().contains("smuggled"), Relaxed);
                seen.reached.fetch_add(1, Relaxed);
                match request.into_body().read(1 << 20).await {
                    Ok(body) => seen.bodies.lock().push(String::from_utf8_lossy(&body).into_owned()),
                    Err(_) => drop(seen.cut.fetch_add(1, Relaxed)),
                }
                watchkeeper_front::Response::new(Body::whole("reached"))
            }
        }
    });
    bench.backend("one", &[&server]).await;
    let rule = json!({"matches": [{"path": {"prefix": "/files"}}], "filters": {"rewrite": {"path": {"prefix": "/public"}}}, "backends": [{"name": "one"}]});
    bench.put("GatewayRoute", "files", json!({"rules": [rule, {"backends": [{"name": "one"}]}]})).await;
    (bench, server, seen)
}

/// Has the server of a guarded gateway be left out for an hour after one failure.
async fn strict(bench: &Bench, server: &Server, protocol: &str) -> Arc<EndpointState> {
    let spec = json!({
        "endpoints": [{"address": server.address.to_string()}],
        "protocol": protocol,
        "health": {"passive": {"failures": 1, "ejectFor": "1h", "maxEjectedPercent": 100}},
    });
    bench.put("GatewayBackend", "one", spec).await;
    let table = bench.handle.table();
    let backend = table.backend(&crate::support::id("GatewayBackend", "one").key).unwrap();
    Arc::clone(&backend.endpoints[0].state)
}

/// Waits until so many requests were refused because of how they were written, and fails if there are more.
async fn malformed_becomes(bench: &Bench, expected: usize, what: &str) {
    let counted = async {
        while malformed(bench) < expected {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(&format!("{what} to be counted"), counted).await;
    assert_eq!(malformed(bench), expected, "{what}");
}

/// How many requests were refused because of how they were written.
fn malformed(bench: &Bench) -> usize {
    let metrics = bench.handle.metrics();
    let line = metrics.lines().find_map(|line| line.strip_prefix("gateway_malformed_total "));
    line.unwrap().parse().unwrap()
}

/// How many connections were closed because nothing came over them, or not in time.
fn dropped(bench: &Bench) -> usize {
    let metrics = bench.handle.metrics();
    let lines = metrics.lines().filter(|line| line.starts_with("gateway_connections_dropped_total{"));
    let idle = lines.filter(|line| line.contains("reason=\"idle\""));
    idle.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum()
}

#[tokio::test]
async fn what_is_smuggled_would_be_seen() {
    let (bench, _server, seen) = guarded().await;
    raw(&bench, SMUGGLED.as_bytes()).await;
    assert!(seen.smuggled.load(Relaxed), "whoever asks for it in the open gets there");
}

#[tokio::test]
async fn chunks_that_are_not_chunks_break_off_and_no_server_is_blamed_for_them() {
    let (bench, server, seen) = guarded().await;
    for protocol in ["HTTP1", "HTTP2"] {
        let state = strict(&bench, &server, protocol).await;
        for chunks in [
            "5\r\nhello\r\nzz\r\n",
            "ffffffffffffffffff\r\n",
            "-1\r\n",
            "5\r\nhelloXX0\r\n\r\n",
            "0x5\r\nhello\r\n0\r\n\r\n",
        ] {
            let before = malformed(&bench);
            let head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
            let answer = raw(&bench, format!("{head}{chunks}{SMUGGLED}").as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{protocol} {chunks:?}: {answer}");
            assert!(answer.contains("\r\nconnection: close\r\n"), "{protocol} {chunks:?}: {answer}");
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{protocol} {chunks:?}: {answer}");
            assert!(!seen.smuggled.load(Relaxed), "{protocol} {chunks:?}");
            assert_eq!(malformed(&bench), before + 1, "{protocol} {chunks:?}");
            assert_eq!(state.failures.load(Relaxed), 0, "{protocol} {chunks:?}");
            assert!(!state.is_ejected(), "{protocol} {chunks:?}");
        }
        assert_eq!(seen.bodies.lock().as_slice(), [""; 0], "{protocol}: no body was complete");
        assert_eq!(bench.get("/").await.text(), "reached", "{protocol}");
        seen.bodies.lock().clear();
    }
}

#[tokio::test]
async fn a_response_that_ends_because_of_the_body_of_its_client_was_not_cut_by_the_server() {
    let bench = Bench::start().await;
    // The response is what comes, as it comes.
    let server = Server::start(|request: watchkeeper_front::Request| async move {
        watchkeeper_front::Response::new(Body::wrap(request.into_body()))
    });
    bench.backend("one", &[&server]).await;
    let state = strict(&bench, &server, "HTTP1").await;
    bench.route("all", "/", "one").await;
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    let begin = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n";
    stream.write_all(begin).await.unwrap();
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains("hello") {
        assert!(within("the response", stream.read_buf(&mut read)).await.unwrap() > 0);
    }
    stream.write_all(b"zz\r\n").await.unwrap();
    let _ = within("the end", stream.read_to_end(&mut read)).await; // it may be reset
    assert!(!String::from_utf8_lossy(&read).contains("\r\n0\r\n"), "it is not complete");
    assert_eq!(malformed(&bench), 1);
    assert!(bench.handle.metrics().contains("gateway_cut_total 0\n"), "{}", bench.handle.metrics());
    assert!(state.failures.load(Relaxed) == 0 && !state.is_ejected());
}

#[tokio::test]
async fn who_gives_up_half_way_is_no_reason_to_blame_a_server_and_half_a_body_is_not_taken_for_all_of_it() {
    let (bench, server, seen) = guarded().await;
    let state = strict(&bench, &server, "HTTP1").await;
    let cut = async |expected: usize| {
        within("the body to break off", async {
            while seen.cut.load(Relaxed) < expected || state.active.load(Relaxed) > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        assert_eq!(seen.bodies.lock().as_slice(), [""; 0], "of {expected}");
        assert_eq!((state.failures.load(Relaxed), malformed(&bench)), (0, 0), "of {expected}");
    };
    let reached = async |expected: usize| {
        within("the request to be sent on", async {
            while seen.reached.load(Relaxed) < expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    };
    for (at, length) in ["content-length: 100", "transfer-encoding: chunked"].into_iter().enumerate() {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        let request = format!("POST / HTTP/1.1\r\nhost: a\r\n{length}\r\n\r\n5\r\nhello\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        reached(at + 1).await;
        drop(stream);
        cut(at + 1).await;
    }
    // By HTTP/2: with no error, and with the one that browsers send.
    let lengths = [&[][..], &[("content-length", "100")]];
    for (at, (length, code)) in
        lengths.into_iter().flat_map(|length| [(length, 0_u32), (length, 8)]).enumerate()
    {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        let head = h2::fields(&[&ASKED[..], length].concat());
        let begin = [
            h2::PREFACE,
            &h2::frame(h2::SETTINGS, 0, 0, &[]),
            &h2::frame(h2::HEADERS, h2::END_HEADERS, 1, &head),
            &h2::frame(h2::DATA, 0, 1, b"hello"),
        ];
        stream.write_all(&begin.concat()).await.unwrap();
        reached(at + 3).await;
        stream.write_all(&h2::frame(h2::RST_STREAM, 0, 1, &code.to_be_bytes())).await.unwrap();
        cut(at + 3).await;
    }
    assert_eq!(bench.get("/").await.text(), "reached");
}

/// Bytes of HTTP/2, put together by hand: no client would.
mod h2 {
    pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    pub(super) const DATA: u8 = 0;
    pub(super) const HEADERS: u8 = 1;
    pub(super) const RST_STREAM: u8 = 3;
    pub(super) const SETTINGS: u8 = 4;
    pub(super) const GOAWAY: u8 = 7;
    pub(super) const CONTINUATION: u8 = 9;
    pub(super) const END_STREAM: u8 = 1;
    pub(super) const END_HEADERS: u8 = 4;

    pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        frame
    }

    /// A field that is written out.
    pub(super) fn field(name: &str, value: &str) -> Vec<u8> {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        [&[0][..], &text(name), &text(value)].concat()
    }

    pub(super) fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
        fields.iter().flat_map(|(name, value)| field(name, value)).collect()
    }
}

/// Sends frames, and says how the first stream ends: with 200, otherwise, or with the connection.
async fn frames(bench: &Bench, frames: &[Vec<u8>]) -> &'static str {
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    let begin = [h2::PREFACE, &h2::frame(h2::SETTINGS, 0, 0, &[])].concat();
    let _ = stream.write_all(&[begin, frames.concat()].concat()).await;
    within("an end", async {
        loop {
            let mut head = [0; 9];
            if stream.read_exact(&mut head).await.is_err() {
                return "closed";
            }
            let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            if stream.read_exact(&mut payload).await.is_err() {
                return "closed";
            }
            match head[3] {
                // The code 200 has a number of its own.
                h2::HEADERS if payload.first() == Some(&0x88) => return "200",
                h2::HEADERS => return "refused",
                h2::RST_STREAM => return "reset",
                h2::GOAWAY => return "gone away",
                _ => {}
            }
        }
    })
    .await
}

/// Reads until a frame of this kind has come.
async fn until_frame(stream: &mut TcpStream, kind: u8) {
    within("a frame", async {
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await.unwrap();
            let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            stream.read_exact(&mut payload).await.unwrap();
            if head[3] == kind {
                return;
            }
        }
    })
    .await;
}

const ASKED: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/")];

#[tokio::test]
async fn nothing_is_smuggled_from_http2_to_a_server_of_http1() {
    let (bench, _server, seen) = guarded().await;
    let whole = |fields: &[(&str, &str)]| {
        vec![h2::frame(h2::HEADERS, h2::END_STREAM | h2::END_HEADERS, 1, &h2::fields(fields))]
    };
    let with = |more: &[(&str, &str)]| whole(&[&ASKED[..], more].concat());
    let path = |path: &str| whole(&[ASKED[0], ASKED[1], ASKED[2], (":path", path)]);
    assert_eq!(frames(&bench, &with(&[])).await, "200", "as it should be");
    seen.bodies.lock().clear();
    let before = seen.reached.load(Relaxed);
    for (what, bytes) in [
        ("transfer-encoding", with(&[("transfer-encoding", "chunked")])),
        ("connection", with(&[("connection", "close")])),
        ("upgrade", with(&[("upgrade", "h2c")])),
        ("te", with(&[("te", "gzip")])),
        ("two lengths", with(&[("content-length", "0"), ("content-length", "1")])),
        ("a length that is none", with(&[("content-length", "+0")])),
        ("a line end in a value", with(&[("x", "y\r\nz: 1")])),
        ("a line feed in a value", with(&[("x", "y\nz: 1")])),
        ("a request in a value", with(&[("x", "y\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n")])),
        ("a NUL in a value", with(&[("x", "y\0z")])),
        ("a line end in a name", with(&[("x: y\r\nz", "1")])),
        ("a colon in a name", with(&[("x: y", "1")])),
        ("upper case", with(&[("X-Team", "1")])),
        ("a request in the path", path("/ HTTP/1.1\r\nhost: a\r\n\r\nGET /smuggled")),
        ("a space in the path", path("/ x")),
        ("no slash", path("smuggled")),
        ("dot segments", path("/files/../smuggled")),
        ("no path", whole(&ASKED[..3])),
        ("two paths", with(&[(":path", "/smuggled")])),
        ("a pseudo header behind others", whole(&[ASKED[0], ASKED[1], ("x", "y"), ASKED[2], ASKED[3]])),
        ("an unknown pseudo header", with(&[(":smuggled", "1")])),
        ("another host", with(&[("host", "b")])),
        (
            "a request in the host",
            whole(&[ASKED[0], ASKED[1], (":authority", "a\r\n\r\nGET /smuggled"), ASKED[3]]),
        ),
        ("CONNECT", whole(&[(":method", "CONNECT"), (":authority", "a:80")])),
        (
            "a method with a request",
            whole(&[(":method", "GET /smuggled HTTP/1.1\r\nx: y\r\n\r\nGET"), ASKED[1], ASKED[2], ASKED[3]]),
        ),
    ] {
        assert_ne!(frames(&bench, &bytes).await, "200", "{what}");
        assert_eq!(seen.reached.load(Relaxed), before, "{what}");
    }
    assert!(!seen.smuggled.load(Relaxed));
    assert_eq!(*seen.bodies.lock(), [""; 0], "no body was complete");
    assert_eq!(bench.get("/").await.text(), "reached");
}

#[tokio::test]
async fn a_length_that_is_not_that_of_the_body_is_counted_and_no_server_is_blamed_for_it() {
    let (bench, server, seen) = guarded().await;
    for protocol in ["HTTP1", "HTTP2"] {
        let state = strict(&bench, &server, protocol).await;
        for length in ["4", "400"] {
            let head = h2::fields(&[&ASKED[..], &[("content-length", length)]].concat());
            let head = h2::frame(h2::HEADERS, h2::END_HEADERS, 1, &head);
            let data = h2::frame(h2::DATA, h2::END_STREAM, 1, SMUGGLED.as_bytes());
            let before = malformed(&bench);
            // The stream is reset, and what was sent on is broken off.
            assert_ne!(frames(&bench, &[head.clone(), data.clone()]).await, "200", "{protocol} {length}");
            malformed_becomes(&bench, before + 1, length).await;
            // The same when the server has begun to read.
            let mut stream = TcpStream::connect(bench.address).await.unwrap();
            let sent = seen.reached.load(Relaxed);
            let begin = [h2::PREFACE, &h2::frame(h2::SETTINGS, 0, 0, &[]), &head].concat();
            stream.write_all(&begin).await.unwrap();
            within("the request to be sent on", async {
                while seen.reached.load(Relaxed) == sent {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            })
            .await;
            stream.write_all(&data).await.unwrap();
            malformed_becomes(&bench, before + 2, length).await;
            within("the request to end", async {
                while state.active.load(Relaxed) > 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            })
            .await;
            assert_eq!(state.failures.load(Relaxed), 0, "{protocol} {length}");
            assert!(!state.is_ejected(), "{protocol} {length}");
        }
        assert!(!seen.smuggled.load(Relaxed));
        assert_eq!(seen.bodies.lock().as_slice(), [""; 0], "{protocol}: no body was complete");
        assert_eq!(bench.get("/").await.text(), "reached", "{protocol}");
        seen.bodies.lock().clear();
    }
}

#[tokio::test]
async fn streams_that_are_reset_because_of_their_heads_are_counted_as_one_when_they_are_too_many() {
    let (bench, _server, _) = guarded().await;
    let with = |stream: u32, more: &[(&str, &str)]| {
        let head = h2::fields(&[&ASKED[..], more].concat());
        h2::frame(h2::HEADERS, h2::END_STREAM | h2::END_HEADERS, stream, &head)
    };
    let wrong = |at: u32| with(2 * at + 1, &[("connection", "close")]);
    let begin = [h2::PREFACE, &h2::frame(h2::SETTINGS, 0, 0, &[])].concat();
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    let few: Vec<u8> = (0..10).flat_map(wrong).collect();
    stream.write_all(&[begin, few, with(2 * 10 + 1, &[])].concat()).await.unwrap();
    until_frame(&mut stream, h2::HEADERS).await;
    assert_eq!(malformed(&bench), 0, "the connection is still good");
    let many: Vec<u8> = (11..5_000).flat_map(wrong).collect();
    let _ = stream.write_all(&many).await; // may be closed before all is written
    let mut rest = Vec::new();
    let _ = within("the end of the connection", stream.read_to_end(&mut rest)).await; // it may be reset
    malformed_becomes(&bench, 1, "the connection").await;
}

#[tokio::test]
async fn a_client_that_leaves_no_time_is_no_reason_to_blame_a_server() {
    let (bench, _, _) = guarded().await;
    let server =
        Server::start(|_: watchkeeper_front::Request| std::future::pending::<watchkeeper_front::Response>());
    let state = strict(&bench, &server, "HTTP1").await;
    // What may be sent twice is read before any of it is sent on.
    let retry = json!({"attempts": 1, "statuses": [503]});
    let rule = json!({"backends": [{"name": "one"}], "timeouts": {"request": "2s"}, "retry": retry});
    let other = json!({
        "matches": [{"path": {"prefix": "/quick"}}],
        "backends": [{"name": "one"}],
        "timeouts": {"request": "100ms"},
    });
    bench.put("GatewayRoute", "files", json!({"rules": [other, rule]})).await;
    for method in ["PUT", "POST"] {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        let head = format!("{method} / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhell");
        stream.write_all(head.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        stream.write_all(b"o").await.unwrap();
        let mut read = Vec::new();
        within("an answer", stream.read_buf(&mut read)).await.unwrap();
        let read = String::from_utf8_lossy(&read);
        // On a slow machine, the client is later than it wants to be.
        assert!(read.starts_with("HTTP/1.1 504 ") || read.starts_with("HTTP/1.1 408 "), "{read}");
        assert!(state.failures.load(Relaxed) == 0 && !state.is_ejected(), "{method}");
    }
    // Nobody waits for this client.
    within("the server to be left out", async {
        while !state.is_ejected() {
            raw(&bench, b"POST /quick HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello").await;
        }
    })
    .await;
}

/// How long each of some requests takes, on connections of their own.
async fn latencies(bench: &Bench, count: usize) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..count {
        let begin = Instant::now();
        assert_eq!(bench.get("/").await.text(), "reached");
        times.push(begin.elapsed());
    }
    times.sort();
    times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_headers_end_their_connection_and_nobody_else_waits() {
    let (bench, _server, seen) = guarded().await;
    let bench = Arc::new(bench);
    latencies(&bench, 20).await;
    let alone = latencies(&bench, 50).await;
    let head = h2::frame(h2::HEADERS, h2::END_STREAM, 1, &h2::fields(&ASKED));
    // Headers that do not end, little by little: each piece is a frame to look at.
    let pieces = vec![head.clone(), h2::frame(h2::CONTINUATION, 0, 1, b"").repeat(20_000)];
    let before = malformed(&bench);
    // A few, so that the gateway has read all of them when it ends the connection.
    let few = vec![head.clone(), h2::frame(h2::CONTINUATION, 0, 1, b"").repeat(20)];
    assert_eq!(frames(&bench, &few).await, "gone away");
    within("the flood to be counted", async {
        while malformed(&bench) == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    // More headers than anybody has.
    let field = |at: u32| h2::frame(h2::CONTINUATION, 0, 1, &h2::field(&format!("x-{at}"), &"y".repeat(100)));
    let many = vec![head, (0..2_000).flat_map(field).collect()];
    let stop = Arc::new(AtomicBool::new(false));
    // On threads of their own: they are not part of the gateway.
    let attackers = [pieces, many].map(|flood| {
        let (bench, stop) = (Arc::clone(&bench), Arc::clone(&stop));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut ends = 0;
                while !stop.load(Relaxed) {
                    assert_ne!(frames(&bench, &flood).await, "200");
                    ends += 1;
                }
                ends
            })
        })
    });
    let control = Control::start();
    let meanwhile = latencies(&bench, 100).await;
    stop.store(true, Relaxed);
    let ends = attackers.map(|attacker| attacker.join().unwrap());
    let middle = |times: &[Duration]| times[times.len() / 2];
    let slowest = meanwhile[meanwhile.len() - 1];
    println!(
        "{ends:?} floods: alone {:?}, meanwhile {:?}, slowest {slowest:?}, longest stall {:?}",
        middle(&alone),
        middle(&meanwhile),
        control.longest()
    );
    assert!(ends.iter().all(|ends| *ends > 0));
    assert!(malformed(&bench) > before + 1);
    // The attackers use the same processors: this is not about microseconds, but about nobody having to wait for a flood to end.
    assert!(middle(&meanwhile) < Duration::from_millis(100) + control.longest(), "{meanwhile:?}");
    assert_eq!(seen.reached.load(Relaxed), 170);
}

#[tokio::test]
async fn who_sends_a_body_slowly_is_answered_in_time_and_cut_and_no_server_is_blamed_for_it() {
    let (bench, server, _) = guarded().await;
    let spec = json!({
        "endpoints": [{"address": server.address.to_string()}],
        "health": {"passive": {"failures": 1, "ejectFor": "1h", "maxEjectedPercent": 100}},
    });
    bench.put("GatewayBackend", "one", spec).await;
    let rule = json!({"backends": [{"name": "one"}], "timeouts": {"request": "200ms"}});
    // A small body that may be sent twice is read before any of it is sent on.
    let kept = json!({
        "matches": [{"path": {"prefix": "/kept"}}],
        "backends": [{"name": "one"}],
        "timeouts": {"request": "200ms"},
        "retry": {"attempts": 2, "statuses": [503]},
    });
    bench.put("GatewayRoute", "files", json!({"rules": [kept, rule]})).await;
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        let (code, request) = match slow.len() % 4 {
            0 => ("504", "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nx"),
            // More than would be waited for.
            1 => ("504", "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\nx"),
            2 => ("504", "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n100\r\nx"),
            _ => ("408", "PUT /kept HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nx"),
        };
        stream.write_all(request.as_bytes()).await.unwrap();
        slow.push((code, stream));
    }
    assert_eq!(bench.get("/").await.text(), "reached");
    let begin = Instant::now();
    for (code, mut stream) in slow {
        let mut read = Vec::new();
        // Nobody waits for the rest: the connection is closed, though it is not idle for long.
        within("the end of the connection", stream.read_to_end(&mut read)).await.unwrap();
        let read = String::from_utf8(read).unwrap();
        assert!(read.starts_with(&format!("HTTP/1.1 {code} ")), "{read}");
        assert!(read.contains("\r\nconnection: close\r\n"), "{read}");
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert_eq!(bench.get("/").await.text(), "reached", "the server was not slow");
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let (bench, _server, seen) = guarded().await;
    let long = "x".repeat(300 << 10);
    let many: String = (0..2_000).map(|number| format!("x-{number}: y\r\n")).collect();
    for head in [
        format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: a\r\nx: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: a\r\n{many}\r\n"),
    ] {
        let before = malformed(&bench);
        let answer = raw(&bench, head.as_bytes()).await;
        assert!(!answer.contains("200 OK"), "{answer}");
        assert_eq!(malformed(&bench), before + 1, "{answer}");
    }
    assert_eq!(seen.reached.load(Relaxed), 0);
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
    assert_eq!(dropped(&bench), 50);
}

#[tokio::test]
async fn every_head_has_to_come_in_time_not_only_the_first() {
    let bench = Bench::with(json!({"port": 0, "limits": {"headers": "200ms", "idle": "1h"}})).await;
    bench.put("GatewayRoute", "hello", json!({"rules": [{"filters": {"respond": {"body": "hello"}}}]})).await;
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    for _ in 0..2 {
        stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let mut read = Vec::new();
        while !read.ends_with(b"hello") {
            within("an answer", stream.read_buf(&mut read)).await.unwrap();
        }
    }
    // Silence is not a head that takes too long.
    let quiet = tokio::time::timeout(Duration::from_millis(600), stream.read_u8()).await;
    assert!(quiet.is_err(), "{quiet:?}");
    stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nx: ").await.unwrap();
    let mut read = Vec::new();
    let _ = within("the end", stream.read_to_end(&mut read)).await;
    assert!(!String::from_utf8_lossy(&read).contains("hello"));
    assert_eq!(dropped(&bench), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_resets_rapidly_is_told_to_go_and_disturbs_nobody() {
    let (bench, _server, _) = guarded().await;
    let bench = Arc::new(bench);
    let server =
        Server::start(|_: watchkeeper_front::Request| std::future::pending::<watchkeeper_front::Response>());
    bench.backend("slow", &[&server]).await;
    bench.route("slow", "/slow", "slow").await;
    let asked = h2::fields(&[ASKED[0], ASKED[1], ASKED[2], (":path", "/slow")]);
    // Begun, and given up.
    let reset = |at: u32| {
        let (stream, cancel) = (2 * at + 1, 8_u32.to_be_bytes());
        let head = h2::frame(h2::HEADERS, h2::END_STREAM | h2::END_HEADERS, stream, &asked);
        [head, h2::frame(h2::RST_STREAM, 0, stream, &cancel)].concat()
    };
    let few: Vec<Vec<u8>> = (0..100).map(reset).collect();
    let many: Vec<Vec<u8>> = (0..5_000).map(reset).collect();
    let before = malformed(&bench);
    assert_eq!(frames(&bench, &few).await, "gone away");
    within("the flood to be counted", async {
        while malformed(&bench) == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    latencies(&bench, 20).await;
    let alone = latencies(&bench, 50).await;
    let stop = Arc::new(AtomicBool::new(false));
    // On a thread of its own: it is not part of the gateway.
    let attacker = std::thread::spawn({
        let (bench, stop) = (Arc::clone(&bench), Arc::clone(&stop));
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut ends = 0;
                while !stop.load(Relaxed) {
                    assert_ne!(frames(&bench, &many).await, "200");
                    ends += 1;
                }
                ends
            })
        }
    });
    let control = Control::start();
    let meanwhile = latencies(&bench, 100).await;
    stop.store(true, Relaxed);
    let ends = attacker.join().unwrap();
    let middle = |times: &[Duration]| times[times.len() / 2];
    println!(
        "{ends} floods: alone {:?}, meanwhile {:?}, longest stall {:?}",
        middle(&alone),
        middle(&meanwhile),
        control.longest()
    );
    assert!(ends > 0);
    // The attacker uses the same processors: this is about nobody having to wait for a flood to end.
    assert!(middle(&meanwhile) < Duration::from_millis(100) + control.longest(), "{meanwhile:?}");
    let table = bench.handle.table();
    let state = &table.backend(&crate::support::id("GatewayBackend", "slow").key).unwrap().state;
    within("the requests end with their clients", async {
        while state.active.load(Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
