//! Groups that other servers serve: a small metrics.k8s.io behind this server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use watchkeeper_apiserver::Options;
use watchkeeper_apiserver::authentication::Identity;
use watchkeeper_apiserver::front::{
    Authority, Body, ClientAuth, Front, Key, Listener, Peer, Purpose, Request, Response, ServerCertificate,
    Tls, pem,
};
use watchkeeper_storage::Memory;
use watchkeeper_testkit::eventually;

use crate::harness::{Api, read};

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const GROUP: &str = "/apis/metrics.k8s.io/v1beta1";
const NAME: &str = "v1beta1.metrics.k8s.io";

/// A request as the other server saw it: method, path with query, headers.
type Seen = (String, String, BTreeMap<String, Vec<String>>);

/// The other server. It believes nobody without the certificate that this server publishes.
struct Metrics {
    front: Option<Front>,
    bundle: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Metrics {
    async fn start(api: &Api, listener: Listener) -> Self {
        let published =
            api.get("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication").await;
        let published = published.ok();
        assert_eq!(published["data"]["requestheader-allowed-names"], r#"["front-proxy-client"]"#);
        let clients = published["data"]["requestheader-client-ca-file"].as_str().unwrap().to_owned();
        let clients = CertificateDer::from_pem_slice(clients.as_bytes()).unwrap();
        let authority = Authority::with_key("metrics", Key::generate().unwrap(), SystemTime::now()).unwrap();
        let key = Key::generate().unwrap();
        let names = ["metrics-server.kube-system.svc".to_owned()];
        let certificate =
            authority.issue(&key, ("metrics", &[]), &Purpose::Server(&names), SystemTime::now()).unwrap();
        let certificate = ServerCertificate::new(vec![certificate], key.pkcs8().clone_key().into()).unwrap();
        let tls = Tls::new(certificate, &ClientAuth::Required(vec![clients])).unwrap();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let log = Arc::clone(&seen);
        let service = move |request: Request| {
            let log = Arc::clone(&log);
            async move {
                assert_eq!(Peer::of(&request).unwrap().certificates().len(), 1);
                let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
                for (name, value) in request.headers() {
                    headers.entry(name.to_string()).or_default().push(value.to_str().unwrap().to_owned());
                }
                let (method, uri) = (request.method().to_string(), request.uri().to_string());
                log.lock().push((method, uri, headers));
                answer(request).await
            }
        };
        let front = Front::builder(service).https(listener, tls).start().unwrap();
        let bundle = watchkeeper_go::base64::encode(pem::certificate(authority.certificate()));
        Self { front: Some(front), bundle, seen }
    }

    fn registered(&self) -> Value {
        json!({
            "metadata": {"name": NAME},
            "spec": {
                "group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
                "service": {"namespace": "kube-system", "name": "metrics-server"}, "caBundle": self.bundle,
            },
        })
    }

    /// The requests that were handed on, without those by which this server finds out what there is.
    fn handed_on(&self) -> Vec<Seen> {
        let of_clients = |seen: &&Seen| seen.2["x-remote-user"] != ["system:kube-aggregator"];
        self.seen.lock().iter().filter(of_clients).cloned().collect()
    }
}

async fn answer(request: Request) -> Response {
    let nodes = json!({"name": "nodes", "singularName": "", "namespaced": false, "kind": "NodeMetrics", "verbs": ["get", "list"]});
    let pods = json!({"name": "pods", "singularName": "", "namespaced": true, "kind": "PodMetrics", "verbs": ["get", "list"]});
    let status = json!({"name": "pods/status", "singularName": "", "namespaced": true, "kind": "PodMetrics", "verbs": ["get"]});
    let text = |value: Value| Body::whole(value.to_string());
    let path = request.uri().path().to_owned();
    let mut code = 200;
    let body = match path.as_str() {
        GROUP => text(
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1", "resources": [nodes, pods, status]}),
        ),
        "/openapi/v3" => text(
            json!({"paths": {"apis/metrics.k8s.io/v1beta1": {"serverRelativeURL": "/openapi/v3/apis/metrics.k8s.io/v1beta1?hash=77"}}}),
        ),
        "/openapi/v2" => text(json!({
            "swagger": "2.0",
            "paths": {
                "/apis/metrics.k8s.io/v1beta1/nodes": {"get": {"operationId": "listNodeMetrics", "responses": {"200": {
                    "description": "OK", "schema": {"$ref": "#/definitions/io.k8s.metrics.NodeMetrics"},
                }}}},
                "/api/v1/secrets": {"get": {"operationId": "stolen"}},
            },
            "definitions": {
                "io.k8s.metrics.NodeMetrics": {"type": "object", "properties": {
                    "metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
                }},
                "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"description": "another one"},
                "io.k8s.api.core.v1.Secret": {"description": "another one"},
            },
        })),
        "/openapi/v3/apis/metrics.k8s.io/v1beta1" => text(json!({"openapi": "3.0.0", "paths": {}})),
        "/apis/metrics.k8s.io/v1beta1/nodes/elsewhere" => {
            code = 302;
            Body::empty()
        }
        "/apis/metrics.k8s.io/v1beta1/nodes/endless" => {
            Body::stream(futures_util::stream::unfold((), |()| async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Some((bytes::Bytes::from_static(b" "), ()))
            }))
        }
        "/apis/metrics.k8s.io/v1beta1/nodes/hangs" => std::future::pending().await,
        _ => {
            let sent = request.into_body().read(1 << 20).await.unwrap();
            text(json!({"kind": "Echo", "path": path, "sent": String::from_utf8_lossy(&sent)}))
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    response.headers_mut().insert("location", "https://example.com".parse().unwrap());
    response
}

/// A server, the other server, and its registration, which is available.
async fn start() -> (Api, Metrics) {
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let mut options = Options::default();
    options.request_timeout = Duration::from_secs(2);
    options.service_addresses.insert("kube-system/metrics-server".into(), listener.address());
    let api = Api::with(Arc::new(Memory::new(watchkeeper_storage::Options::default())), options).await;
    let metrics = Metrics::start(&api, listener).await;
    api.post(SERVICES, metrics.registered()).await.ok();
    let path = format!("{SERVICES}/{NAME}");
    let said =
        api.eventually(&path, |answer| answer.json()["status"]["conditions"][0]["status"] == "True").await;
    assert_eq!(said.json()["status"]["conditions"][0]["reason"], "Passed");
    api.eventually(GROUP, |answer| answer.code == 200).await;
    (api, metrics)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_of_another_server_is_found_and_answered_there() {
    let (api, metrics) = start().await;
    let list = api.get(GROUP).await.ok();
    assert_eq!(list["resources"][0]["name"], "nodes");
    let groups = api.get("/apis").await.ok();
    let names: Vec<&str> =
        groups["groups"].as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"metrics.k8s.io") && names.contains(&"apps"), "{names:?}");
    let group = api.get("/apis/metrics.k8s.io").await.ok();
    assert_eq!(group["preferredVersion"]["groupVersion"], "metrics.k8s.io/v1beta1");
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    // Until the other server has listed its resources, its version is stale.
    let version = eventually(|| async {
        let all = api.get_as("/apis", accept).await.ok();
        let mut groups = all["items"].as_array().unwrap().iter();
        let group = groups.find(|group| group["metadata"]["name"] == "metrics.k8s.io").unwrap();
        let version = group["versions"][0].clone();
        assert_eq!(version["freshness"] == "Current", version["resources"][1].is_object(), "{version}");
        if version["freshness"] == "Current" { Ok(version) } else { Err(format!("still {version}")) }
    })
    .await;
    assert_eq!(version["resources"][1]["scope"], "Namespaced");
    assert_eq!(version["resources"][1]["subresources"][0]["subresource"], "status");
    let index = api.eventually("/openapi/v3", |answer| answer.text.contains("metrics.k8s.io")).await.ok();
    let address =
        index["paths"]["apis/metrics.k8s.io/v1beta1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    assert_eq!(api.get(&address).await.ok()["openapi"], "3.0.0");
    let second = api.eventually("/openapi/v2", |answer| answer.text.contains("listNodeMetrics")).await;
    let document = second.ok();
    assert!(document["definitions"]["io.k8s.metrics.NodeMetrics"].is_object());
    assert!(document["paths"]["/api/v1/secrets"].is_null() || !second.text.contains("stolen"));
    assert!(!second.text.contains("another one"), "what is this server's own stays as it is");
    let protobuf = http::Request::builder()
        .uri("/openapi/v2")
        .header("accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf");
    let protobuf = protobuf.body(Body::empty()).unwrap();
    let bytes =
        http_body_util::BodyExt::collect(api.call(protobuf).await.into_body()).await.unwrap().to_bytes();
    let says = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(says("listNodeMetrics") && says("io.k8s.metrics.NodeMetrics") && !says("stolen"));

    let answer = api.get(&format!("{GROUP}/namespaces/a%2Fb/pods?labelSelector=x%3Dy")).await;
    // What was judged: escapes are read before the path is split, as kube-apiserver does.
    assert_eq!(answer.ok()["path"], format!("{GROUP}/namespaces/a/b/pods"));
    assert_eq!(answer.headers["content-type"], "application/json");
    let posted = api.post(&format!("{GROUP}/namespaces/n/pods"), json!({"a": 1})).await.ok();
    assert_eq!(posted["sent"], r#"{"a":1}"#);
    let seen = metrics.handed_on();
    let asked: Vec<(&str, &str)> = seen.iter().map(|seen| (seen.0.as_str(), seen.1.as_str())).collect();
    assert!(
        asked.contains(&("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/a/b/pods?labelSelector=x%3Dy")),
        "{asked:?}"
    );
    assert!(asked.contains(&("POST", "/apis/metrics.k8s.io/v1beta1/namespaces/n/pods")), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_is_said_by_this_server_and_nobody_else() {
    let (api, metrics) = start().await;
    let jane = Identity::new("jane", ["writers"]);
    let before = metrics.handed_on().len();
    api.send_as(&jane, "GET", &format!("{GROUP}/nodes"), Value::Null).await.failed(403);
    assert_eq!(metrics.handed_on().len(), before, "what is not allowed is not handed on");
    let rules = json!([{"apiGroups": ["metrics.k8s.io"], "resources": ["nodes"], "verbs": ["list"]}]);
    api.post(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        json!({"metadata": {"name": "m"}, "rules": rules}),
    )
    .await
    .ok();
    let binding = json!({
        "metadata": {"name": "m"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "m"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    });
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await.ok();
    let server = &api.server;
    let request = |who: &Identity, extra: &[(&str, &str)]| {
        let mut request = http::Request::builder().uri(format!("{GROUP}/nodes"));
        for (name, value) in extra {
            request = request.header(*name, *value);
        }
        let (request, who) = (request.body(Body::empty()).unwrap(), who.clone());
        async move {
            use watchkeeper_apiserver::authentication::Service as _;
            read(server.call(request, who).await).await
        }
    };
    let forged = [
        ("x-remote-user", "root"),
        ("X-Remote-Group", "system:masters"),
        ("x-remote-extra-a", "b"),
        ("connection", "x-remote-user, close"),
        ("x-mine", "kept"),
    ];
    request(&jane, &forged).await.ok();
    let (_, _, headers) = metrics.handed_on().pop().unwrap();
    assert_eq!(headers["x-remote-user"], ["jane"]);
    assert_eq!(headers["x-remote-group"], ["writers", "system:authenticated"]);
    assert_eq!(headers["x-mine"], ["kept"]);
    assert!(!headers.contains_key("x-remote-extra-a") && !headers.contains_key("connection"), "{headers:?}");
    let as_jane = [("impersonate-user", "jane")];
    request(&Identity::admin(), &as_jane).await.ok();
    let (_, _, headers) = metrics.handed_on().pop().unwrap();
    assert_eq!(headers["x-remote-user"], ["jane"]);
    assert!(!headers.contains_key("impersonate-user"), "{headers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_be_read_as_something_else_is_not_handed_on() {
    let (api, metrics) = start().await;
    let before = metrics.handed_on().len();
    for (method, path) in [
        ("PUT", "namespaces/n/pods/p//status"),
        ("DELETE", "namespaces/n/pods//status"),
        ("GET", "namespaces//pods"),
        ("GET", "namespaces/n/pods/%2e%2e"),
    ] {
        let path = format!("{GROUP}/{path}");
        api.send_as(&Identity::admin(), method, &path, Value::Null).await.failed(404);
    }
    assert_eq!(metrics.handed_on().len(), before);
    let watched = format!("{GROUP}/watch/namespaces/n/pods/p/status");
    assert_eq!(api.get(&watched).await.ok()["path"], watched);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_misbehaves_is_bounded_and_one_that_is_gone_hurts_nobody_else() {
    let (api, mut metrics) = start().await;
    assert_eq!(api.get(&format!("{GROUP}/nodes/elsewhere")).await.code, 502);
    assert_eq!(api.get(&format!("{GROUP}/nodes/hangs")).await.code, 503);
    let endless = http::Request::builder().uri(format!("{GROUP}/nodes/endless")).body(Body::empty()).unwrap();
    let endless = http_body_util::BodyExt::collect(api.call(endless).await.into_body());
    assert!(tokio::time::timeout(Duration::from_secs(20), endless).await.unwrap().is_err(), "it is cut off");

    metrics.front.take().unwrap().shutdown(Duration::ZERO).await;
    let gone = api.get(&format!("{GROUP}/nodes")).await;
    assert_eq!(gone.code, 503, "{}", gone.text);
    api.merge(&format!("{SERVICES}/{NAME}"), json!({"metadata": {"labels": {"looked": "at"}}})).await.ok();
    let path = format!("{SERVICES}/{NAME}");
    let said =
        api.eventually(&path, |answer| answer.json()["status"]["conditions"][0]["status"] == "False").await;
    assert_eq!(said.json()["status"]["conditions"][0]["reason"], "FailedDiscoveryCheck");
    let unavailable =
        api.eventually(&format!("{GROUP}/nodes"), |answer| answer.text == "service unavailable\n").await;
    assert_eq!(unavailable.code, 503);
    api.get("/apis").await.ok();
    api.get("/apis/apps/v1/deployments").await.ok();
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    assert!(api.get_as("/apis", accept).await.text.contains(r#""freshness":"Stale""#));
    api.delete(&path).await.ok();
    api.eventually(&format!("{GROUP}/nodes"), |answer| answer.code == 404).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_this_server_serves_is_never_handed_on() {
    let (api, metrics) = start().await;
    let mut own = metrics.registered();
    own["metadata"]["name"] = "v9.apps".into();
    own["spec"]["group"] = "apps".into();
    own["spec"]["version"] = "v9".into();
    api.post(SERVICES, own).await.ok();
    api.eventually("/apis/apps", |answer| answer.text.contains("apps/v9")).await;
    let before = metrics.handed_on().len();
    assert_eq!(api.get("/apis/apps/v1/deployments").await.ok()["kind"], "DeploymentList");
    assert_eq!(metrics.handed_on().len(), before);
    assert_eq!(api.get("/apis/apps").await.ok()["preferredVersion"]["version"], "v1");
}

const PUBLISHED: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
const AUTHORITY: &str = "requestheader-client-ca-file";

/// The authorities that other servers believe.
fn authorities(published: &Value) -> Vec<String> {
    let all = published["data"][AUTHORITY].as_str().unwrap_or_default();
    all.split_inclusive("-----END CERTIFICATE-----")
        .map(|pem| pem.trim().to_owned())
        .filter(|pem| !pem.is_empty())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn how_other_servers_believe_this_one_is_published_again_when_it_is_lost() {
    let mut options = Options::default();
    options.certificate_authority =
        Some("-----BEGIN CERTIFICATE-----\nclients\n-----END CERTIFICATE-----\n".into());
    let api = Api::with(Arc::new(Memory::new(watchkeeper_storage::Options::default())), options).await;
    let before = api.get(PUBLISHED).await.ok();
    assert_eq!(authorities(&before).len(), 1);
    let is_back =
        |answer: &crate::harness::Answer| answer.code == 200 && answer.json()["data"] == before["data"];
    api.delete(PUBLISHED).await.ok();
    api.eventually(PUBLISHED, is_back).await;
    for change in [
        json!({AUTHORITY: ""}),
        json!({AUTHORITY: null, "requestheader-username-headers": r#"["X-Forged"]"#}),
        json!({"client-ca-file": null}),
    ] {
        api.merge(PUBLISHED, json!({"data": change})).await.ok();
        api.eventually(PUBLISHED, is_back).await;
    }
    // What others have added stays.
    let other = "-----BEGIN CERTIFICATE-----\nother\n-----END CERTIFICATE-----";
    api.merge(PUBLISHED, json!({"data": {AUTHORITY: other}})).await.ok();
    let both = [other.to_owned(), authorities(&before)[0].clone()];
    api.eventually(PUBLISHED, |answer| authorities(&answer.json()) == both).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_authority_others_have_pushed_out_publishes_it_again() {
    let storage: Arc<dyn watchkeeper_storage::Storage> =
        Arc::new(Memory::new(watchkeeper_storage::Options::default()));
    let api = Api::over(Arc::clone(&storage)).await;
    let own = authorities(&api.get(PUBLISHED).await.ok()).remove(0);
    // More than there is room for.
    for _ in 0..20 {
        let _other = Api::over(Arc::clone(&storage)).await;
    }
    let answer = api.eventually(PUBLISHED, |answer| authorities(&answer.json()).contains(&own)).await;
    assert!(authorities(&answer.json()).len() > 1, "those of others stay");
}
