//! Changes while requests run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::sync::mpsc;
use watchkeeper_core::Key;
use watchkeeper_front::Body;

use crate::support::{Bench, Server, connect, connect_http2, id, object, open, request, soak_time, within};

/// A server whose responses are what the test sends.
fn streaming() -> (Server, mpsc::UnboundedReceiver<mpsc::UnboundedSender<Bytes>>) {
    let (sender, streams) = mpsc::unbounded_channel();
    let server = Server::start(move |_: watchkeeper_front::Request| {
        let sender = sender.clone();
        async move {
            let (pieces, receiver) = mpsc::unbounded_channel();
            sender.send(pieces).unwrap();
            let pieces = futures_util::stream::unfold(receiver, |mut receiver| async {
                Some((receiver.recv().await?, receiver))
            });
            watchkeeper_front::Response::new(Body::stream(pieces))
        }
    });
    (server, streams)
}

#[tokio::test]
async fn a_request_keeps_its_table_to_the_last_byte_and_no_longer() {
    let bench = Bench::start().await;
    let (server, mut streams) = streaming();
    bench.backend("b", &[&server]).await;
    bench.route("r", "/", "b").await;
    let mut body = open(bench.address, request(Method::GET, "/", Body::empty())).await.into_body();
    let pieces = within("the stream", streams.recv()).await.unwrap();
    let table = Arc::downgrade(&bench.handle.table());
    bench.remove("GatewayRoute", "r").await;
    bench.remove("GatewayBackend", "b").await;
    bench.put("GatewayRoute", "other", json!({"rules": [{"filters": {"respond": {"body": "new"}}}]})).await;
    assert_eq!(bench.get("/").await.text(), "new");
    assert!(table.upgrade().is_some(), "the stream has it");
    for number in 0..3 {
        pieces.send(Bytes::from(format!("piece {number}"))).unwrap();
        let frame = within("a piece", body.frame()).await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), format!("piece {number}"));
    }
    drop(pieces);
    assert!(within("the end", body.frame()).await.is_none());
    drop(body);
    within("the table to be freed", async {
        while table.upgrade().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_listener_comes_goes_and_moves_and_others_notice_nothing() {
    let bench = Bench::start().await;
    bench.put("GatewayRoute", "hello", json!({"rules": [{"filters": {"respond": {"body": "hello"}}}]})).await;
    let mut client = connect(bench.address).await;
    let mut ask = async || {
        client.ready().await.unwrap();
        let response = client.send_request(request(Method::GET, "/", Body::empty())).await.unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    };
    assert_eq!(ask().await, "hello");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    bench.put("GatewayListener", "second", json!({"port": port})).await;
    let report = bench.handle.report(&id("GatewayListener", "second")).unwrap();
    assert_eq!(report.programmed.reason, "AddressNotUsable", "{report}");
    assert_eq!(ask().await, "hello");
    drop(taken);
    let mut handle = bench.handle.clone();
    within("the port is free", async {
        while !handle.report(&id("GatewayListener", "second")).unwrap().programmed.is_true {
            handle.changed().await;
        }
    })
    .await;
    let second = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    assert_eq!(crate::support::send(second, request(Method::GET, "/", Body::empty())).await.text(), "hello");
    // The same port with the same host name once more.
    bench.put("GatewayListener", "third", json!({"port": port})).await;
    let report = bench.handle.report(&id("GatewayListener", "third")).unwrap();
    assert_eq!(report.accepted.reason, "Conflicted", "{report}");
    bench.remove("GatewayListener", "second").await;
    within("the third takes its place", async {
        while !handle.report(&id("GatewayListener", "third")).unwrap().accepted.is_true {
            handle.changed().await;
        }
    })
    .await;
    bench.remove("GatewayListener", "third").await;
    within("the port to be closed", async {
        while tokio::net::TcpStream::connect(second).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(ask().await, "hello", "on the same connection");
}

#[tokio::test]
async fn other_limits_close_no_connection_and_are_for_those_that_come_after() {
    let bench = Bench::start().await;
    bench.put("GatewayRoute", "hello", json!({"rules": [{"filters": {"respond": {"body": "hello"}}}]})).await;
    let mut idle = connect(bench.address).await;
    let mut idle_http2 = connect_http2(bench.address).await;
    let ask = async |client: &mut hyper::client::conn::http1::SendRequest<Body>| {
        client.ready().await.unwrap();
        let response = client.send_request(request(Method::GET, "/", Body::empty())).await.unwrap();
        assert_eq!(response.headers().get("connection"), None);
        response.into_body().collect().await.unwrap().to_bytes()
    };
    assert_eq!(ask(&mut idle).await, "hello");
    for generation in 1..4 {
        let limits = json!({"port": 0, "limits": {"idle": format!("{generation}ms")}});
        let mut listener = object("GatewayListener", "web", limits);
        listener["metadata"]["generation"] = generation.into();
        bench.objects.put(&Key::new(None, "web"), &listener).unwrap();
        bench.reported("GatewayListener", "web", generation).await;
        assert_eq!(ask(&mut idle).await, "hello");
        idle_http2.ready().await.unwrap();
        let answer = idle_http2.send_request(request(Method::GET, "/", Body::empty())).await.unwrap();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "hello");
    }
    let mut after = connect(bench.address).await;
    assert_eq!(ask(&mut after).await, "hello");
    within("the idle one to be closed", async {
        while after.ready().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(ask(&mut idle).await, "hello");
    // With the listener, its connections go.
    assert!(bench.objects.remove(&Key::new(None, "web")));
    within("the connection to be closed", async {
        while idle.ready().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn requests_that_run_end_when_the_gateway_stops() {
    let bench = Bench::start().await;
    let (server, mut streams) = streaming();
    bench.backend("b", &[&server]).await;
    bench.route("r", "/", "b").await;
    let mut body = open(bench.address, request(Method::GET, "/", Body::empty())).await.into_body();
    let pieces = within("the stream", streams.recv()).await.unwrap();
    let address = bench.address;
    let stopping = tokio::spawn(bench.gateway.stop(Duration::from_secs(50)));
    within("no more connections", async {
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    pieces.send(Bytes::from("the last")).unwrap();
    drop(pieces);
    assert_eq!(
        within("the last piece", body.frame()).await.unwrap().unwrap().into_data().unwrap(),
        "the last"
    );
    assert!(body.frame().await.is_none());
    assert_eq!(within("stopping", stopping).await.unwrap(), watchkeeper_front::Drained::Clean);
}

/// What the torture counts.
#[derive(Default)]
struct Counts {
    requests: AtomicUsize,
    wrong: AtomicUsize,
    late: AtomicUsize,
    pieces: AtomicUsize,
    edits: AtomicUsize,
}

/// Requests on connections that stay, and streams, while routes are added, changed, broken and removed.
async fn torture(time: Duration) {
    let bench = Arc::new(Bench::start().await);
    let (one, two) = (Server::echo("one"), Server::echo("two"));
    bench.backend("b", &[&one]).await;
    bench.route("steady", "/steady", "b").await;
    let ticking = Server::start(|_: watchkeeper_front::Request| async {
        let pieces = futures_util::stream::unfold(0_u32, |number| async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Some((Bytes::from(format!("data: {number}\n\n")), number + 1))
        });
        watchkeeper_front::Response::new(Body::stream(pieces))
    });
    bench.backend("ticking", &[&ticking]).await;
    bench.route("ticking", "/ticking", "ticking").await;
    let (counts, stop) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (counts, stop, mut client) =
            (Arc::clone(&counts), Arc::clone(&stop), connect(bench.address).await);
        tasks.spawn(async move {
            while !stop.load(Relaxed) {
                client.ready().await.expect("the connection was closed");
                let response = client.send_request(request(Method::GET, "/steady", Body::empty())).await;
                let response = response.expect("a request was reset");
                counts.wrong.fetch_add(usize::from(response.status() != 200), Relaxed);
                response.into_body().collect().await.expect("a response was cut");
                counts.requests.fetch_add(1, Relaxed);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    }
    for _ in 0..4 {
        let (counts, stop, mut client) =
            (Arc::clone(&counts), Arc::clone(&stop), connect_http2(bench.address).await);
        tasks.spawn(async move {
            while !stop.load(Relaxed) {
                let asked = http::Request::get("http://gateway.test/steady").body(Body::empty()).unwrap();
                let response = client.send_request(asked).await.expect("a request was reset");
                counts.wrong.fetch_add(usize::from(response.status() != 200), Relaxed);
                response.into_body().collect().await.expect("a response was cut");
                counts.requests.fetch_add(1, Relaxed);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    }
    for _ in 0..10 {
        let (counts, stop) = (Arc::clone(&counts), Arc::clone(&stop));
        let mut body = open(bench.address, request(Method::GET, "/ticking", Body::empty())).await.into_body();
        tasks.spawn(async move {
            for number in 0.. {
                if stop.load(Relaxed) {
                    break;
                }
                let begin = Instant::now();
                let piece = body.frame().await.expect("a stream ended").expect("a stream was cut");
                assert_eq!(
                    piece.into_data().unwrap(),
                    format!("data: {number}\n\n"),
                    "a stream was restarted"
                );
                counts.late.fetch_add(usize::from(begin.elapsed() > Duration::from_secs(10)), Relaxed);
                counts.pieces.fetch_add(1, Relaxed);
            }
        });
    }
    let begin = Instant::now();
    let mut random = fastrand::Rng::with_seed(7);
    while begin.elapsed() < time {
        let name = format!("route-{}", random.u32(..200));
        let prefix = format!("/{name}");
        let valid =
            json!({"rules": [{"matches": [{"path": {"prefix": prefix}}], "backends": [{"name": "b"}]}]});
        match random.u8(..10) {
            0..5 => drop(bench.tell("GatewayRoute", &name, valid)),
            5 => drop(bench.tell("GatewayRoute", &name, json!({"rules": [{"backends": "no"}]}))),
            6 => drop(bench.objects.remove(&watchkeeper_core::Key::new(Some("GatewayRoute"), &name))),
            7 => {
                let server = if random.bool() { &one } else { &two };
                bench.tell("GatewayBackend", "b", json!({"url": format!("http://{}", server.address)}));
            }
            8 => drop(bench.tell(
                "GatewayRoute",
                "steady",
                json!({"rules": [{
                    "matches": [{"path": {"prefix": "/steady"}}],
                    "filters": {"responseHeaders": {"set": {"x-generation": random.u32(..).to_string()}}},
                    "backends": [{"name": "b"}],
                }]}),
            )),
            _ => drop(bench.tell(
                "GatewayRoute",
                "ticking",
                json!({"rules": [{
                    "matches": [{"path": {"prefix": if random.bool() { "/ticking" } else { "/elsewhere" }}}],
                    "backends": [{"name": "ticking"}],
                }]}),
            )),
        }
        counts.edits.fetch_add(1, Relaxed);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    stop.store(true, Relaxed);
    while let Some(ended) = within("the clients", tasks.join_next()).await {
        ended.unwrap();
    }
    let read = |count: &AtomicUsize| count.load(Relaxed);
    let Counts { requests, wrong, late, pieces, edits } = &*counts;
    println!(
        "{} requests, {} pieces of streams, {} edits: {} wrong, {} late",
        read(requests),
        read(pieces),
        read(edits),
        read(wrong),
        read(late)
    );
    assert!(read(requests) > 100 && read(edits) > 100 && read(pieces) > 10);
    assert_eq!((read(wrong), read(late)), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_notices_edits_that_are_not_for_them() {
    torture(soak_time()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "ten minutes; part of make soak"]
async fn nobody_notices_edits_that_are_not_for_them_for_ten_minutes() {
    torture(Duration::from_secs(600)).await;
}

/// How long it takes from a change in the source until a request on a connection that is open is served by it, in the middle and for the
/// slowest of a hundred.
async fn propagation(routes: usize) -> (Duration, Duration) {
    let bench = Bench::start().await;
    let spec = |number: usize| {
        let prefix = format!("/team-{}/service-{number}", number % 50);
        json!({"rules": [{"matches": [{"path": {"prefix": prefix}}], "filters": {"respond": {"body": "served"}}}]})
    };
    let mut last = 0;
    for number in 0..routes {
        last = bench.tell("GatewayRoute", &format!("route-{number}"), spec(number));
    }
    bench.reported("GatewayRoute", &format!("route-{}", routes - 1), last).await;
    let mut client = connect(bench.address).await;
    let mut times = Vec::new();
    for number in routes..routes + 200 {
        let path = format!("/team-{}/service-{number}", number % 50);
        let begin = Instant::now();
        bench.tell("GatewayRoute", &format!("route-{number}"), spec(number));
        loop {
            client.ready().await.unwrap();
            let response = client.send_request(request(Method::GET, &path, Body::empty())).await.unwrap();
            let status = response.status();
            response.into_body().collect().await.unwrap();
            if status == 200 {
                break;
            }
            assert_eq!(status, 404, "nothing but not yet, and then served");
        }
        times.push(begin.elapsed());
    }
    times.sort();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures; for a release build on a quiet machine"]
async fn a_change_is_served_as_soon_with_ten_thousand_routes_as_with_a_hundred() {
    let mut medians = Vec::new();
    for routes in [100, 3_000, 10_000] {
        let (median, slowest) = within("a size", propagation(routes)).await;
        println!("{routes} routes: p50 {median:?}, p99 {slowest:?}");
        medians.push(median);
    }
    assert!(medians[2] < medians[0] * 3, "{medians:?}");
}
