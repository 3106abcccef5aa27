//! What must not be served, and what must not be said: policies that are not known, certificates that do not fit, statuses that lie.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use watchkeeper::client::Client;
use watchkeeper_connection::{Config, Connection};
use watchkeeper_core::Key;
use watchkeeper_front::{Authority, Body};
use watchkeeper_gateway::kinds::{GatewayListener, GatewayPolicy, GatewayRoute, GatewayRouteSpec};
use watchkeeper_gateway::{From, Gateway, Options, Report, Settings};
use watchkeeper_go::base64;
use watchkeeper_sources::channel::channel;
use watchkeeper_sources::files::Files;

use crate::protocols::{pair, shown};
use crate::support::{Bench, cluster, id, object, request, send, within};

fn respond(body: &str) -> Value {
    json!({"rules": [{"filters": {"respond": {"body": body}}}]})
}

/// A policy that lets nobody in.
fn nobody(kind: &str, name: Option<&str>) -> Value {
    json!({"targets": [{"kind": kind, "name": name}], "addresses": {"deny": ["0.0.0.0/0"]}})
}

#[tokio::test]
async fn a_listener_that_cannot_listen_makes_the_others_not_unready() {
    let bench = Bench::start().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    bench.put("GatewayListener", "second", json!({"port": port})).await;
    let (ready, notes) = bench.handle.readiness();
    assert!(ready, "{notes:?}");
    assert!(notes[0].starts_with(&format!("listener on 127.0.0.1:{port}: ")), "{notes:?}");
    assert_eq!(
        bench.handle.report(&id("GatewayListener", "second")).unwrap().programmed.reason,
        "AddressNotUsable"
    );
    // With none that works, there is nothing to be ready for.
    bench.remove("GatewayListener", "second").await;
    let (objects, source) = channel("alone");
    objects.put(&Key::new(None, "web"), &object("GatewayListener", "web", json!({"port": port}))).unwrap();
    let from = vec![From::Source(Arc::new(source))];
    let gateway = Gateway::start(Options { from, ..Options::default() }).unwrap();
    let mut handle = gateway.handle().clone();
    within("the listener", async {
        while handle.ports().is_empty() {
            handle.changed().await;
        }
    })
    .await;
    assert!(!handle.readiness().0);
    drop(taken);
    within("the port is free", handle.ready()).await;
}

#[tokio::test]
async fn nothing_is_served_before_policies_are_known() {
    let directory = tempfile::tempdir().unwrap();
    let policies = directory.path().join("policies");
    let (objects, source) = channel("routes");
    objects.put(&Key::new(None, "web"), &object("GatewayListener", "web", json!({"port": 0}))).unwrap();
    objects.put(&Key::new(None, "hello"), &object("GatewayRoute", "hello", respond("hello"))).unwrap();
    // The folder with the policies is not there yet: a volume that is mounted late.
    let from = vec![From::Source(Arc::new(source)), From::Source(Arc::new(Files::directory(&policies)))];
    let gateway = Gateway::start(Options { from, ..Options::default() }).unwrap();
    let mut handle = gateway.handle().clone();
    let address = within("the socket", async {
        loop {
            match handle.ports().into_values().next() {
                Some(port) => return port.unwrap(),
                None => handle.changed().await,
            }
        }
    })
    .await;
    let ask = async || send(address, request(http::Method::GET, "/", Body::empty())).await;
    let answer = ask().await;
    assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, Some("1")), "{}", answer.text());
    let (ready, notes) = handle.readiness();
    assert!(!ready && notes.iter().any(|note| note.contains("may have policies")), "{notes:?}");
    std::fs::create_dir(&policies).unwrap();
    let policy = object("GatewayPolicy", "nobody", nobody("Route", Some("hello")));
    std::fs::write(policies.join("policy.json"), policy.to_string()).unwrap();
    within("the policies", async {
        loop {
            match ask().await.status.as_u16() {
                503 => handle.changed().await,
                code => return assert_eq!(code, 403),
            }
        }
    })
    .await;
    assert!(handle.readiness().0);
}

#[tokio::test]
async fn policies_of_the_state_on_disk_protect_while_their_source_is_away() {
    let directory = tempfile::tempdir().unwrap();
    let (policies, state) = (directory.path().join("policies"), directory.path().join("state"));
    std::fs::create_dir(&policies).unwrap();
    let policy = object("GatewayPolicy", "nobody", nobody("Namespace", None));
    std::fs::write(policies.join("policy.json"), policy.to_string()).unwrap();
    let start = || {
        let (objects, source) = channel("routes");
        objects.put(&Key::new(None, "web"), &object("GatewayListener", "web", json!({"port": 0}))).unwrap();
        objects.put(&Key::new(None, "hello"), &object("GatewayRoute", "hello", respond("hello"))).unwrap();
        let from = vec![From::Source(Arc::new(source)), From::Source(Arc::new(Files::directory(&policies)))];
        let options = Options { from, state: Some(state.clone()), ..Options::default() };
        (Gateway::start(options).unwrap(), objects)
    };
    let (gateway, _objects) = start();
    within("starting", gateway.handle().clone().ready()).await;
    gateway.stop(Duration::from_secs(5)).await;
    std::fs::rename(&policies, directory.path().join("away")).unwrap();
    let (gateway, _objects) = start();
    let mut handle = gateway.handle().clone();
    within("starting without policies", handle.ready()).await;
    let address = *handle.ports().values().next().unwrap().as_ref().unwrap();
    assert_eq!(send(address, request(http::Method::GET, "/", Body::empty())).await.status, 403);
}

#[tokio::test]
async fn without_an_api_server_a_gateway_serves_what_the_cluster_said_last() {
    let directory = tempfile::tempdir().unwrap();
    let start = async |connection: Connection| {
        let state = Some(directory.path().join("state"));
        let options = Options { from: vec![From::Kubernetes(connection)], state, ..Options::default() };
        let gateway = Gateway::start(options).unwrap();
        let mut handle = gateway.handle().clone();
        within("starting", handle.ready()).await;
        let address = *handle.ports().values().next().unwrap().as_ref().unwrap();
        (gateway, address)
    };
    let ask =
        async |address, path: &str| send(address, request(http::Method::GET, path, Body::empty())).await;
    let env = cluster().await;
    let client = Client::new(env.connection());
    let mut listener = GatewayListener::new("web", serde_json::from_value(json!({"port": 0})).unwrap());
    listener.metadata.namespace = Some("default".into());
    client.create(&listener).await.unwrap();
    for (name, path) in [("open", "/open"), ("shut", "/shut")] {
        let rule = json!({"matches": [{"path": {"prefix": path}}], "filters": {"respond": {"body": name}}});
        let mut route = GatewayRoute::new(name, serde_json::from_value(json!({"rules": [rule]})).unwrap());
        route.metadata.namespace = Some("default".into());
        client.create(&route).await.unwrap();
    }
    let mut policy =
        GatewayPolicy::new("nobody", serde_json::from_value(nobody("Route", Some("shut"))).unwrap());
    policy.metadata.namespace = Some("default".into());
    client.create(&policy).await.unwrap();
    let (gateway, address) = start(env.connection()).await;
    assert_eq!(ask(address, "/open").await.text(), "open");
    gateway.stop(Duration::from_secs(5)).await;
    // Nobody listens there.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let away = Connection::new(Config::new(&format!("http://{closed}")).unwrap()).unwrap();
    let (gateway, address) = start(away).await;
    assert_eq!(ask(address, "/open").await.text(), "open");
    assert_eq!(ask(address, "/shut").await.status, 403, "what protects a route is kept, too");
    let (ready, notes) = gateway.handle().readiness();
    assert!(
        ready && notes.iter().any(|note| note.contains("as they were when the state was written")),
        "{notes:?}"
    );
    gateway.stop(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_policy_that_never_could_be_used_refuses_what_it_is_for_and_says_so() {
    let bench = Bench::start().await;
    bench.put("GatewayRoute", "hello", respond("hello")).await;
    let keys = |digest: &str, kind: &str, name: Option<&str>| json!({"targets": [{"kind": kind, "name": name}], "apiKeys": {"keys": [{"name": "jane", "sha256": digest}]}});
    let (good, bad) = ("0".repeat(64), "jane");
    let programmed = |kind: &str, name: &str| bench.handle.report(&id(kind, name)).unwrap().programmed;
    for (kind, name, told) in [
        ("Route", Some("hello"), ("GatewayRoute", "hello")),
        ("Namespace", None, ("GatewayRoute", "hello")),
        ("Listener", Some("web"), ("GatewayListener", "web")),
    ] {
        bench.put("GatewayPolicy", "keys", keys(bad, kind, name)).await;
        let answer = bench.get("/").await;
        assert_eq!(
            (answer.status.as_u16(), answer.text()),
            (500, "policy default/keys cannot be used; its status says why\n")
        );
        assert!(!programmed("GatewayPolicy", "keys").is_true);
        let said = programmed(told.0, told.1);
        assert_eq!((said.is_true, said.reason), (false, "PolicyInvalid"), "{kind}");
        assert_eq!(said.message, "requests are answered with 500: GatewayPolicy default/keys cannot be used");
        bench.put("GatewayPolicy", "keys", keys(&good, kind, name)).await;
        assert_eq!(bench.get("/").await.status, 401);
        assert!(programmed(told.0, told.1).is_true);
        bench.put("GatewayPolicy", "keys", keys(bad, kind, name)).await;
        assert_eq!(bench.get("/").await.status, 401, "its last good form");
        bench.remove("GatewayPolicy", "keys").await;
        assert_eq!(bench.get("/").await.text(), "hello");
    }
    // Targets that are wrong, too, are as much as can be read of them.
    let spec = json!({"targets": [{"kind": "Rout", "name": "a"}, {"kind": "Route", "name": "hello"}]});
    bench.put("GatewayPolicy", "keys", spec).await;
    assert_eq!(bench.get("/").await.status, 500);
}

#[tokio::test]
async fn a_certificate_whose_key_comes_later_is_served_when_both_are_there() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Arc::new(
        Authority::with_key("test", watchkeeper_front::Key::generate().unwrap(), SystemTime::now()).unwrap(),
    );
    let write = |pair: &Value, name: &str, file: &str| {
        std::fs::write(directory.path().join(file), base64::decode(pair[name].as_str().unwrap()).unwrap())
            .unwrap();
    };
    let first = pair(&authority, "shop.test");
    write(&first, "tls.crt", "chain.pem");
    write(&first, "tls.key", "key.pem");
    let (objects, source) = channel("test");
    let listener = json!({"port": 0, "protocol": "HTTPS", "tls": {"certificates": [{"certificateFile": "chain.pem", "keyFile": "key.pem"}]}});
    objects.put(&Key::new(None, "web"), &object("GatewayListener", "web", listener)).unwrap();
    objects.put(&Key::new(None, "hello"), &object("GatewayRoute", "hello", respond("hello"))).unwrap();
    let settings = Settings { base: directory.path().to_owned(), ..Settings::default() };
    let from = vec![From::Source(Arc::new(source))];
    let gateway = Gateway::start(Options { from, settings, ..Options::default() }).unwrap();
    let mut handle = gateway.handle().clone();
    within("starting", handle.ready()).await;
    let address = *handle.ports().values().next().unwrap().as_ref().unwrap();
    let before = shown(address, &authority, "shop.test").await.unwrap();
    // Clients that connect all the time: none may fail.
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..2)
        .map(|_| {
            let (stop, authority) = (Arc::clone(&stop), Arc::clone(&authority));
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while !stop.load(Relaxed) {
                    let certificate = shown(address, &authority, "shop.test").await.unwrap();
                    if seen.last() != Some(&certificate) {
                        seen.push(certificate);
                    }
                }
                seen
            })
        })
        .collect();
    let becomes = async |handle: &mut watchkeeper_gateway::Handle, is_as: &dyn Fn(&Report) -> bool| {
        within("the report", async {
            while !is_as(&handle.report(&id("GatewayListener", "web")).unwrap()) {
                handle.changed().await;
            }
        })
        .await;
    };
    let second = pair(&authority, "shop.test");
    write(&second, "tls.crt", "chain.pem");
    becomes(&mut handle, &|report| !report.resolved.is_true).await;
    let message = handle.report(&id("GatewayListener", "web")).unwrap().resolved.message;
    assert!(message.ends_with("the certificate before is served"), "{message}");
    assert_eq!(shown(address, &authority, "shop.test").await.unwrap(), before);
    write(&second, "tls.key", "key.pem");
    becomes(&mut handle, &|report| report.resolved.is_true).await;
    let after = shown(address, &authority, "shop.test").await.unwrap();
    assert_ne!(after, before);
    stop.store(true, Relaxed);
    for client in clients {
        assert_eq!(client.await.unwrap(), [before.clone(), after.clone()]);
    }
}

#[tokio::test]
async fn a_file_that_is_wrong_at_first_is_read_again_when_it_has_changed() {
    let directory = tempfile::tempdir().unwrap();
    let (objects, source) = channel("test");
    objects.put(&Key::new(None, "web"), &object("GatewayListener", "web", json!({"port": 0}))).unwrap();
    let policy = json!({"targets": [{"kind": "Namespace"}], "jwt": {"jwksFile": "keys.json"}});
    objects.put(&Key::new(None, "jwt"), &object("GatewayPolicy", "jwt", policy)).unwrap();
    let settings = Settings { base: directory.path().to_owned(), ..Settings::default() };
    let from = vec![From::Source(Arc::new(source))];
    let gateway = Gateway::start(Options { from, settings, ..Options::default() }).unwrap();
    let mut handle = gateway.handle().clone();
    within("starting", handle.ready()).await;
    assert!(!handle.report(&id("GatewayPolicy", "jwt")).unwrap().accepted.is_true);
    std::fs::write(
        directory.path().join("keys.json"),
        r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#,
    )
    .unwrap();
    within("the file", async {
        while !handle.report(&id("GatewayPolicy", "jwt")).unwrap().accepted.is_true {
            handle.changed().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_of_a_cluster_that_a_file_has_too_gets_a_status_of_its_own() {
    let env = cluster().await;
    let client = Client::new(env.connection());
    let spec: GatewayRouteSpec = serde_json::from_value(respond("cluster")).unwrap();
    let mut route = GatewayRoute::new("hello", spec);
    route.metadata.namespace = Some("default".into());
    client.create(&route).await.unwrap();
    let (objects, source) = channel("first");
    let key = Key::new(None, "hello");
    objects.put(&key, &object("GatewayRoute", "hello", respond("file"))).unwrap();
    let from = vec![From::Source(Arc::new(source)), From::Kubernetes(env.connection())];
    let gateway = Gateway::start(Options { from, ..Options::default() }).unwrap();
    within("starting", gateway.handle().clone().ready()).await;
    let reason = async |expected: &str| {
        within(expected, async {
            loop {
                let route =
                    client.live().get::<GatewayRoute>(&Key::new(Some("default"), "hello")).await.unwrap();
                let route = serde_json::to_value(&*route.unwrap()).unwrap();
                let conditions = route["status"]["conditions"].as_array().cloned().unwrap_or_default();
                let accepted = conditions.iter().find(|each| each["type"] == "Accepted").cloned();
                if accepted.as_ref().is_some_and(|accepted| accepted["reason"] == expected) {
                    return accepted.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
    };
    let shadowed = reason("Shadowed").await;
    assert_eq!(
        (&shadowed["status"], &shadowed["message"]),
        (&json!("False"), &json!("the source first has this object too, and counts more"))
    );
    assert!(objects.remove(&key));
    assert_eq!(reason("Accepted").await["status"], "True");
    objects.put(&key, &object("GatewayRoute", "hello", respond("file"))).unwrap();
    reason("Shadowed").await;
}
