//! A server in this process, called without a socket.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::{Value, json};
use watchkeeper_apiserver::authentication::{Identity, Service};
use watchkeeper_apiserver::front::{Body, Response};
use watchkeeper_apiserver::{ApiServer, Options};
use watchkeeper_storage::{Memory, Storage};
use watchkeeper_testkit::{eventually, fixtures};

/// How long anything may take.
const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) struct Api {
    pub(crate) server: ApiServer,
    pub(crate) storage: Arc<dyn Storage>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The body, if it went as it should.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!((200..300).contains(&self.code), "{}: {}", self.code, self.text);
        self.json()
    }

    /// The body, if it failed with this code.
    #[track_caller]
    pub(crate) fn failed(&self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.text);
        self.json()
    }

    pub(crate) fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect()
    }
}

impl Api {
    pub(crate) async fn start() -> Self {
        Self::over(Arc::new(Memory::new(watchkeeper_storage::Options::default()))).await
    }

    /// A server with options that differ from the default.
    pub(crate) async fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options::default();
        change(&mut options);
        Self::with(Arc::new(Memory::new(watchkeeper_storage::Options::default())), options).await
    }

    pub(crate) async fn over(storage: Arc<dyn Storage>) -> Self {
        Self::with(storage, Options::default()).await
    }

    pub(crate) async fn with(storage: Arc<dyn Storage>, options: Options) -> Self {
        let server = ApiServer::start(Arc::clone(&storage), options).await.unwrap();
        Self { server, storage }
    }

    /// Sends a request in the name of somebody.
    pub(crate) async fn send_as(&self, who: &Identity, method: &str, path: &str, body: Value) -> Answer {
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json");
        let body = if body.is_null() { Body::empty() } else { Body::whole(body.to_string()) };
        read(self.server.call(request.body(body).unwrap(), who.clone()).await).await
    }

    pub(crate) async fn call(&self, request: http::Request<Body>) -> Response {
        self.server.call(request, Identity::admin()).await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, content_type: &str, body: &str) -> Answer {
        let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
        self.answer(request.body(Body::whole(body.to_owned())).unwrap()).await
    }

    pub(crate) async fn answer(&self, request: http::Request<Body>) -> Answer {
        read(self.call(request).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "application/json", "").await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        let request = http::Request::builder().uri(path).header("accept", accept);
        self.answer(request.body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, "application/json", &body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, "application/json", &body.to_string()).await
    }

    pub(crate) async fn merge(&self, path: &str, body: Value) -> Answer {
        self.send("PATCH", path, "application/merge-patch+json", &body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, "application/json", "").await
    }

    /// Begins to watch.
    pub(crate) async fn watch(&self, path: &str) -> Watching {
        let response = self.call(http::Request::builder().uri(path).body(Body::empty()).unwrap()).await;
        Watching::of(response)
    }

    /// Waits for an answer to satisfy something.
    pub(crate) async fn eventually(&self, path: &str, is_so: impl Fn(&Answer) -> bool + Sync) -> Answer {
        let is_so = &is_so;
        eventually(|| async move {
            let answer = self.get(path).await;
            if is_so(&answer) { Ok(answer) } else { Err(format!("still {answer:?}")) }
        })
        .await
    }

    /// Makes a definition with this schema for the spec.
    pub(crate) async fn define(&self, spec: Value) {
        self.post(DEFINITIONS, definition(spec)).await.ok();
    }
}

pub(crate) async fn read(response: Response) -> Answer {
    let (parts, body) = response.into_parts();
    let bytes = tokio::time::timeout(TIMEOUT, body.collect()).await.expect("in time").unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    Answer { code: parts.status.as_u16(), headers: parts.headers, text }
}

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// The definition of widgets, whose spec has this schema.
pub(crate) fn definition(spec: Value) -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": spec,
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let mut definition = fixtures::definition("example.com", "widgets", "Widget", schema);
    let names = &mut definition["spec"]["names"];
    names["shortNames"] = json!(["wd"]);
    names["categories"] = json!(["all"]);
    let version = &mut definition["spec"]["versions"][0];
    version["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    version["additionalPrinterColumns"] =
        json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]);
    definition
}

/// The schema of the spec of most widgets.
pub(crate) fn spec() -> Value {
    json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "color": {"type": "string", "default": "red"},
        "replicas": {"type": "integer"},
    }})
}

pub(crate) fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// An open watch.
pub(crate) struct Watching {
    body: Body,
    rest: Vec<u8>,
}

impl Watching {
    pub(crate) fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), rest: Vec::new() }
    }

    /// The next event, however long it takes.
    pub(crate) async fn next_patiently(&mut self) -> Option<Value> {
        while !self.rest.contains(&b'\n') {
            let frame = self.body.frame().await?;
            self.rest.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        self.next().await
    }

    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = tokio::time::timeout(TIMEOUT, self.body.frame()).await.expect("in time")?;
            self.rest.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
    }

    /// The type and the name of the next event.
    pub(crate) async fn told(&mut self) -> (String, String) {
        let event = self.next().await.expect("an event");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }
}
