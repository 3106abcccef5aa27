//! `watchkeeper storage`: what servers keep is backed up, restored and moved.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use serde_json::{Value, json};

use crate::world::{MAPS, Server, config_map, directory, etcd, free_address};

const CLAIMED: &str = "/api/v1/namespaces/default/services";

fn storage(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    command.arg("storage").args(arguments).current_dir(directory).output().unwrap()
}

/// What a command says that does its work.
fn said(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(error, "", "progress is for terminals");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What a command says that refuses.
fn refused(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8(output.stderr.clone()).unwrap())
}

/// All objects of a server, without those that say when it was started and where.
fn objects(server: &Server) -> Vec<Value> {
    let mut all = Vec::new();
    for path in ["/api/v1/configmaps", "/api/v1/services", "/api/v1/namespaces", "/api/v1/serviceaccounts"] {
        let (code, list) = server.ask("GET", path, None);
        assert_eq!(code, 200);
        let of_the_server = |object: &&Value| {
            ["kubernetes", "extension-apiserver-authentication"]
                .map(Value::from)
                .contains(&object["metadata"]["name"])
        };
        all.extend(list["items"].as_array().unwrap().iter().filter(|object| !of_the_server(object)).cloned());
    }
    all
}

fn without_versions(mut objects: Vec<Value>) -> Vec<Value> {
    for object in &mut objects {
        object["metadata"]["resourceVersion"] = Value::Null;
    }
    objects
}

/// Takes certificates and tokens over from the data directory that was there before.
fn copy_credentials(directory: &Path, from: &str) {
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(directory.join(from).join("credentials")).arg(directory.join("data"));
    assert!(copy.status().unwrap().success());
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": "NodePort", "ports": [{"port": 80}]},
    })
}

#[test]
fn a_backup_of_a_running_server_holds_all_that_was_acknowledged_and_can_be_served() {
    let directory = directory();
    let mut server = Server::with(directory.path(), free_address(), &[]);
    let (done, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    let before = thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if done.load(SeqCst) {
                    return;
                }
                assert_eq!(server.ask("POST", MAPS, Some(&config_map(&format!("m-{number}")))).0, 201);
                written.fetch_add(1, SeqCst);
            }
        });
        while written.load(SeqCst) < 20 {
            thread::yield_now();
        }
        let before = written.load(SeqCst);
        let text = said(&storage(directory.path(), &["export", "data", "backup.wk"]));
        assert!(text.starts_with("exported "), "{text}");
        done.store(true, SeqCst);
        before
    });
    server.terminate();
    let text = said(&storage(directory.path(), &["check", "backup.wk"]));
    assert!(text.starts_with("backup.wk is complete: "), "{text}");
    let text = said(&storage(directory.path(), &["import", "backup.wk", "restored"]));
    assert!(text.contains("versions are kept"), "{text}");
    let taken = refused(&storage(directory.path(), &["import", "backup.wk", "restored"]));
    assert_eq!(taken.0, Some(2));
    assert!(taken.1.contains("holds a storage already"), "{}", taken.1);
    let taken = refused(&storage(directory.path(), &["export", "data", "backup.wk"]));
    assert!(taken.1.contains("is there already"), "{}", taken.1);

    // In the place of the lost one, with the same certificates and tokens.
    std::fs::rename(directory.path().join("data"), directory.path().join("lost")).unwrap();
    std::fs::rename(directory.path().join("restored"), directory.path().join("data")).unwrap();
    copy_credentials(directory.path(), "lost");
    let server = Server::with(directory.path(), free_address(), &[]);
    let (_, list) = server.ask("GET", MAPS, None);
    let names: Vec<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect();
    for number in 0..before {
        assert!(names.contains(&format!("m-{number}").as_str()), "m-{number} was acknowledged before");
    }
}

#[test]
fn a_server_moves_to_etcd_and_back_and_all_its_objects_with_it() {
    let Some(etcd) = etcd() else { return };
    let directory = directory();
    let mut server = Server::with(directory.path(), free_address(), &[]);
    for number in 0..5 {
        assert_eq!(server.ask("POST", MAPS, Some(&config_map(&format!("m-{number}")))).0, 201);
        assert_eq!(server.ask("POST", CLAIMED, Some(&service(&format!("s-{number}")))).0, 201);
    }
    let had = objects(&server);
    server.terminate();
    let endpoint = etcd.endpoint();
    let text = said(&storage(directory.path(), &["copy", "data", &endpoint]));
    assert!(text.contains("versions are etcd's now"), "{text}");
    let mut shared = Server::start(directory.path(), &endpoint, free_address());
    assert!(without_versions(objects(&shared)) == without_versions(had), "all of them, as they were");
    // Addresses that were given away before are not given away again, and one that is given back is.
    let (code, made) = shared.ask("POST", CLAIMED, Some(&service("s-new")));
    assert_eq!(code, 201, "{made}");
    let all = objects(&shared);
    let addresses: Vec<_> = all.iter().filter_map(|object| object["spec"]["clusterIP"].as_str()).collect();
    assert_eq!(addresses.len(), addresses.iter().collect::<std::collections::BTreeSet<_>>().len());
    let running = refused(&storage(directory.path(), &["copy", "data", &endpoint]));
    assert_eq!(running.0, Some(2), "{}", running.1);
    let has = objects(&shared);
    shared.terminate();

    said(&storage(directory.path(), &["copy", &endpoint, "back"]));
    std::fs::rename(directory.path().join("data"), directory.path().join("old")).unwrap();
    std::fs::rename(directory.path().join("back"), directory.path().join("data")).unwrap();
    copy_credentials(directory.path(), "old");
    let back = Server::with(directory.path(), free_address(), &[]);
    assert!(objects(&back) == has, "with their versions");
}

#[test]
fn places_that_are_none_are_named() {
    let directory = directory();
    for (arguments, code, text) in [
        (&["export", "nowhere", "file"][..], 1, "nowhere"),
        (&["export", ".", "file"], 1, "no server keeps its objects there"),
        (&["import", "tokens.csv", "data"], 1, "it does not begin as a file of this kind does"),
        (&["export", "http://127.0.0.1:1", "file"], 1, "cannot be reached"),
        (&["copy", "ftp://a", "b"], 2, "http and https are"),
    ] {
        let (exit, error) = refused(&storage(directory.path(), arguments));
        assert!(error.contains(text) && exit == Some(code), "{arguments:?}: {exit:?} {error}");
    }
}
