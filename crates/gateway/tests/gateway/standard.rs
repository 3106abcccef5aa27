//! Gateway API.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use http::{Method, Request};
use serde_json::{Value, json};
use watchkeeper_core::Key;
use watchkeeper_front::Body;
use watchkeeper_gateway::kinds::standard::{API_VERSION, CONTROLLER};
use watchkeeper_gateway::object::{InputKind, ObjectId};
use watchkeeper_gateway::{From, Gateway, Handle, Options, Report, Settings};
use watchkeeper_sources::channel::{Sender, channel};

use crate::support::{Answer, Server, object, request, send, within};

/// A gateway with a class, and with Gateways whose first listeners are on loopback addresses of their own.
struct Standard {
    objects: Sender,
    handle: Handle,
    generation: AtomicI64,
    _gateway: Gateway,
}

impl Standard {
    async fn start() -> Self {
        let (objects, source) = channel("test");
        let place = |last: u8| ([127, 0, 0, last], 0).into();
        let addresses = [("web:http", 1), ("web:other", 2), ("second:http", 3)];
        let addresses = addresses.map(|(name, last)| (Key::new(Some("default"), name), place(last))).into();
        let options = Options {
            from: vec![From::Source(Arc::new(source))],
            settings: Settings { addresses, ..Settings::default() },
            ..Options::default()
        };
        let gateway = Gateway::start(options).unwrap();
        let handle = gateway.handle().clone();
        let standard = Self { objects, handle, generation: AtomicI64::new(0), _gateway: gateway };
        let class = standard.tell("", "GatewayClass", "watchkeeper", json!({"controllerName": CONTROLLER}));
        standard.reported("", "GatewayClass", "watchkeeper", class).await;
        standard
    }

    fn tell(&self, namespace: &str, kind: &str, name: &str, spec: Value) -> i64 {
        let generation = self.generation.fetch_add(1, Relaxed) + 1;
        let mut object = object(kind, name, spec);
        let is_core = kind == "Service";
        object["apiVersion"] = json!(if is_core { "v1" } else { API_VERSION });
        object["metadata"]["generation"] = generation.into();
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        self.objects.put(&Key::new(Some(kind), &format!("{namespace}.{name}")), &object).unwrap();
        generation
    }

    fn forget(&self, namespace: &str, kind: &str, name: &str) {
        assert!(self.objects.remove(&Key::new(Some(kind), &format!("{namespace}.{name}"))));
    }

    async fn reported(&self, namespace: &str, kind: &str, name: &str, generation: i64) -> Report {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let kind = InputKind::of(API_VERSION, kind).unwrap();
        let (id, mut handle) = (ObjectId { kind, key: Key::new(namespace, name) }, self.handle.clone());
        within(&format!("{id}"), async {
            loop {
                match handle.report(&id).filter(|report| report.generation >= generation) {
                    Some(report) => return report,
                    None => handle.changed().await,
                }
            }
        })
        .await
    }

    async fn put(&self, namespace: &str, kind: &str, name: &str, spec: Value) -> Report {
        let generation = self.tell(namespace, kind, name, spec);
        self.reported(namespace, kind, name, generation).await
    }

    /// Waits until the status of an object is as it should be.
    async fn becomes(
        &self,
        namespace: &str,
        kind: &str,
        name: &str,
        is_right: impl Fn(&Value) -> bool,
    ) -> Value {
        let kind = InputKind::of(API_VERSION, kind).unwrap();
        let (id, mut handle) = (ObjectId { kind, key: Key::new(Some(namespace), name) }, self.handle.clone());
        within(&format!("{id}"), async {
            loop {
                let status = handle.report(&id).and_then(|report| report.status);
                match status.filter(|status| is_right(status)) {
                    Some(status) => return status,
                    None => handle.changed().await,
                }
            }
        })
        .await
    }

    /// A Service with one server.
    fn service(&self, namespace: &str, name: &str, server: &Server) {
        self.tell(namespace, "Service", name, json!({"ports": [{"port": 80}]}));
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
            "ports": [{"name": "", "port": server.address.port()}],
            "endpoints": [{"addresses": [server.address.ip().to_string()]}],
        });
        self.objects.put(&Key::new(Some("slices"), &format!("{namespace}.{name}")), &slice).unwrap();
    }

    /// A Gateway called `web` with one listener for all namespaces.
    async fn web(&self) {
        let listener = json!({"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}});
        let spec = json!({"gatewayClassName": "watchkeeper", "listeners": [listener]});
        let report = self.put("default", "Gateway", "web", spec).await;
        assert!(report.programmed.is_true, "{report}");
    }

    async fn ask(&self, last: u8, request: Request<Body>) -> Answer {
        let ports = self.handle.ports();
        let (_, bound) = ports
            .iter()
            .find(|(address, _)| address.ip() == std::net::Ipv4Addr::new(127, 0, 0, last))
            .unwrap();
        send(*bound.as_ref().unwrap(), request).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(1, request(Method::GET, path, Body::empty())).await
    }
}

fn to(service: &str) -> Value {
    json!([{"backendRefs": [{"name": service, "port": 80}]}])
}

fn condition<'a>(conditions: &'a Value, name: &str) -> (&'a str, &'a str) {
    let found = conditions.as_array().unwrap().iter().find(|condition| condition["type"] == name).unwrap();
    (found["status"].as_str().unwrap(), found["reason"].as_str().unwrap())
}

#[tokio::test]
async fn an_http_route_is_served_by_the_gateway_that_it_names() {
    let standard = Standard::start().await;
    let (one, two) = (Server::echo("one"), Server::echo("two"));
    standard.service("default", "one", &one);
    standard.service("default", "two", &two);
    standard.web().await;
    let rules = json!([
        {
            "matches": [{"path": {"type": "PathPrefix", "value": "/shop"}}],
            "filters": [
                {"type": "URLRewrite", "urlRewrite": {"hostname": "inside.test", "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/v2"}}},
                {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "X-Team", "value": "shop"}], "remove": ["x-secret"]}},
                {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"add": [{"name": "x-served", "value": "yes"}]}},
            ],
            "backendRefs": [{"name": "one", "port": 80, "weight": 1}, {"name": "two", "port": 80, "weight": 0}],
        },
        {
            "matches": [{"path": {"type": "Exact", "value": "/old"}, "method": "GET"}],
            "filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "hostname": "new.test", "statusCode": 301}}],
        },
        {"matches": [{"headers": [{"name": "X-Version", "value": "2"}, {"name": "x-version", "value": "3"}]}], "backendRefs": [{"name": "two", "port": 80}]},
        {"matches": [{"path": {"value": "/nothing"}}]},
    ]);
    let report = standard
        .put("default", "HTTPRoute", "shop", json!({"parentRefs": [{"name": "web"}], "rules": rules}))
        .await;
    let parents = &report.status.as_ref().unwrap()["parents"];
    assert_eq!((&parents[0]["controllerName"], parents.as_array().unwrap().len()), (&json!(CONTROLLER), 1));
    assert_eq!(condition(&parents[0]["conditions"], "Accepted"), ("True", "Accepted"));
    assert_eq!(condition(&parents[0]["conditions"], "ResolvedRefs"), ("True", "ResolvedRefs"));
    let shop = standard
        .ask(
            1,
            Request::get("/shop/cart?a=1")
                .header("host", "a.test")
                .header("x-secret", "1")
                .body(Body::empty())
                .unwrap(),
        )
        .await;
    let told = shop.json();
    assert_eq!((&told["server"], &told["target"]), (&json!("one"), &json!("/v2/cart?a=1")));
    assert_eq!(
        (&told["headers"]["host"], &told["headers"]["x-team"]),
        (&json!("inside.test"), &json!("shop"))
    );
    assert!(told["headers"].get("x-secret").is_none() && shop.header("x-served") == Some("yes"));
    let old = standard.get("/old").await;
    assert_eq!((old.status.as_u16(), old.header("location")), (301, Some("https://new.test/old")));
    let version =
        Request::get("/x").header("host", "a.test").header("x-version", "2").body(Body::empty()).unwrap();
    assert_eq!(standard.ask(1, version).await.json()["server"], "two");
    assert_eq!(standard.get("/nothing").await.status, 500);
    assert_eq!(standard.get("/else").await.status, 404);
    let gateway = standard
        .becomes("default", "Gateway", "web", |status| status["listeners"][0]["attachedRoutes"] == 1)
        .await;
    assert_eq!(gateway["addresses"], json!([{"type": "IPAddress", "value": "127.0.0.1"}]));
    assert_eq!(gateway["listeners"][0]["supportedKinds"][0]["kind"], "HTTPRoute");
    standard.forget("default", "HTTPRoute", "shop");
    standard
        .becomes("default", "Gateway", "web", |status| status["listeners"][0]["attachedRoutes"] == 0)
        .await;
    assert_eq!(standard.get("/shop").await.status, 404);
    assert_eq!(standard.handle.table().backends().count(), 0, "nobody refers to the Services any more");
}

#[tokio::test]
async fn a_service_of_another_namespace_needs_a_grant() {
    let standard = Standard::start().await;
    let server = Server::echo("far");
    standard.service("far", "api", &server);
    standard.web().await;
    let rules = json!([{"backendRefs": [{"name": "api", "namespace": "far", "port": 80}]}]);
    let route = json!({"parentRefs": [{"name": "web"}], "rules": rules});
    standard.put("default", "HTTPRoute", "r", route).await;
    let resolved =
        |status: &Value| condition(&status["parents"][0]["conditions"], "ResolvedRefs").1.to_owned();
    assert_eq!(resolved(&standard.becomes("default", "HTTPRoute", "r", |_| true).await), "RefNotPermitted");
    assert_eq!(standard.get("/").await.status, 500);
    let grant = |namespace: &str, service: &str| {
        json!({
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": namespace}],
            "to": [{"group": "", "kind": "Service", "name": service}],
        })
    };
    for (namespace, service) in [("elsewhere", "api"), ("default", "other")] {
        standard.tell("far", "ReferenceGrant", "grant", grant(namespace, service));
        // Something that is told after it, to know when it was heard.
        standard
            .put(
                "default",
                "HTTPRoute",
                "x",
                json!({"parentRefs": [{"name": "web"}], "hostnames": ["x.test"], "rules": to("none")}),
            )
            .await;
        assert_eq!(standard.get("/").await.status, 500);
    }
    standard.tell("far", "ReferenceGrant", "grant", grant("default", "api"));
    standard.becomes("default", "HTTPRoute", "r", |status| resolved(status) == "ResolvedRefs").await;
    assert_eq!(standard.get("/").await.json()["server"], "far");
    standard.forget("far", "ReferenceGrant", "grant");
    standard.becomes("default", "HTTPRoute", "r", |status| resolved(status) == "RefNotPermitted").await;
    assert_eq!(standard.get("/").await.status, 500);
}

#[tokio::test]
async fn listeners_say_whose_routes_they_serve_and_routes_are_told_why_not() {
    let standard = Standard::start().await;
    let server = Server::echo("s");
    standard.service("default", "s", &server);
    standard.service("team", "s", &server);
    let namespace = |labels: Value| {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels}});
        standard.objects.put(&Key::new(Some("Namespace"), "team"), &object).unwrap();
    };
    namespace(json!({}));
    let listeners = json!([
        {"name": "http", "port": 80, "protocol": "HTTP", "hostname": "*.test",
            "allowedRoutes": {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"web": "yes"}}}}},
        {"name": "other", "port": 81, "protocol": "HTTP"},
        {"name": "tcp", "port": 82, "protocol": "TCP"},
        {"name": "tls", "port": 83, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "missing"}]}},
        {"name": "kinds", "port": 84, "protocol": "HTTP", "allowedRoutes": {"kinds": [{"kind": "TLSRoute"}]}},
    ]);
    let report = standard
        .put("default", "Gateway", "web", json!({"gatewayClassName": "watchkeeper", "listeners": listeners}))
        .await;
    let status = report.status.unwrap();
    assert_eq!(condition(&status["conditions"], "Accepted"), ("True", "ListenersNotValid"));
    assert_eq!(condition(&status["conditions"], "Programmed"), ("True", "Programmed"));
    let listener = |at: usize, name: &str| condition(&status["listeners"][at]["conditions"], name);
    assert_eq!(listener(0, "Programmed"), ("True", "Programmed"));
    assert_eq!(listener(2, "Accepted"), ("False", "UnsupportedProtocol"));
    assert_eq!(listener(3, "ResolvedRefs"), ("False", "InvalidCertificateRef"));
    assert_eq!(listener(3, "Programmed"), ("False", "Invalid"));
    assert_eq!(listener(4, "ResolvedRefs"), ("False", "InvalidRouteKinds"));
    assert_eq!(status["listeners"][4]["supportedKinds"], json!([]));
    let accepted = async |namespace: &str, name: &str, parent: Value, hosts: Value| {
        let spec = json!({"parentRefs": [parent], "hostnames": hosts, "rules": to("s")});
        let report = standard.put(namespace, "HTTPRoute", name, spec).await;
        condition(&report.status.unwrap()["parents"][0]["conditions"], "Accepted").1.to_owned()
    };
    let web = json!({"name": "web", "namespace": "default"});
    let section = |name: &str| json!({"name": "web", "namespace": "default", "sectionName": name});
    assert_eq!(accepted("team", "a", web.clone(), json!([])).await, "NotAllowedByListeners");
    assert_eq!(accepted("default", "b", section("nobody"), json!([])).await, "NoMatchingParent");
    assert_eq!(
        accepted("default", "b", json!({"name": "web", "port": 99}), json!([])).await,
        "NoMatchingParent"
    );
    assert_eq!(accepted("default", "b", section("tcp"), json!([])).await, "NotAllowedByListeners");
    assert_eq!(accepted("default", "b", section("other"), json!(["b.test"])).await, "Accepted");
    // A label lets the namespace in.
    namespace(json!({"web": "yes"}));
    let is_accepted = |status: &Value| condition(&status["parents"][0]["conditions"], "Accepted").0 == "True";
    standard.becomes("team", "HTTPRoute", "a", is_accepted).await;
    assert_eq!(
        accepted("team", "c", web.clone(), json!(["elsewhere.example"])).await,
        "NoMatchingListenerHostname"
    );
    let get = |host: &str| Request::get("/").header("host", host).body(Body::empty()).unwrap();
    assert_eq!(standard.ask(1, get("any.test")).await.status, 200);
    assert_eq!(standard.ask(1, get("any.example")).await.status, 404);
    assert_eq!(standard.ask(2, get("b.test")).await.status, 200);
    assert_eq!(standard.ask(2, get("c.test")).await.status, 404, "the route is for another listener");
    namespace(json!({"web": "no"}));
    standard.becomes("team", "HTTPRoute", "a", |status| !is_accepted(status)).await;
    assert_eq!(standard.ask(1, get("any.test")).await.status, 404);
}

#[tokio::test]
async fn gateways_of_other_controllers_and_own_routes_are_none_of_its_business() {
    let standard = Standard::start().await;
    standard.web().await;
    let own = object("GatewayRoute", "own", json!({"rules": [{"filters": {"respond": {"body": "own"}}}]}));
    standard.objects.put(&Key::new(Some("own"), "own"), &own).unwrap();
    standard.tell("", "GatewayClass", "foreign", json!({"controllerName": "example.com/other"}));
    let listeners = json!([{"name": "http", "port": 80, "protocol": "HTTP"}]);
    standard.tell(
        "default",
        "Gateway",
        "second",
        json!({"gatewayClassName": "foreign", "listeners": listeners}),
    );
    let parents = json!([{"name": "second"}, {"name": "web"}, {"name": "missing"}, {"kind": "Service", "group": "", "name": "mesh"}]);
    let report =
        standard.put("default", "HTTPRoute", "r", json!({"parentRefs": parents, "rules": to("none")})).await;
    let told = report.status.unwrap();
    assert_eq!(
        (told["parents"].as_array().unwrap().len(), &told["parents"][0]["parentRef"]["name"]),
        (1, &json!("web"))
    );
    assert_eq!(
        standard.get("/").await.status,
        500,
        "the HTTPRoute, whose Service is missing, and not the route for all listeners"
    );
    assert_eq!(standard.handle.ports().len(), 1);
    let second = ObjectId { kind: InputKind::Gateway, key: Key::new(Some("default"), "second") };
    assert!(standard.handle.report(&second).is_none());
    // When the class is ours, so is its Gateway.
    standard.tell("", "GatewayClass", "foreign", json!({"controllerName": CONTROLLER}));
    standard
        .becomes("default", "Gateway", "second", |status| status["listeners"][0]["attachedRoutes"] == 1)
        .await;
    assert_eq!(standard.ask(3, request(Method::GET, "/", Body::empty())).await.status, 500);
}

#[tokio::test]
async fn what_is_not_supported_is_told_and_the_last_good_form_stays() {
    let standard = Standard::start().await;
    let server = Server::echo("s");
    standard.service("default", "s", &server);
    standard.web().await;
    let route = |filters: Value| {
        let rules = json!([{"filters": filters, "backendRefs": [{"name": "s", "port": 80}]}]);
        json!({"parentRefs": [{"name": "web"}], "rules": rules})
    };
    standard.put("default", "HTTPRoute", "r", route(json!([]))).await;
    assert_eq!(standard.get("/").await.status, 200);
    for filter in [
        json!({"type": "ExtensionRef", "extensionRef": {"group": "x", "kind": "Y", "name": "z"}}),
        json!({"type": "RequestHeaderModifier"}),
        json!({"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "a b", "value": "c"}]}}),
    ] {
        let report = standard.put("default", "HTTPRoute", "r", route(json!([filter]))).await;
        let status = report.status.unwrap();
        assert_eq!(condition(&status["parents"][0]["conditions"], "Accepted"), ("False", "UnsupportedValue"));
        assert!(!report.programmed.is_true);
        assert_eq!(standard.get("/").await.status, 200);
    }
}
