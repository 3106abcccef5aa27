//! Changes while requests run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc;
use watchkeeper::client::{Client, Patch};
use watchkeeper_core::Key;
use watchkeeper_front::Body;
use watchkeeper_gateway::kinds::{GatewayPolicy, GatewayRoute};
use watchkeeper_gateway::{From, Gateway, Options};
use watchkeeper_sources::files::Files;

use crate::support::{
    Bench, Control, Server, cluster, connect, connect_http2, id, object, open, request, soak_time, within,
};

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
    assert_eq!(report.programmed.message, "the object is not served: another one has its place");
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
    on_the_way: Mutex<Vec<Duration>>,
    pieces: AtomicUsize,
    messages: AtomicUsize,
    edits: AtomicUsize,
}

/// How many clients the torture has.
#[derive(Clone, Copy)]
struct Size {
    http1: usize,
    http2: usize,
    streams: usize,
    websockets: usize,
}

impl Size {
    const WHOLE: Self = Self { http1: 200, http2: 20, streams: 50, websockets: 20 };
    /// A fifth of it: a build without optimisation on two processors that others use, too.
    const CI: Self = Self { http1: 40, http2: 4, streams: 10, websockets: 4 };
}

/// How often streams say something.
const TICK: Duration = Duration::from_millis(100);

/// A server whose streams say every tick how many there were before, and when they say it, in microseconds since a moment; and which echoes what
/// comes over WebSockets.
fn ticking(begin: Instant) -> Server {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    Server::start(move |request: watchkeeper_front::Request| async move {
        if request.headers().contains_key("upgrade") {
            let mut response = watchkeeper_front::Response::new(Body::empty());
            *response.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
            response.headers_mut().insert("upgrade", "websocket".parse().unwrap());
            response.headers_mut().insert("connection", "upgrade".parse().unwrap());
            response.extensions_mut().insert(watchkeeper_front::Upgrade::new(|mut stream| async move {
                let mut buffer = [0; 100];
                while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                    stream.write_all(&buffer[..count]).await.unwrap();
                    stream.flush().await.unwrap();
                }
            }));
            return response;
        }
        let pieces = futures_util::stream::unfold(0_u32, move |number| async move {
            tokio::time::sleep(TICK).await;
            Some((Bytes::from(format!("data: {number} {}\n\n", begin.elapsed().as_micros())), number + 1))
        });
        watchkeeper_front::Response::new(Body::stream(pieces))
    })
}

/// Edits of routes in three sources, each with routes of its own.
struct Editors {
    files: tempfile::TempDir,
    cluster: Client,
    random: fastrand::Rng,
}

impl Editors {
    /// One edit, of a route that nobody asks for, or of one that all ask for.
    async fn edit(&mut self, bench: &Bench, servers: [&Server; 2]) {
        let number = self.random.u32(..200);
        let prefix = format!("/route-{number}");
        let valid =
            json!({"rules": [{"matches": [{"path": {"prefix": prefix}}], "backends": [{"name": "b"}]}]});
        // What the schema of the kind allows, and the gateway does not.
        let invalid = json!({"rules": [{"matches": [{"path": {"prefix": "no-slash"}}]}]});
        let draw = self.random.u8(..10);
        let spec = if draw < 7 { valid } else { invalid };
        match self.random.u8(..4) {
            0 => {
                let name = format!("file-{number}");
                let file = self.files.path().join(format!("{name}.json"));
                match draw {
                    9 => drop(std::fs::remove_file(file)),
                    _ => std::fs::write(file, object("GatewayRoute", &name, spec).to_string()).unwrap(),
                }
            }
            1 => {
                let name = format!("channel-{number}");
                match draw {
                    9 => drop(bench.objects.remove(&Key::new(Some("GatewayRoute"), &name))),
                    _ => drop(bench.tell("GatewayRoute", &name, spec)),
                }
            }
            2 => {
                let key = Key::new(Some("default"), &format!("cluster-{number}"));
                let mut route = GatewayRoute::new(key.name(), serde_json::from_value(spec.clone()).unwrap());
                route.metadata.namespace = Some("default".into());
                match draw {
                    9 => drop(self.cluster.delete_key::<GatewayRoute>(&key).await),
                    _ => {
                        if self.cluster.patch::<GatewayRoute>(&key, Patch::Merge(json!({"spec": spec}))).await.is_err() {
                            self.cluster.create(&route).await.unwrap();
                        }
                    }
                }
            }
            _ => match draw {
                0..4 => {
                    let server = servers[self.random.usize(..2)];
                    bench.tell("GatewayBackend", "b", json!({"url": format!("http://{}", server.address)}));
                }
                4..8 => drop(bench.tell(
                    "GatewayRoute",
                    "steady",
                    json!({"rules": [{
                        "matches": [{"path": {"prefix": "/steady"}}],
                        "filters": {"responseHeaders": {"set": {"x-generation": self.random.u32(..).to_string()}}},
                        "backends": [{"name": "b"}],
                    }]}),
                )),
                // Away and back: streams that run have it as it was.
                _ => drop(bench.tell(
                    "GatewayRoute",
                    "ticking",
                    json!({"rules": [{
                        "matches": [{"path": {"prefix": if self.random.bool() { "/ticking" } else { "/elsewhere" }}}],
                        "backends": [{"name": "ticking"}],
                    }]}),
                )),
            },
        }
    }
}

/// Requests on connections that stay, and streams, while routes are added, changed, broken and removed in three sources.
async fn torture(time: Duration, size: Size) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let env = cluster().await;
    let files = tempfile::tempdir().unwrap();
    let also: Vec<From> =
        vec![From::Source(Arc::new(Files::directory(files.path()))), From::Kubernetes(env.connection())];
    let bench = Arc::new(Bench::among(also).await);
    let (one, two) = (Server::echo("one"), Server::echo("two"));
    bench.backend("b", &[&one]).await;
    bench.route("steady", "/steady", "b").await;
    let epoch = Instant::now();
    let server = ticking(epoch);
    bench.backend("ticking", &[&server]).await;
    bench.route("ticking", "/ticking", "ticking").await;
    let (counts, stop) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
    let control = Control::start();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..size.http1 {
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
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            client.ready().await.expect("the connection was closed");
            std::future::pending::<()>().await;
        });
    }
    for _ in 0..size.http2 {
        let (counts, stop, mut client) =
            (Arc::clone(&counts), Arc::clone(&stop), connect_http2(bench.address).await);
        tasks.spawn(async move {
            while !stop.load(Relaxed) {
                let asked = http::Request::get("http://gateway.test/steady").body(Body::empty()).unwrap();
                let response = client.send_request(asked).await.expect("a request was reset");
                counts.wrong.fetch_add(usize::from(response.status() != 200), Relaxed);
                response.into_body().collect().await.expect("a response was cut");
                counts.requests.fetch_add(1, Relaxed);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            client.ready().await.expect("the connection was closed");
            std::future::pending::<()>().await;
        });
    }
    // How long pieces and messages were on their way.
    let arrived = {
        let counts = Arc::clone(&counts);
        move |sent: Duration| counts.on_the_way.lock().push(epoch.elapsed().saturating_sub(sent))
    };
    for _ in 0..size.streams {
        let (counts, stop, arrived) = (Arc::clone(&counts), Arc::clone(&stop), arrived.clone());
        let mut body = open(bench.address, request(Method::GET, "/ticking", Body::empty())).await.into_body();
        tasks.spawn(async move {
            for number in 0.. {
                let piece = body.frame().await.expect("a stream ended").expect("a stream was cut");
                let piece = String::from_utf8(piece.into_data().unwrap().to_vec()).unwrap();
                let mut words = piece.trim().split(' ').skip(1);
                assert_eq!(words.next(), Some(number.to_string().as_str()), "a stream was restarted");
                let sent = Duration::from_micros(words.next().unwrap().parse().unwrap());
                arrived(sent);
                counts.pieces.fetch_add(1, Relaxed);
                if stop.load(Relaxed) {
                    std::future::pending::<()>().await;
                }
            }
        });
    }
    for _ in 0..size.websockets {
        let (counts, stop, arrived) = (Arc::clone(&counts), Arc::clone(&stop), arrived.clone());
        let mut stream = tokio::net::TcpStream::connect(bench.address).await.unwrap();
        let head = "GET /ticking HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n\r\n") {
            within("the upgrade", stream.read_buf(&mut read)).await.unwrap();
        }
        assert!(read.starts_with(b"HTTP/1.1 101 "));
        tasks.spawn(async move {
            loop {
                let sent = epoch.elapsed();
                stream.write_all(b"ping").await.expect("a WebSocket was reset");
                let mut answer = [0; 4];
                stream.read_exact(&mut answer).await.expect("a WebSocket ended");
                assert_eq!(&answer, b"ping");
                arrived(sent);
                counts.messages.fetch_add(1, Relaxed);
                if stop.load(Relaxed) {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(TICK).await;
            }
        });
    }
    let mut editors =
        Editors { files, cluster: Client::new(env.connection()), random: fastrand::Rng::with_seed(7) };
    let begin = Instant::now();
    while begin.elapsed() < time {
        editors.edit(&bench, [&one, &two]).await;
        counts.edits.fetch_add(1, Relaxed);
        tokio::time::sleep(Duration::from_millis(2)).await;
        while let Some(ended) = tasks.try_join_next() {
            ended.unwrap();
        }
    }
    stop.store(true, Relaxed);
    // Every connection that was opened is still there, and no other: who was cut off and came back would be one more.
    let opened = size.http1 + size.http2 + size.streams + size.websockets;
    let open: i64 = bench.handle.connections().values().sum();
    assert_eq!(open, i64::try_from(opened).unwrap());
    let ended = tasks.try_join_next();
    assert!(ended.is_none(), "{ended:?}");
    tasks.abort_all();
    let read = |count: &AtomicUsize| count.load(Relaxed);
    let Counts { requests, wrong, on_the_way, pieces, messages, edits } = &*counts;
    // A piece is late when the next one is due before it has arrived: after twice its schedule. On its way, five tasks get their turn one after the
    // other: that of the server, two of the gateway, two of the client. What a task that asks nobody for anything had to wait for its turn, each of them
    // may have had to wait, too: that is the machine, which others use. On a quiet one it is some milliseconds.
    let limit = TICK + 5 * control.longest();
    let late = on_the_way.lock().iter().filter(|time| **time > limit).count();
    let slowest = on_the_way.lock().iter().max().copied();
    println!(
        "{} requests, {} pieces of streams, {} messages of WebSockets, {} edits: {} wrong, {late} late; slowest {slowest:?}, longest stall {:?}",
        read(requests),
        read(pieces),
        read(messages),
        read(edits),
        read(wrong),
        control.longest(),
    );
    assert!(read(requests) > 100 && read(edits) > 100 && read(pieces) > 10 && read(messages) > 10);
    assert_eq!((read(wrong), late), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_notices_edits_that_are_not_for_them() {
    torture(soak_time(), Size::CI).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "ten minutes; part of make soak"]
async fn nobody_notices_edits_that_are_not_for_them_for_ten_minutes() {
    torture(Duration::from_secs(600), Size::WHOLE).await;
}

/// How long after a change takes away a key or a route a request that begins is still served. The change is asked to bring it back, and to take it
/// away.
async fn revocation(
    what: &str,
    address: std::net::SocketAddr,
    limit: Duration,
    mut change: impl AsyncFnMut(bool),
) {
    let control = Control::start();
    let mut client = connect(address).await;
    let mut ask = async || {
        client.ready().await.unwrap();
        let mut asked = request(Method::GET, "/", Body::empty());
        asked.headers_mut().insert("x-api-key", "secret".parse().unwrap());
        let begin = Instant::now();
        let response = client.send_request(asked).await.unwrap();
        let status = response.status();
        response.into_body().collect().await.unwrap();
        (begin, status == 200)
    };
    let mut times = Vec::new();
    for _ in 0..20 {
        change(true).await;
        within("it is served", async { while !ask().await.1 {} }).await;
        change(false).await;
        let deleted = Instant::now();
        // From the deletion to the begin of the last request that was served.
        let mut last = Duration::ZERO;
        within("it is refused", async {
            loop {
                match ask().await {
                    (begin, true) => last = begin - deleted,
                    _ => return,
                }
            }
        })
        .await;
        times.push(last);
    }
    times.sort();
    println!(
        "{what}: p50 {:?}, slowest of 20 {:?}; longest stall {:?}",
        times[10],
        times[19],
        control.longest()
    );
    assert!(times[19] < limit + 5 * control.longest(), "{what}: {times:?}");
}

/// The longest that a request that begins after a deletion may still be served.
const LIMIT: Duration = Duration::from_millis(50);

fn keys(is_there: bool) -> serde_json::Value {
    // SHA-256 of `secret`.
    let digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    let keys = if is_there { json!([{"name": "jane", "sha256": digest}]) } else { json!([]) };
    json!({"targets": [{"kind": "Route", "name": "hello"}], "apiKeys": {"keys": keys}})
}

fn hello() -> serde_json::Value {
    json!({"rules": [{"filters": {"respond": {"body": "hello"}}}]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deleted_from_a_channel_or_a_file_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let bench = Bench::among(vec![From::Source(Arc::new(Files::directory(directory.path())))]).await;
    bench.put("GatewayRoute", "hello", hello()).await;
    revocation("a key of a channel", bench.address, LIMIT, async |is_there| {
        bench.tell("GatewayPolicy", "keys", keys(is_there));
    })
    .await;
    bench.remove("GatewayPolicy", "keys").await;
    bench.remove("GatewayRoute", "hello").await;
    // A folder that is empty all of a sudden is looked at twice, a second later: the others stay.
    for number in 0..5 {
        let route =
            object("GatewayRoute", &format!("other-{number}"), json!({"hosts": ["other.test"], "rules": []}));
        std::fs::write(directory.path().join(format!("{number}.json")), route.to_string()).unwrap();
    }
    bench.put("GatewayRoute", "hello", hello()).await;
    let file = directory.path().join("keys.json");
    revocation("a key of a file", bench.address, LIMIT, async |is_there| {
        std::fs::write(&file, object("GatewayPolicy", "keys", keys(is_there)).to_string()).unwrap();
    })
    .await;
    std::fs::remove_file(&file).unwrap();
    bench.remove("GatewayRoute", "hello").await;
    let file = directory.path().join("route.json");
    revocation("a route of a file", bench.address, LIMIT, async |is_there| match is_there {
        true => std::fs::write(&file, object("GatewayRoute", "hello", hello()).to_string()).unwrap(),
        false => std::fs::remove_file(&file).unwrap(),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deleted_from_a_cluster_is_refused_at_once() {
    let env = cluster().await;
    let client = Client::new(env.connection());
    let bench = Bench::among(vec![From::Kubernetes(env.connection())]).await;
    bench.put("GatewayRoute", "hello", hello()).await;
    let mut policy = GatewayPolicy::new("keys", serde_json::from_value(keys(false)).unwrap());
    policy.metadata.namespace = Some("default".into());
    client.create(&policy).await.unwrap();
    let key = Key::new(Some("default"), "keys");
    revocation("a key of a cluster", bench.address, LIMIT, async |is_there| {
        client.patch::<GatewayPolicy>(&key, Patch::Merge(json!({"spec": keys(is_there)}))).await.unwrap();
    })
    .await;
    client.delete_key::<GatewayPolicy>(&key).await.unwrap();
    bench.remove("GatewayRoute", "hello").await;
    let key = Key::new(Some("default"), "hello");
    revocation("a route of a cluster", bench.address, LIMIT, async |is_there| match is_there {
        true => {
            let mut route = GatewayRoute::new("hello", serde_json::from_value(hello()).unwrap());
            route.metadata.namespace = Some("default".into());
            client.create(&route).await.unwrap();
        }
        false => drop(client.delete_key::<GatewayRoute>(&key).await.unwrap()),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_all_kinds_end_with_the_gateway_that_they_began_with_and_others_go_to_its_successor() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let bench = Bench::start().await;
    let epoch = Instant::now();
    let server = ticking(epoch);
    bench.backend("ticking", &[&server]).await;
    bench.route("ticking", "/", "ticking").await;
    let mut events = open(bench.address, request(Method::GET, "/", Body::empty())).await.into_body();
    let mut http2 = connect_http2(bench.address).await;
    let asked = http::Request::get("http://gateway.test/").body(Body::empty()).unwrap();
    let mut events2 = http2.send_request(asked).await.unwrap().into_body();
    let mut websocket = tokio::net::TcpStream::connect(bench.address).await.unwrap();
    let head = "GET / HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n";
    websocket.write_all(head.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        within("the upgrade", websocket.read_buf(&mut read)).await.unwrap();
    }
    let Bench { objects, gateway, handle, address, .. } = bench;
    let (successor, source) = watchkeeper_sources::channel::channel("successor");
    successor.put(&Key::new(None, "web"), &object("GatewayListener", "web", json!({"port": 0}))).unwrap();
    successor.put(&Key::new(None, "hello"), &object("GatewayRoute", "hello", hello())).unwrap();
    let options = Options {
        from: vec![From::Source(Arc::new(source))],
        sockets: handle.sockets(),
        ..Options::default()
    };
    let second = Gateway::start(options).unwrap();
    within("the successor", second.handle().clone().ready()).await;
    let handing = tokio::spawn(gateway.hand_over(Duration::from_secs(50)));
    // Whoever connects now is served by one of both, and before long by the second only.
    within("the successor serves", async {
        let mut in_a_row = 0;
        while in_a_row < 20 {
            let mut body = open(address, request(Method::GET, "/", Body::empty())).await.into_body();
            let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
            in_a_row = if first == "hello" { in_a_row + 1 } else { 0 };
        }
    })
    .await;
    for _ in 0..3 {
        for body in [&mut events, &mut events2] {
            let piece =
                within("an event", body.frame()).await.expect("a stream ended").expect("a stream was cut");
            assert!(piece.into_data().unwrap().starts_with(b"data: "));
        }
        websocket.write_all(b"ping").await.unwrap();
        let mut answer = [0; 4];
        within("an answer", websocket.read_exact(&mut answer)).await.unwrap();
        assert_eq!(&answer, b"ping");
    }
    // The HTTP/2 client was told to connect anew for its next request.
    let asked = http::Request::get("http://gateway.test/").body(Body::empty()).unwrap();
    assert!(within("GOAWAY", http2.send_request(asked)).await.is_err());
    drop((events, events2, http2));
    websocket.shutdown().await.unwrap();
    assert_eq!(within("the first to end", handing).await.unwrap(), watchkeeper_front::Drained::Clean);
    drop(objects);
    second.stop(Duration::from_secs(5)).await;
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
