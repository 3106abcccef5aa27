//! A gateway whose objects are put by the test, servers to stand behind it, and a client.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use watchkeeper_core::Key;
use watchkeeper_front::{Body, Front, Listener, Service};
use watchkeeper_gateway::kinds::API_VERSION;
use watchkeeper_gateway::object::{InputKind, ObjectId};
use watchkeeper_gateway::{From, Gateway, Handle, Options, Settings};
use watchkeeper_sources::channel::{Sender, channel};
use watchkeeper_supervision::Supervisor;

/// Whatever takes longer has failed.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(TIMEOUT, future).await.unwrap_or_else(|_| panic!("{what} took too long"))
}

/// How long tests run that could run for ever: CI says a minute.
pub(crate) fn soak_time() -> Duration {
    let seconds = std::env::var("WATCHKEEPER_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(10))
}

pub(crate) struct Bench {
    pub(crate) objects: Sender,
    pub(crate) gateway: Gateway,
    pub(crate) handle: Handle,
    pub(crate) address: SocketAddr,
    pub(crate) supervisor: Supervisor,
    generation: AtomicI64,
}

pub(crate) fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

pub(crate) fn id(kind: &str, name: &str) -> ObjectId {
    ObjectId { kind: InputKind::of(API_VERSION, kind).unwrap(), key: Key::new(Some("default"), name) }
}

impl Bench {
    /// A gateway with one listener, `web`, on a free port.
    pub(crate) async fn start() -> Self {
        Self::with(json!({"port": 0})).await
    }

    pub(crate) async fn with(listener: Value) -> Self {
        Self::start_with(listener, Options::default()).await
    }

    /// A gateway that exports spans.
    pub(crate) async fn tracing(otlp: watchkeeper_gateway::Otlp) -> Self {
        Self::start_with(json!({"port": 0}), Options { otlp: Some(otlp), ..Options::default() }).await
    }

    /// A gateway that has other sources besides.
    pub(crate) async fn among(others: Vec<From>) -> Self {
        Self::start_with(json!({"port": 0}), Options { from: others, ..Options::default() }).await
    }

    /// A gateway with a log.
    pub(crate) async fn logging(output: Box<dyn std::io::Write + Send>, one_in: u64) -> Self {
        let options = Options { access_log: Some((output, one_in)), ..Options::default() };
        Self::start_with(json!({"port": 0}), options).await
    }

    pub(crate) async fn start_with(listener: Value, mut options: Options) -> Self {
        let (objects, source) = channel("test");
        objects.put(&Key::new(None, "web"), &object("GatewayListener", "web", listener)).unwrap();
        let supervisor = Supervisor::default();
        options.from.insert(0, From::Source(Arc::new(source)));
        options.supervisor = supervisor.clone();
        let gateway = Gateway::start(options).unwrap();
        let mut handle = gateway.handle().clone();
        within("starting", handle.ready()).await;
        let address = *handle.ports().values().next().unwrap().as_ref().unwrap();
        Self { objects, gateway, handle, address, supervisor, generation: AtomicI64::new(0) }
    }

    /// Puts an object, and waits until it is served or refused.
    pub(crate) async fn put(&self, kind: &str, name: &str, spec: Value) {
        let generation = self.tell(kind, name, spec);
        self.reported(kind, name, generation).await;
    }

    /// Puts an object, and does not wait.
    pub(crate) fn tell(&self, kind: &str, name: &str, spec: Value) -> i64 {
        let generation = self.generation.fetch_add(1, Relaxed) + 1;
        let mut object = object(kind, name, spec);
        object["metadata"]["generation"] = generation.into();
        self.objects.put(&Key::new(Some(kind), name), &object).unwrap();
        generation
    }

    pub(crate) async fn reported(&self, kind: &str, name: &str, generation: i64) {
        let (id, mut handle) = (id(kind, name), self.handle.clone());
        let reported = async {
            while handle.report(&id).is_none_or(|report| report.generation < generation) {
                handle.changed().await;
            }
        };
        within(&format!("{kind} {name} generation {generation}"), reported).await;
    }

    pub(crate) async fn remove(&self, kind: &str, name: &str) {
        assert!(self.objects.remove(&Key::new(Some(kind), name)));
        let (id, mut handle) = (id(kind, name), self.handle.clone());
        let gone = async {
            while handle.report(&id).is_some() {
                handle.changed().await;
            }
        };
        within("removing", gone).await;
    }

    /// A route for a prefix to one backend.
    pub(crate) async fn route(&self, name: &str, prefix: &str, backend: &str) {
        let spec =
            json!({"rules": [{"matches": [{"path": {"prefix": prefix}}], "backends": [{"name": backend}]}]});
        self.put("GatewayRoute", name, spec).await;
    }

    /// A backend with these servers.
    pub(crate) async fn backend(&self, name: &str, servers: &[&Server]) {
        let endpoints: Vec<Value> =
            servers.iter().map(|server| json!({"address": server.address.to_string()})).collect();
        self.put("GatewayBackend", name, json!({"endpoints": endpoints})).await;
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path)).await
    }

    pub(crate) async fn send(&self, request: http::request::Builder) -> Answer {
        send(self.address, request.header("host", "gateway.test").body(Body::empty()).unwrap()).await
    }
}

/// A task that asks nobody for anything, and notes how late it gets its turn: what the machine is to blame for.
#[derive(Clone)]
pub(crate) struct Control {
    /// In microseconds.
    longest: Arc<AtomicU64>,
    _stop: Arc<tokio_util::sync::DropGuard>,
}

impl Control {
    pub(crate) fn start() -> Self {
        let stop = tokio_util::sync::CancellationToken::new();
        let longest = Arc::<AtomicU64>::default();
        let (stopped, noted) = (stop.clone(), Arc::clone(&longest));
        tokio::spawn(stopped.run_until_cancelled_owned(async move {
            let interval = Duration::from_millis(10);
            loop {
                let begin = Instant::now();
                tokio::time::sleep(interval).await;
                let late = begin.elapsed().saturating_sub(interval).as_micros() as u64;
                noted.fetch_max(late, Relaxed);
            }
        }));
        Self { longest, _stop: Arc::new(stop.drop_guard()) }
    }

    /// The longest stall so far.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_micros(self.longest.load(Relaxed))
    }
}

/// A cluster with the kinds of the gateway.
pub(crate) async fn cluster() -> watchkeeper_testkit::TestEnv {
    use watchkeeper_gateway::kinds::{
        AIGatewayConfig, ApiDefinition, ApiSubscription, GatewayBackend, GatewayListener, GatewayPolicy,
        GatewayRoute, LLMGatewayPolicy, McpRoute, ModelContextMapping, PromptTemplate, Tenant,
    };
    let env = watchkeeper_testkit::TestEnv::start().await;
    env.install::<GatewayListener>().await;
    env.install::<GatewayRoute>().await;
    env.install::<GatewayBackend>().await;
    env.install::<GatewayPolicy>().await;
    env.install::<AIGatewayConfig>().await;
    env.install::<ModelContextMapping>().await;
    env.install::<LLMGatewayPolicy>().await;
    env.install::<PromptTemplate>().await;
    env.install::<McpRoute>().await;
    env.install::<ApiDefinition>().await;
    env.install::<ApiSubscription>().await;
    env.install::<Tenant>().await;
    env
}

/// A response that was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{} {}", self.status, self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Sends a request over a connection of its own.
pub(crate) async fn send(address: SocketAddr, request: Request<Body>) -> Answer {
    within("a request", async {
        let response = open(address, request).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Answer { status: head.status, headers: head.headers, body }
    })
    .await
}

/// Sends a request over a connection of its own; its body is to come.
pub(crate) async fn open(address: SocketAddr, request: Request<Body>) -> Response<Incoming> {
    let mut client = connect(address).await;
    let response = client.send_request(request).await.unwrap();
    // The connection ends with the body.
    std::mem::forget(client);
    response
}

pub(crate) async fn connect(address: SocketAddr) -> http1::SendRequest<Body> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    client
}

pub(crate) async fn connect_http2(address: SocketAddr) -> http2::SendRequest<Body> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (client, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A server to stand behind a gateway.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    _front: Front,
}

impl Server {
    pub(crate) fn start(service: impl Service) -> Self {
        Self::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), service)
    }

    pub(crate) fn start_at(address: SocketAddr, service: impl Service) -> Self {
        let listener = Listener::bind(address).unwrap();
        let address = listener.address();
        Self { address, _front: Front::builder(service).http_and_h2c(listener).start().unwrap() }
    }

    /// Says what it was asked, as JSON, and its name.
    pub(crate) fn echo(name: &'static str) -> Self {
        Self::start(move |request: watchkeeper_front::Request| async move {
            let (head, body) = request.into_parts();
            let body = body.read(1 << 20).await.unwrap();
            let mut headers = serde_json::Map::new();
            for (key, value) in &head.headers {
                let value = value.to_str().unwrap();
                match headers.get_mut(key.as_str()) {
                    Some(Value::String(known)) => *known = format!("{known}, {value}"),
                    _ => drop(headers.insert(key.to_string(), value.into())),
                }
            }
            let told = json!({
                "server": name,
                "method": head.method.as_str(),
                "target": head.uri.path_and_query().map(|target| target.as_str()),
                "authority": head.uri.authority().map(|authority| authority.as_str()),
                "version": format!("{:?}", head.version),
                "headers": headers,
                "body": String::from_utf8_lossy(&body),
            });
            watchkeeper_front::Response::new(Body::whole(told.to_string()))
        })
    }
}

pub(crate) fn request(method: Method, path: &str, body: Body) -> Request<Body> {
    Request::builder().method(method).uri(path).header("host", "gateway.test").body(body).unwrap()
}

pub(crate) fn settings() -> Settings {
    Settings::default()
}
