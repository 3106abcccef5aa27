//! Reactions that are objects in a cluster.

use serde_json::{Value, json};

use super::place::{Place, Runner, eventually};
use super::server::{Server, Writer};

const MAPS: &str = r#"  - name: maps
    on: routes
    retry: {initial: 50ms, max: 100ms}
    do:
      apply:
        objects:
        - apiVersion: v1
          kind: ConfigMap
          metadata: {name: "route-${name}", labels: {app: web}}
          data: {size: "${.spec.size}!"}
        - apiVersion: v1
          kind: ConfigMap
          metadata: {name: "size-${.spec.size}-${name}", namespace: default}
"#;

/// The names of the maps that the reactor has made.
fn children(writer: Writer) -> Vec<String> {
    let list = writer.send(
        "GET",
        "/api/v1/namespaces/default/configmaps?labelSelector=run.watchkeeper.dev/reactor%3Dtest",
        "",
    );
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap().iter().map(name).collect()
}

fn has(writer: Writer, expected: &[&str]) {
    let mut last = Vec::new();
    eventually(&format!("the children {expected:?}"), || {
        last = children(writer);
        last == expected
    });
}

fn run(place: &Place, server: &Server, arguments: &[&str]) -> Runner {
    let mut command = place.command(arguments);
    command.env("KUBECONFIG", server.path("kubeconfig"));
    Runner::start(command)
}

#[test]
fn children_follow_their_origin_and_go_with_it() {
    let server = Server::start();
    let writer = server.writer();
    let place = Place::new(MAPS);
    place.route("a", 1);
    place.route("b", 2);
    let runner = run(&place, &server, &[]);
    has(writer, &["route-a", "route-b", "size-1-a", "size-2-b"]);
    let map = writer.send("GET", "/api/v1/namespaces/default/configmaps/route-a", "");
    assert_eq!(map["data"], json!({"size": "1!"}));
    let metadata = &map["metadata"];
    assert_eq!(metadata["labels"]["app"], "web");
    assert_eq!(metadata["labels"]["run.watchkeeper.dev/reaction"], "maps");
    assert_eq!(metadata["annotations"]["run.watchkeeper.dev/origin-name"], "a");
    assert_eq!(metadata["managedFields"][0]["manager"], "watchkeeper-run");
    assert_eq!(metadata["managedFields"][0]["operation"], "Apply");
    // Another name is another object, and the one before it is not wanted any more.
    place.route("a", 3);
    has(writer, &["route-a", "route-b", "size-2-b", "size-3-a"]);
    place.remove("a");
    has(writer, &["route-b", "size-2-b"]);
    runner.says("maps: gone a: done in ");
}

#[test]
fn what_went_while_nobody_looked_is_pruned_after_a_restart() {
    let server = Server::start();
    let writer = server.writer();
    for state in [true, false] {
        let place = Place::new(MAPS);
        let arguments: &[&str] = if state { &["--state", "state"] } else { &[] };
        for name in ["a", "b", "c"] {
            place.route(name, 1);
        }
        let start = || {
            let mut command = place.command(arguments);
            command.env("KUBECONFIG", server.path("kubeconfig")).current_dir(place.path(""));
            Runner::start(command)
        };
        let mut runner = start();
        has(writer, &["route-a", "route-b", "route-c", "size-1-a", "size-1-b", "size-1-c"]);
        for _ in ["a", "b", "c"] {
            runner.says("done in");
        }
        runner.kill();
        place.remove("a");
        let mut runner = start();
        has(writer, &["route-b", "route-c", "size-1-b", "size-1-c"]);
        runner.says("maps: gone a: done in ");
        runner.kill();
        // All at once is confirmed by a second look.
        place.remove("b");
        place.remove("c");
        let mut runner = start();
        runner
            .says("routes: 2 of 2 objects are no longer there: looking again before they are taken for gone");
        has(writer, &[]);
        runner.kill();
    }
}

#[test]
fn what_is_taken_out_of_the_templates_goes_after_a_restart_also_the_last_of_its_kind() {
    const BEFORE: &str = r#"  - name: maps
    on: routes
    retry: {initial: 50ms, max: 100ms}
    do:
      apply:
        objects:
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: "route-${name}"}}
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: "more-${name}"}}
        - {apiVersion: v1, kind: ServiceAccount, metadata: {name: "route-${name}"}}
"#;
    let server = Server::start();
    let writer = server.writer();
    let place = Place::new(BEFORE);
    place.route("a", 1);
    place.route("b", 1);
    let state = place.path("state");
    let arguments = ["--state", state.to_str().unwrap()];
    let accounts = || {
        let path =
            "/api/v1/namespaces/default/serviceaccounts?labelSelector=run.watchkeeper.dev/reactor%3Dtest";
        writer.send("GET", path, "")["items"].as_array().unwrap().len()
    };
    let mut runner = run(&place, &server, &arguments);
    has(writer, &["more-a", "more-b", "route-a", "route-b"]);
    runner.says("done in");
    runner.says("done in");
    assert_eq!(accounts(), 2);
    runner.kill();
    // One goes while nobody looks: what is left of it goes, too.
    place.remove("b");
    let kept: Vec<&str> =
        BEFORE.lines().filter(|line| !line.contains("more-") && !line.contains("Account")).collect();
    place.reactions(&format!("{}\n", kept.join("\n")));
    let mut runner = run(&place, &server, &[arguments[0], arguments[1], "--once"]);
    let (code, said) = runner.end();
    assert_eq!(code, Some(0), "{said:#?}");
    assert_eq!((children(writer), accounts()), (vec!["route-a".to_owned()], 0), "{said:#?}");
    // Nothing is left to do.
    let mut runner = run(&place, &server, &[arguments[0], arguments[1], "--once"]);
    let (code, said) = runner.end();
    assert_eq!(code, Some(0));
    assert!(said.iter().any(|line| line.contains("done: 0, filtered: 0, failed: 0")), "{said:#?}");
}

#[test]
fn kinds_of_two_groups_may_have_one_name() {
    let server = Server::start();
    let writer = server.writer();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "configmaps.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "configmaps", "singular": "configmap", "kind": "ConfigMap"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    writer.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition.to_string());
    let place = Place::new(
        r#"  - name: maps
    on: routes
    retry: {initial: 50ms, max: 100ms}
    do:
      apply:
        objects:
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: "${name}"}}
        - {apiVersion: example.com/v1, kind: ConfigMap, metadata: {name: "${name}"}}
"#,
    );
    place.route("a", 1);
    let runner = run(&place, &server, &[]);
    runner.says("maps: added a: done in ");
    has(writer, &["a"]);
    let theirs = || writer.try_send("GET", "/apis/example.com/v1/namespaces/default/configmaps", "").unwrap();
    assert_eq!(theirs()["items"].as_array().unwrap().len(), 1);
    place.remove("a");
    runner.says("maps: gone a: done in ");
    has(writer, &[]);
    assert_eq!(theirs()["items"], json!([]));
}

#[test]
fn a_directory_that_is_not_there_prunes_nothing() {
    let server = Server::start();
    let writer = server.writer();
    let place = Place::new(MAPS);
    place.route("a", 1);
    let mut runner = run(&place, &server, &[]);
    has(writer, &["route-a", "size-1-a"]);
    runner.kill();
    std::fs::rename(place.path("routes"), place.path("away")).unwrap();
    let runner = run(&place, &server, &[]);
    assert!(runner.says("routes: missing: ").contains("; trying again in "));
    has(writer, &["route-a", "size-1-a"]);
    std::fs::rename(place.path("away"), place.path("routes")).unwrap();
    runner.says("maps: added a: done in ");
    has(writer, &["route-a", "size-1-a"]);
}

#[test]
fn what_others_made_is_left_alone_unless_it_is_to_be_adopted() {
    let server = Server::start();
    let writer = server.writer();
    writer.create("configmaps", "alice", r#"{"metadata":{"name":"route-a"},"data":{"size":"theirs"}}"#);
    let place = Place::new(MAPS);
    place.route("a", 1);
    let mut runner = run(&place, &server, &[]);
    runner.says(
        "maps: added a: failed: ConfigMap default/route-a is there already and not made by this reaction: choose another name, or set \
         adopt: true; trying again in ",
    );
    let map = writer.send("GET", "/api/v1/namespaces/default/configmaps/route-a", "");
    assert_eq!(map["data"]["size"], "theirs");
    runner.kill();
    place.reactions(&MAPS.replace("apply:\n", "apply:\n        adopt: true\n"));
    let runner = run(&place, &server, &[]);
    runner.says("maps: added a: done in ");
    let map = writer.send("GET", "/api/v1/namespaces/default/configmaps/route-a", "");
    assert_eq!(map["data"]["size"], "1!");
}

#[test]
fn what_the_server_does_not_take_is_said() {
    let server = Server::start();
    let place = Place::new(
        r#"  - name: maps
    on: routes
    retry: {initial: 50ms, max: 100ms}
    do: {apply: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: "No Name"}}]}}
  - name: things
    on: routes
    retry: {initial: 50ms, max: 100ms}
    do: {apply: {objects: [{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}}]}}
"#,
    );
    place.route("a", 1);
    let mut runner = run(&place, &server, &[]);
    runner.says("failed 2 times");
    runner.signal("TERM");
    let said = runner.end().1.join("\n");
    assert!(
        said.contains("things: added a: failed: the kind Thing of example.com/v1 does not exist; trying"),
        "{said}"
    );
    assert!(said.contains("maps: added a: failed: ConfigMap default/No Name is not valid: "), "{said}");
}

#[test]
fn what_others_do_to_children_is_put_right() {
    let server = Server::start();
    let writer = server.writer();
    let place = Place::new(MAPS);
    place.route("a", 1);
    let state = place.path("state");
    let arguments = ["--state", state.to_str().unwrap()];
    let mut runner = run(&place, &server, &arguments);
    runner.says("maps: added a: done in ");
    let size =
        || writer.send("GET", "/api/v1/namespaces/default/configmaps/route-a", "")["data"]["size"].clone();
    writer.patch("configmaps/route-a", "bob", r#"{"data":{"size":"9"}}"#);
    eventually("the size", || size() == "1!");
    writer.delete("configmaps/size-1-a");
    has(writer, &["route-a", "size-1-a"]);
    // What belongs to others in it stays.
    writer.patch("configmaps/route-a", "bob", r#"{"data":{"more":"theirs"}}"#);
    runner.says("maps: a: somebody else has changed what was applied for it");
    runner.kill();
    // What went while nobody looked comes back, too.
    writer.delete("configmaps/route-a");
    writer.delete("configmaps/size-1-a");
    let runner = run(&place, &server, &arguments);
    has(writer, &["route-a", "size-1-a"]);
    runner.says("maps: changed a: done in ");
    // Nothing echoes: what it writes itself is no reason to write again.
    place.route("b", 1);
    runner.says("maps: added b: done in ");
    place.route("c", 1);
    runner.says("maps: added c: done in ");
    let said = runner.said();
    assert_eq!(said.iter().filter(|line| line.contains("somebody else")).count(), 1, "{said:#?}");
}
