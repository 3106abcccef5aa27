//! `serve --read-only`: what a kube-apiserver keeps is looked at.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use watchkeeper_etcd::testing::Server as Etcd;
use watchkeeper_etcd::{Delete, Keys, Put};
use watchkeeper_kinds::protobuf;

use crate::world::{LONG, MAPS, Server, config_map, directory, etcd, free_address};

fn put(etcd: &Etcd, pairs: Vec<(String, Vec<u8>)>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = etcd.builder().build().unwrap();
        for (key, value) in pairs {
            match value.is_empty() {
                true => client.delete(&Delete::of(Keys::one(key))).await.map(drop).unwrap(),
                false => client.put(&Put::new(key, value)).await.map(drop).unwrap(),
            }
        }
    });
}

fn map(name: &str, text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", "uid": "u"}, "data": {"text": text}})
}

/// What a kube-apiserver writes: built-in kinds in protobuf, definitions and their objects in JSON, and some of it encrypted.
fn fill(etcd: &Etcd) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com", "uid": "d"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}],
        },
        "status": {
            "acceptedNames": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "conditions": [
                {"type": "NamesAccepted", "status": "True", "reason": "a", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
                {"type": "Established", "status": "True", "reason": "a", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            ],
            "storedVersions": ["v1"],
        },
    });
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default", "uid": "w"}, "spec": {"n": 3}});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "uid": "n"}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "uid": "s"}, "status": {"phase": "Active"}});
    let protobuf = |object: &Value| protobuf::encode(object).unwrap();
    put(
        etcd,
        vec![
            ("/registry/configmaps/default/a".into(), protobuf(&map("a", "one"))),
            ("/registry/minions/node-1".into(), protobuf(&node)),
            ("/registry/namespaces/default".into(), protobuf(&namespace)),
            (
                "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com".into(),
                definition.to_string().into_bytes(),
            ),
            ("/registry/example.com/widgets/default/w".into(), widget.to_string().into_bytes()),
            ("/registry/secrets/default/s".into(), b"k8s:enc:aescbc:v1:key1:\x01\x02".to_vec()),
            ("/registry/masterleases/10.0.0.1".into(), b"k8s\0...".to_vec()),
            ("compact_rev_key".into(), b"1".to_vec()),
        ],
    );
}

fn check(server: &Server) {
    let (code, read) = server.ask("GET", &format!("{MAPS}/a"), None);
    assert_eq!((code, &read["data"]["text"]), (200, &json!("one")), "{read}");
    assert_eq!(server.ask("GET", "/api/v1/nodes/node-1", None).0, 200);
    let (code, widget) = server.ask("GET", "/apis/example.com/v1/namespaces/default/widgets/w", None);
    assert_eq!((code, &widget["spec"]["n"]), (200, &json!(3)), "{widget}");
    assert_eq!(server.ask("GET", "/api/v1/secrets", None).1["items"], json!([]), "it is encrypted");
    assert_eq!(server.ask("GET", "/api/v1/namespaces", None).1["items"].as_array().unwrap().len(), 1);
    let requests = [
        ("POST", MAPS.to_owned(), Some(config_map("b"))),
        ("PUT", format!("{MAPS}/a"), Some(map("a", "two"))),
        ("DELETE", format!("{MAPS}/a"), None),
        ("DELETE", MAPS.to_owned(), None),
    ];
    for (method, path, body) in requests {
        let (code, refused) = server.ask(method, &path, body.as_ref());
        assert_eq!(code, 405, "{refused}");
        assert!(refused["message"].as_str().unwrap().contains("read-only"), "{refused}");
    }
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(server.ask("POST", path, Some(&review)).0, 201, "a question changes nothing");
    assert_eq!(server.ask("GET", "/readyz", None).0, 200);
}

fn keys(etcd: &Etcd) -> Vec<watchkeeper_etcd::KeyValue> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = etcd.builder().build().unwrap();
    runtime.block_on(client.range(&watchkeeper_etcd::Range::of(Keys::prefix("")))).unwrap().kvs
}

#[test]
fn the_etcd_of_a_kube_apiserver_is_shown_and_followed_and_not_touched() {
    let Some(etcd) = etcd() else { return };
    let directory = directory();
    fill(&etcd);
    let before = keys(&etcd);
    let endpoint = etcd.endpoint();
    let arguments = ["--read-only", "--storage", "kube-apiserver", "--etcd-endpoints", &endpoint];
    let mut server = Server::in_memory(directory.path(), &arguments);
    check(&server);
    assert_eq!(keys(&etcd), before);
    // What changes there is seen here.
    put(
        &etcd,
        vec![
            ("/registry/configmaps/default/a".into(), protobuf::encode(&map("a", "two")).unwrap()),
            ("/registry/configmaps/default/c".into(), map("c", "new").to_string().into_bytes()),
        ],
    );
    assert_eq!(server.ask("GET", &format!("{MAPS}/a"), None).1["data"]["text"], "two");
    assert_eq!(server.ask("GET", &format!("{MAPS}/c"), None).1["data"]["text"], "new");
    put(&etcd, vec![("/registry/configmaps/default/c".into(), Vec::new())]);
    assert_eq!(server.ask("GET", &format!("{MAPS}/c"), None).0, 404);
    server.terminate();
}

#[test]
fn what_a_kube_apiserver_keeps_is_exported_as_this_server_keeps_it_and_never_as_it_is() {
    let Some(etcd) = etcd() else { return };
    let directory = directory();
    fill(&etcd);
    let from = format!("{}/registry", etcd.endpoint());
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
        let output = command.arg("storage").args(arguments).current_dir(directory.path()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, _, error) = run(&["export", &from, "refused.wk"]);
    assert!(code == Some(2) && error.contains("--kube-apiserver"), "{code:?} {error}");
    assert!(!directory.path().join("refused.wk").exists());
    let (code, said, error) = run(&["export", "--kube-apiserver", &from, "cluster.wk"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(said.starts_with("exported 5 keys"), "{said}");
    assert!(error.contains("1 objects are left out: secrets: encrypted by aescbc:v1:key1"), "{error}");
    assert_eq!(run(&["import", "cluster.wk", "data"]).0, Some(0));
    let server = Server::with(directory.path(), free_address(), &[]);
    let (code, read) = server.ask("GET", &format!("{MAPS}/a"), None);
    assert_eq!((code, &read["data"]["text"]), (200, &json!("one")), "{read}");
    let (code, widget) = server.ask("GET", "/apis/example.com/v1/namespaces/default/widgets/w", None);
    assert_eq!((code, &widget["spec"]["n"]), (200, &json!(3)), "{widget}");
    assert_eq!(server.ask("PUT", &format!("{MAPS}/a"), Some(&map("a", "two"))).0, 200, "it is its own now");
}

#[test]
fn a_snapshot_of_the_etcd_of_a_kube_apiserver_is_shown_without_etcd() {
    let Some(etcd) = etcd() else { return };
    let directory = directory();
    fill(&etcd);
    let last = keys(&etcd).iter().map(|pair| pair.mod_revision).max().unwrap();
    let file = directory.path().join("snapshot.db");
    // The database is written now and then.
    let begin = Instant::now();
    loop {
        std::fs::copy(etcd.data().join("member/snap/db"), &file).unwrap();
        if watchkeeper_etcd::SnapshotFile::read(&file).is_ok_and(|read| read.revision >= last) {
            break;
        }
        assert!(begin.elapsed() < LONG, "it is never written");
        thread::sleep(Duration::from_millis(50));
    }
    etcd.kill();
    let file = file.to_str().unwrap();
    let arguments = ["--read-only", "--storage", "kube-apiserver", "--etcd-snapshot", file];
    check(&Server::in_memory(directory.path(), &arguments));
}

#[test]
fn what_a_running_server_keeps_is_shown_by_another_one() {
    let directory = directory();
    let server = Server::with(directory.path(), free_address(), &[]);
    assert_eq!(server.ask("POST", MAPS, Some(&config_map("a"))).0, 201);
    let other = Server::with(directory.path(), free_address(), &["--read-only"]);
    assert_eq!(other.ask("GET", &format!("{MAPS}/a"), None).0, 200);
    assert_eq!(other.ask("DELETE", &format!("{MAPS}/a"), None).0, 405);
}

#[test]
fn what_others_keep_is_not_served_to_be_written() {
    let run = |directory: &Path, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
        let output = command.arg("serve").args(arguments).current_dir(directory).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let directory = directory();
    for (arguments, text) in [
        (&["--storage", "kube-apiserver", "--etcd-endpoints", "http://127.0.0.1:1"][..], "add --read-only"),
        (&["--storage", "kube-apiserver", "--read-only"], "--etcd-endpoints or --etcd-snapshot"),
        (&["--in-memory", "--etcd-snapshot", "a"], "--storage kube-apiserver"),
        (&["--storage", "kube-apiserver", "--read-only", "--etcd-snapshot", "tokens.csv"], "too short"),
    ] {
        let (code, error) = run(directory.path(), arguments);
        assert!(error.contains(text) && code == Some(2), "{arguments:?}: {code:?} {error}");
    }
}
