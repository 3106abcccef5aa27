//! The admin endpoint: what the gateway serves, and how it is. For loopback addresses.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, HeaderName, Method, StatusCode, Uri};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use watchkeeper_front::{Body, Front, Listener, Request, Response};

use crate::control::{Handle, Question, SourceView, explain};
use crate::dump::{backend, dump};
use crate::metrics::page;
use crate::query::parameter;
use crate::spans::Tracer;

/// The admin endpoint.
///
/// | path | |
/// |---|---|
/// | `/readyz` | whether requests are served, and what is not as it should be |
/// | `/livez` | always `ok` |
/// | `/table` | the table that requests are served by, as JSON |
/// | `/objects` | what became of every object, as JSON |
/// | `/explain?method=GET&url=https://host/path&header=name:value` | what would become of a request, and why; `&format=json` |
/// | `/backends` | backends and how their servers are, as JSON |
/// | `/connections` | listeners and their open connections, and requests under way by route, as JSON |
/// | `/metrics` | for Prometheus |
///
/// Whoever can reach it can read all of this, and change nothing. It holds no secrets.
pub struct Admin {
    front: Front,
    address: SocketAddr,
}

impl Admin {
    /// Listens on an address.
    pub fn start(address: SocketAddr, gateway: &Handle) -> Result<Self, watchkeeper_front::Error> {
        Self::serve(Listener::bind(address)?, gateway)
    }

    /// Listens on a socket.
    pub fn serve(listener: Listener, gateway: &Handle) -> Result<Self, watchkeeper_front::Error> {
        let address = listener.address();
        let handle = gateway.clone();
        let answer = move |request: Request| {
            let response = answer(&handle, &request);
            async move { response }
        };
        Ok(Self { front: Front::builder(answer).task("admin").http(listener).start()?, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops.
    pub async fn stop(self) {
        self.front.shutdown(Duration::from_secs(1)).await;
    }
}

fn answer(handle: &Handle, request: &Request) -> Response {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n".into());
    }
    match request.uri().path() {
        "/livez" => text(StatusCode::OK, "ok\n".into()),
        "/readyz" => readyz(handle),
        "/table" => {
            let table = handle.table();
            let mut value = dump(&table);
            value["generation"] = table.generation.into();
            json_page(&value)
        }
        "/objects" => {
            let reports: Vec<Value> = handle.reports().iter().map(|report| report.to_json()).collect();
            json_page(&json!({"objects": reports, "rejected": handle.rejected()}))
        }
        "/explain" => explained(handle, request.uri()),
        "/backends" => json_page(&backends(handle)),
        "/connections" => json_page(&connections(handle)),
        "/metrics" => metrics(handle),
        _ => text(
            StatusCode::NOT_FOUND,
            "/readyz /livez /table /objects /explain /backends /connections /metrics\n".into(),
        ),
    }
}

fn text(code: StatusCode, text: String) -> Response {
    typed(code, text, "text/plain; charset=utf-8")
}

fn json_page(value: &Value) -> Response {
    // A value is always JSON.
    let text = serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
    typed(StatusCode::OK, text, "application/json")
}

fn typed(code: StatusCode, text: String, kind: &'static str) -> Response {
    let mut response = Response::new(Body::whole(text));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn readyz(handle: &Handle) -> Response {
    let (ready, notes) = handle.readiness();
    let mut page = if ready { "ok\n".to_owned() } else { "not ready\n".to_owned() };
    for note in notes {
        page.push_str(&format!("{note}\n"));
    }
    text(if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, page)
}

fn explained(handle: &Handle, uri: &Uri) -> Response {
    let query = uri.query().unwrap_or_default();
    let bad = |what: &str| text(StatusCode::BAD_REQUEST, format!("{what}\n"));
    let Some(url) = parameter(query, "url") else { return bad("the parameter url is missing") };
    let Some(url) = url.parse::<Uri>().ok().filter(|url| url.host().is_some()) else {
        return bad("the parameter url is not a URL such as https://example.com/path");
    };
    let method = parameter(query, "method").unwrap_or_else(|| "GET".into());
    let Ok(method) = Method::from_bytes(method.as_bytes()) else {
        return bad("the parameter method is not a method");
    };
    let mut headers = HeaderMap::new();
    for pair in query.split('&').filter(|pair| pair.starts_with("header=")) {
        let read = parameter(pair, "header");
        let read = read.as_deref().and_then(|text| text.split_once(':'));
        let read = read.and_then(|(name, value)| {
            Some((name.trim().parse::<HeaderName>().ok()?, HeaderValue::from_str(value.trim()).ok()?))
        });
        let Some((name, value)) = read else {
            return bad("a parameter header is not of the form name:value");
        };
        headers.append(name, value);
    }
    let explained = explain(&handle.table(), &Question { method, url, headers });
    match parameter(query, "format").as_deref() {
        Some("json") => json_page(&explained.to_json()),
        _ => text(StatusCode::OK, explained.to_string()),
    }
}

fn backends(handle: &Handle) -> Value {
    let table = handle.table();
    let mut all: Vec<_> = table.backends().collect();
    all.sort_by(|one, other| one.key.cmp(&other.key));
    let shown = all.iter().map(|each| {
        let mut value = backend(each);
        let endpoints = each.endpoints.iter().map(|endpoint| {
            let state = &endpoint.state;
            json!({
                "address": &*state.address,
                "weight": endpoint.weight,
                "healthy": state.is_healthy(),
                "ejected": state.is_ejected(),
                "active": state.active.load(Relaxed),
                "connections": state.connections.load(Relaxed),
                "idle": state.idle(),
                "requests": state.requests.load(Relaxed),
                "failures": state.failures.load(Relaxed),
            })
        });
        value["endpoints"] = endpoints.collect();
        value["active"] = each.state.active.load(Relaxed).into();
        value["overflowed"] = each.state.overflowed.load(Relaxed).into();
        value["retried"] = each.state.retried.load(Relaxed).into();
        value
    });
    json!({"backends": shown.collect::<Vec<_>>()})
}

fn connections(handle: &Handle) -> Value {
    let ports = handle.ports();
    let open = handle.connections();
    let ports = ports.iter().map(|(address, port)| {
        let count = open.get(address);
        match port {
            Ok(bound) => {
                json!({"address": address.to_string(), "bound": bound.to_string(), "connections": count})
            }
            Err(reason) => json!({"address": address.to_string(), "error": reason}),
        }
    });
    let table = handle.table();
    let active = table.routes().filter(|route| route.head.stats.active.load(Relaxed) > 0);
    let active = active.map(
        |route| json!({"route": route.head.key.to_string(), "active": route.head.stats.active.load(Relaxed)}),
    );
    json!({"listeners": ports.collect::<Vec<_>>(), "active": active.collect::<Vec<_>>()})
}

fn metrics(handle: &Handle) -> Response {
    typed(StatusCode::OK, handle.metrics(), "application/openmetrics-text; version=1.0.0; charset=utf-8")
}

impl Handle {
    /// All metrics, as `/metrics` of the admin endpoint shows them.
    pub fn metrics(&self) -> String {
        metrics_text(self)
    }
}

fn metrics_text(handle: &Handle) -> String {
    let mut registry = Registry::default();
    let view = handle.view.lock();
    for (address, metrics) in &view.front {
        let labels = [("listener".into(), address.to_string().into())];
        metrics.register(
            registry.sub_registry_with_prefix("gateway").sub_registry_with_labels(labels.into_iter()),
        );
    }
    let unreadable = view.front.iter().map(|(_, metrics)| metrics.malformed_so_far()).sum();
    let is_up = |source: &SourceView| (source.name.clone(), source.synced && source.error.is_none());
    let mut sources: Vec<(String, bool)> = view.sources.iter().map(is_up).collect();
    drop(view);
    sources.sort();
    sources.dedup_by(|one, other| one.0 == other.0);
    let mut front = String::new();
    // Writing to a text does not fail.
    let _ = encode(&mut front, &registry);
    let mut calls = String::new();
    handle.shared.ai.write_metrics(&mut calls);
    let counters = &handle.shared.counters;
    counters.unreadable.store(unreadable, Relaxed);
    counters.lost_lines.store(handle.shared.log.lost(), Relaxed);
    counters.lost_spans.store(handle.shared.tracer.as_ref().map_or(0, Tracer::lost), Relaxed);
    page(&handle.table(), counters, &sources, &(calls + &front))
}
