//! Where objects come from.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use watchkeeper_core::Key;
use watchkeeper_gateway::{Admin, From, Gateway, Handle, Options};
use watchkeeper_sources::channel::channel;
use watchkeeper_sources::files::Files;

use crate::support::{id, object, request, send, settings, within};

fn respond(body: &str) -> serde_json::Value {
    json!({"rules": [{"filters": {"respond": {"body": body}}}]})
}

async fn text(handle: &Handle) -> String {
    let address = *handle.ports().values().next().unwrap().as_ref().unwrap();
    send(address, request(http::Method::GET, "/", watchkeeper_front::Body::empty())).await.text().to_owned()
}

/// Waits until all sources have told everything.
async fn settled(handle: &mut Handle) {
    within("all sources", async {
        while handle.readiness() != (true, Vec::new()) {
            handle.changed().await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_first_source_counts_and_the_next_takes_its_place() {
    let ((first, one), (second, two)) = (channel("first"), channel("second"));
    second.put(&Key::new(None, "web"), &object("GatewayListener", "web", json!({"port": 0}))).unwrap();
    second.put(&Key::new(None, "hello"), &object("GatewayRoute", "hello", respond("second"))).unwrap();
    let from = vec![From::Source(Arc::new(one)), From::Source(Arc::new(two))];
    let gateway = Gateway::start(Options { from, ..Options::default() }).unwrap();
    let mut handle = gateway.handle().clone();
    within("starting", handle.ready()).await;
    assert_eq!(text(&handle).await, "second");
    let becomes = async |expected: &str| {
        within(expected, async {
            while text(&handle).await != expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    };
    first.put(&Key::new(None, "x"), &object("GatewayRoute", "hello", respond("first"))).unwrap();
    becomes("first").await;
    second.put(&Key::new(None, "hello"), &object("GatewayRoute", "hello", respond("third"))).unwrap();
    first.remove(&Key::new(None, "x"));
    becomes("third").await;
    gateway.stop(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_file_that_is_edited_changes_the_next_answer_and_a_mistake_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, value: &serde_json::Value| {
        std::fs::write(directory.path().join(name), value.to_string()).unwrap();
    };
    write("web.json", &object("GatewayListener", "web", json!({"port": 0})));
    write("hello.yaml", &object("GatewayRoute", "hello", respond("one")));
    let from = vec![From::Source(Arc::new(Files::directory(directory.path())))];
    let gateway = Gateway::start(Options { from, settings: settings(), ..Options::default() }).unwrap();
    let mut handle = gateway.handle().clone();
    within("starting", handle.ready()).await;
    assert_eq!(text(&handle).await, "one");
    write("hello.yaml", &object("GatewayRoute", "hello", respond("two")));
    within("the change", async {
        while text(&handle).await != "two" {
            handle.changed().await;
        }
    })
    .await;
    write("hello.yaml", &object("GatewayRoute", "hello", json!({"rules": [{"backend": "x"}]})));
    within("the mistake", async {
        while handle.report(&id("GatewayRoute", "hello")).unwrap().accepted.is_true {
            handle.changed().await;
        }
    })
    .await;
    let report = handle.report(&id("GatewayRoute", "hello")).unwrap();
    assert_eq!(report.accepted.message.split(": ").next(), Some("spec.rules[0].backend"));
    assert_eq!(report.programmed.reason, "LastGood");
    assert_eq!(text(&handle).await, "two");
}

#[tokio::test]
async fn a_document_that_was_mended_is_not_rejected_any_more() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("web.json", &object("GatewayListener", "web", json!({"port": 0})).to_string());
    let hello = object("GatewayRoute", "hello", respond("one")).to_string();
    write("hello.yaml", &hello);
    let from = vec![From::Source(Arc::new(Files::directory(directory.path())))];
    let gateway = Gateway::start(Options { from, settings: settings(), ..Options::default() }).unwrap();
    let mut handle = gateway.handle().clone();
    within("starting", handle.ready()).await;
    let mut rejects = async |expected: usize| {
        within("what is rejected", async {
            while handle.rejected().len() != expected {
                handle.changed().await;
            }
        })
        .await;
    };
    for text in ["{", "a: [", "just: {this: 1}"] {
        write("hello.yaml", text);
        rejects(1).await;
        // As it was before, so that no object changes.
        write("hello.yaml", &hello);
        rejects(0).await;
    }
    write("other.yaml", "{");
    rejects(1).await;
    std::fs::remove_file(directory.path().join("other.yaml")).unwrap();
    rejects(0).await;
}

#[tokio::test]
async fn without_its_sources_a_gateway_serves_what_it_served_last_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let (objects, state) = (directory.path().join("objects"), directory.path().join("state"));
    std::fs::create_dir(&objects).unwrap();
    let listener = object("GatewayListener", "web", json!({"port": 0}));
    std::fs::write(objects.join("web.json"), listener.to_string()).unwrap();
    std::fs::write(objects.join("hello.json"), object("GatewayRoute", "hello", respond("kept")).to_string())
        .unwrap();
    let start = || {
        let from = vec![From::Source(Arc::new(Files::directory(&objects)))];
        Gateway::start(Options { from, state: Some(state.clone()), ..Options::default() }).unwrap()
    };
    let gateway = start();
    let mut handle = gateway.handle().clone();
    within("starting", handle.ready()).await;
    gateway.stop(Duration::from_secs(5)).await;
    // The directory is gone: an outage, not a wish.
    let away = directory.path().join("away");
    std::fs::rename(&objects, &away).unwrap();
    let gateway = start();
    let mut handle = gateway.handle().clone();
    within("starting without sources", handle.ready()).await;
    assert_eq!(text(&handle).await, "kept");
    let admin = Admin::start("127.0.0.1:0".parse().unwrap(), &handle).unwrap();
    let page =
        send(admin.address(), request(http::Method::GET, "/readyz", watchkeeper_front::Body::empty())).await;
    assert!(
        page.text().starts_with("ok\n") && page.text().contains("as they were when the state was written"),
        "{}",
        page.text()
    );
    // When the source is back, what it has counts, and what it does not have any more is gone.
    std::fs::write(away.join("hello.json"), object("GatewayRoute", "other", respond("new")).to_string())
        .unwrap();
    std::fs::rename(&away, &objects).unwrap();
    within("the source to come back", async {
        while text(&handle).await != "new" || handle.report(&id("GatewayRoute", "hello")).is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let page =
        send(admin.address(), request(http::Method::GET, "/readyz", watchkeeper_front::Body::empty())).await;
    assert_eq!(page.text(), "ok\n");
}

#[tokio::test]
async fn the_last_good_form_of_an_object_outlives_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let (objects, state) = (directory.path().join("objects"), directory.path().join("state"));
    std::fs::create_dir(&objects).unwrap();
    let write = |name: &str, text: &str| std::fs::write(objects.join(name), text).unwrap();
    write("web.json", &object("GatewayListener", "web", json!({"port": 0})).to_string());
    write("hello.yaml", &object("GatewayRoute", "hello", respond("good")).to_string());
    let start = async || {
        let from = vec![From::Source(Arc::new(Files::directory(&objects)))];
        let options = Options { from, state: Some(state.clone()), ..Options::default() };
        let gateway = Gateway::start(options).unwrap();
        let mut handle = gateway.handle().clone();
        settled(&mut handle).await;
        (gateway, handle)
    };
    let programmed =
        |handle: &Handle| handle.report(&id("GatewayRoute", "hello")).map(|report| report.programmed.reason);
    let (gateway, handle) = start().await;
    assert_eq!(text(&handle).await, "good");
    gateway.stop(Duration::from_secs(5)).await;
    // First an object that is invalid, then a file that does not say which objects it has.
    let invalid = object("GatewayRoute", "hello", json!({"rules": [{"backend": "x"}]})).to_string();
    for (mistake, told) in [(invalid.as_str(), "LastGood"), ("{", "Programmed")] {
        write("hello.yaml", mistake);
        for _ in 0..2 {
            let (gateway, handle) = start().await;
            assert_eq!(text(&handle).await, "good", "{mistake}");
            assert_eq!(programmed(&handle), Some(told), "{mistake}");
            assert_eq!(handle.rejected().len(), usize::from(mistake == "{"));
            gateway.stop(Duration::from_secs(5)).await;
        }
    }
    // What a file does not have when it can be read again is gone.
    let (gateway, mut handle) = start().await;
    write("hello.yaml", &object("GatewayRoute", "other", respond("new")).to_string());
    within("the route to go", async {
        while programmed(&handle).is_some() {
            handle.changed().await;
        }
    })
    .await;
    assert_eq!(text(&handle).await, "new");
    gateway.stop(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_route_of_the_state_file_that_was_told_of_again_is_gone_when_it_is_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let start = async |source| {
        let from = vec![From::Source(Arc::new(source))];
        let options = Options { from, state: Some(directory.path().to_owned()), ..Options::default() };
        let gateway = Gateway::start(options).unwrap();
        let mut handle = gateway.handle().clone();
        settled(&mut handle).await;
        (gateway, handle)
    };
    let told = || {
        let (objects, source) = channel("test");
        objects.put(&Key::new(None, "web"), &object("GatewayListener", "web", json!({"port": 0}))).unwrap();
        objects.put(&Key::new(None, "hello"), &object("GatewayRoute", "hello", respond("hello"))).unwrap();
        // Something that cannot be read, too.
        objects.put(&Key::new(None, "row"), &json!({"nothing": 1})).unwrap();
        (objects, source)
    };
    let (_objects, source) = told();
    let (gateway, handle) = start(source).await;
    assert_eq!(text(&handle).await, "hello");
    gateway.stop(Duration::from_secs(5)).await;
    let (objects, source) = told();
    let (_gateway, mut handle) = start(source).await;
    objects.remove(&Key::new(None, "hello"));
    within("the route to go", async {
        while handle.report(&id("GatewayRoute", "hello")).is_some() {
            handle.changed().await;
        }
    })
    .await;
    assert_ne!(text(&handle).await, "hello");
}

#[tokio::test]
async fn the_admin_endpoint_tells_what_is_served_and_why() {
    let (objects, source) = channel("test");
    objects.put(&Key::new(None, "web"), &object("GatewayListener", "web", json!({"port": 0}))).unwrap();
    objects.put(&Key::new(None, "a"), &object("GatewayRoute", "a", respond("a"))).unwrap();
    let spec = json!({"rules": [{"matches": [{"path": {"prefix": "/x"}, "method": "PUT"}], "backends": [{"name": "nobody"}]}]});
    objects.put(&Key::new(None, "b"), &object("GatewayRoute", "b", spec)).unwrap();
    objects.put(&Key::new(None, "row"), &json!({"nothing": 1})).unwrap();
    let from = vec![From::Source(Arc::new(source))];
    let gateway = Gateway::start(Options { from, ..Options::default() }).unwrap();
    let mut handle = gateway.handle().clone();
    within("starting", handle.ready()).await;
    let admin = Admin::start("127.0.0.1:0".parse().unwrap(), &handle).unwrap();
    let page = async |path: &str| {
        send(admin.address(), request(http::Method::GET, path, watchkeeper_front::Body::empty())).await
    };
    let table = page("/table").await.json();
    assert_eq!(table["routes"][1]["rules"][0]["path"], "prefix /x");
    let objects = page("/objects").await.json();
    assert_eq!(objects["rejected"]["test: row"], "has no apiVersion and kind");
    let condition = &objects["objects"][2]["conditions"][1];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("ResolvedRefs"), &json!("False")));
    assert_eq!(condition["message"], "spec.rules: there is no GatewayBackend default/nobody");
    let explained = page("/explain?url=http://any.test/x/y&format=json").await.json();
    assert_eq!(explained["served"]["rule"], "default/a rules[0].matches[0]");
    assert_eq!(explained["passed"][0]["reason"], "the method is not PUT");
    assert!(page("/metrics").await.text().contains("gateway_routes 2\n"));
    assert_eq!(page("/nothing").await.status, 404);
}

#[tokio::test]
async fn rows_of_a_database_are_objects_whose_statuses_are_written_back() {
    let database = crate::postgres::Server::shared().database().await;
    database
        .sql(
            "CREATE TABLE objects (kind text, namespace text DEFAULT 'default', name text, spec jsonb, status jsonb, PRIMARY KEY (kind, namespace, name)); \
             INSERT INTO objects VALUES ('GatewayListener', 'default', 'web', '{\"port\": 0}'), \
             ('GatewayRoute', 'default', 'hello', '{\"rules\": [{\"filters\": {\"respond\": {\"body\": \"one\"}}}]}')",
        )
        .await;
    let table = database.source("objects").status_column("status");
    let options = Options { from: vec![From::Source(Arc::new(table))], ..Options::default() };
    let gateway = Gateway::start(options).unwrap();
    let mut handle = gateway.handle().clone();
    within("starting", handle.ready()).await;
    assert_eq!(text(&handle).await, "one");
    let condition = |kind: &str, status: &str| {
        format!(
            "EXISTS (SELECT FROM objects, jsonb_array_elements(status->'conditions') AS c WHERE name = 'hello' AND c->>'type' = '{kind}' AND c->>'status' = '{status}')"
        )
    };
    database.until(&condition("Programmed", "True")).await;
    database.sql("UPDATE objects SET spec = '{\"rules\": [{\"filters\": {\"respond\": {\"body\": \"two\"}}}]}' WHERE name = 'hello'").await;
    within("the edit", async {
        while text(&handle).await != "two" {
            handle.changed().await;
        }
    })
    .await;
    database.sql("UPDATE objects SET spec = '{\"rules\": 7}' WHERE name = 'hello'").await;
    database.until(&condition("Accepted", "False")).await;
    assert_eq!(text(&handle).await, "two", "a mistake changes nothing that is served, and its row says so");
}
