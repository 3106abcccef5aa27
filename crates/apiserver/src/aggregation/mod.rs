//! Handing requests on to other servers: those of APIServices that name a Service.
//!
//! What is handed on is what was authorized: method and path are made anew from the [`Action`](crate::request::action) that was judged, the
//! query from what was read of it. The other server is told who asks by headers, which it believes because of the certificate that
//! this server shows; headers of the client that look like these are dropped. Answers are handed on as they come, and
//! are bounded.

mod forward;
mod headers;
mod identity;
mod swagger;
mod target;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Limited};
use parking_lot::Mutex;
use serde_json::Value;
use watchkeeper_connection::{Config, Connection};

use crate::authentication::Identity;
use crate::remote::{Backend, Remote};
use crate::webhook_client::WebhookClient;

pub(crate) use identity::{ALLOWED_NAME, FrontProxy};
pub(crate) use target::Target;

/// How long another server may take to be asked after its resources.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// How many bytes the list of its resources may have, and of its documents.
const MOST_LISTED: usize = 4 << 20;

/// How many servers connections are kept to.
const MOST_BACKENDS: usize = 100;

/// Hands requests on.
pub(crate) struct Aggregator {
    services: Arc<WebhookClient>,
    front_proxy: FrontProxy,
    connections: Mutex<HashMap<(Backend, String), Connection>>,
}

/// Why a request could not be handed on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// Nobody is there to answer it.
    Unavailable(String),
    /// It was answered with what must not be handed on.
    Redirected,
}

impl Aggregator {
    pub(crate) fn new(services: Arc<WebhookClient>, front_proxy: FrontProxy) -> Self {
        Self { services, front_proxy, connections: Mutex::default() }
    }

    /// The authority by which other servers believe this one, in PEM.
    pub(crate) fn authority(&self) -> &str {
        self.front_proxy.authority()
    }

    /// Whether a Service is at an address that was given.
    pub(crate) fn is_given(&self, backend: &Backend) -> bool {
        self.services.is_given(&backend.namespace, &backend.name)
    }

    async fn connection(&self, backend: &Backend) -> Result<Connection, String> {
        let (host, port) = self.services.endpoint(&backend.namespace, &backend.name, backend.port).await?;
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let base = format!("https://{host}:{port}");
        let key = (backend.clone(), base);
        if let Some(connection) = self.connections.lock().get(&key) {
            return Ok(connection.clone());
        }
        let (certificate, private_key) = self.front_proxy.shown();
        let mut config = Config::new(&key.1).map_err(|error| error.to_string())?;
        config = config.showing(certificate, private_key);
        config = config.server_name(&format!("{}.{}.svc", backend.name, backend.namespace));
        if backend.is_unverified {
            config = config.unverified();
        } else if !backend.authorities.is_empty() {
            config = config.trusting(backend.authorities.clone());
        }
        let connection = Connection::new(config).map_err(|error| error.to_string())?;
        let mut connections = self.connections.lock();
        if connections.len() >= MOST_BACKENDS {
            connections.clear();
        }
        connections.insert(key, connection.clone());
        Ok(connection)
    }

    /// The resources that another server says it serves. The error says what went wrong, as kube-apiserver words it.
    pub(crate) async fn resources(&self, remote: &Remote) -> Result<Vec<Value>, String> {
        let path = format!("/apis/{}", remote.api_version());
        let mut list = self.ask(remote, &path).await?;
        match taken(&mut list, "resources") {
            Value::Array(resources) => Ok(resources),
            _ => Ok(Vec::new()),
        }
    }

    /// Where the documents of another server are, by the paths that they are about.
    pub(crate) async fn documents(&self, remote: &Remote) -> Result<Value, String> {
        Ok(taken(&mut self.ask(remote, "/openapi/v3").await?, "paths"))
    }

    /// What another server says about its group and version in its document of the second version of OpenAPI.
    pub(crate) async fn second_document(&self, remote: &Remote) -> Result<Value, String> {
        let document = self.ask(remote, "/openapi/v2").await?;
        Ok(swagger::only(document, &remote.api_version()))
    }

    async fn ask(&self, remote: &Remote, path: &str) -> Result<Value, String> {
        let backend = &remote.backend;
        let url = format!("https://{}.{}.svc:{}{path}", backend.name, backend.namespace, backend.port);
        let failed = |why: &str| format!("failing or missing response from {url}: {why}");
        let asked = async {
            let connection = self.connection(backend).await?;
            let aggregator = Identity::new("system:kube-aggregator", ["system:masters"]);
            let mut request = Request::new(Bytes::new());
            *request.method_mut() = Method::GET;
            *request.uri_mut() = path.parse().map_err(|_| format!("{path:?} is no path"))?;
            *request.headers_mut() = headers::of_request(&HeaderMap::new(), &aggregator);
            request
                .headers_mut()
                .insert(http::header::ACCEPT, http::HeaderValue::from_static("application/json"));
            let answer = connection.send(request).await.map_err(|error| error.to_string())?;
            let code = answer.status();
            if !code.is_success() {
                return Err(format!("bad status from {url}: {}", code.as_u16()));
            }
            let body = Limited::new(answer.into_body(), MOST_LISTED).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            let read = watchkeeper_schema::json::decode(&body).map_err(|error| error.to_string())?;
            Ok(read.value)
        };
        match tokio::time::timeout(CHECK_TIMEOUT, asked).await {
            Ok(answered) => answered.map_err(|why| failed(&why)),
            Err(_) => Err(failed("context deadline exceeded")),
        }
    }
}

/// A field of what another server answered, whatever that is; null if there is none.
fn taken(answer: &mut Value, field: &str) -> Value {
    answer.get_mut(field).map(Value::take).unwrap_or_default()
}
