//! `watchkeeper watch`, as a person at a terminal or a script sees it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod restarts;
mod server;
mod sources;
mod watcher;

use std::io::{BufRead, BufReader};
use std::process::Command;

use serde_json::Value;
use server::{Server, watchkeeper};
use watcher::{Watcher, without_time};

/// Runs a command that ends by itself: its code, and what it said.
fn run(mut command: Command) -> (Option<i32>, Vec<String>, String) {
    let output = command.output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap().lines().map(without_time).collect();
    (output.status.code(), lines, String::from_utf8(output.stderr).unwrap())
}

fn config_map(name: &str, data: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}"}},"data":{data}}}"#)
}

#[test]
fn a_person_sees_who_changed_which_fields() {
    let server = Server::start();
    let writer = server.writer();
    let watcher = Watcher::ready(server.watch(&["configmaps,secrets,pods"]));
    assert_eq!(watcher.told(), "PRESENT   configmaps default/kube-root-ca.crt");

    writer.create("configmaps", "alice", &config_map("web", r#"{"a":"1"}"#));
    assert_eq!(watcher.told(), "ADDED     configmaps default/web  by alice");
    writer.patch("configmaps/web", "bob", r#"{"data":{"a":"2"}}"#);
    assert_eq!(watcher.told(), r#"MODIFIED  configmaps default/web  by bob  data.a: "1" -> "2""#);
    writer.patch(
        "configmaps/web",
        "bob",
        r#"{"data":{"a":null,"b":"x"},"metadata":{"labels":{"app.io/tier":"front"}}}"#,
    );
    assert_eq!(watcher.told(), "MODIFIED  configmaps default/web  by bob");
    assert_eq!(watcher.told(), r#"- data.a: "2""#);
    assert_eq!(watcher.told(), "+ data.b: x");
    assert_eq!(watcher.told(), r#"+ metadata.labels["app.io/tier"]: front"#);
    writer.delete("configmaps/web");
    assert_eq!(watcher.told(), "DELETED   configmaps default/web");

    let pod = r#"{"metadata":{"name":"p"},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"web","image":"web:1"}]}}"#;
    writer.create("pods", "alice", pod);
    assert_eq!(watcher.told(), "ADDED     pods default/p  by alice");
    writer.patch("pods/p", "bob", r#"{"spec":{"containers":[{"name":"web","image":"web:2"}]}}"#);
    let told = watcher.told();
    assert!(told.contains("spec.containers[name=web].image: web:1 -> web:2"), "{told}");
    let ready = |status: &str, time: &str| {
        format!(
            r#"{{"status":{{"conditions":[{{"type":"Ready","status":"{status}","lastTransitionTime":"{time}"}}]}}}}"#
        )
    };
    writer.patch("pods/p/status", "kubelet", &ready("False", "2020-01-01T00:00:00Z"));
    let told = watcher.told();
    assert!(
        told.starts_with("MODIFIED  pods default/p  by kubelet  + status.conditions[type=Ready]: {"),
        "{told}"
    );
    // Only a time: not worth a line. The next change is.
    writer.patch("pods/p/status", "kubelet", &ready("False", "2021-01-01T00:00:00Z"));
    writer.patch("pods/p/status", "kubelet", &ready("True", "2022-01-01T00:00:00Z"));
    assert_eq!(
        watcher.told(),
        "MODIFIED  pods default/p  by kubelet  status.conditions[type=Ready].status: False -> True"
    );

    watcher.signal("INT");
    let (code, rest, notes) = watcher.end();
    assert_eq!((code, rest.len()), (Some(0), 0));
    assert!(notes[0].starts_with("-- 8 changes of 2 objects in "), "{notes:?}");
    assert!(notes[0].ends_with("; 1 more in fields that are not shown"), "{notes:?}");
}

#[test]
fn what_is_in_a_secret_is_never_shown() {
    let server = Server::start();
    let writer = server.writer();
    let secret = |value: &str| {
        let applied = format!(r#"{{\"data\":{{\"k\":\"{value}\"}}}}"#);
        format!(
            r#"{{"metadata":{{"name":"s","annotations":{{"kubectl.kubernetes.io/last-applied-configuration":"{applied}"}}}},"data":{{"k":"{value}"}}}}"#
        )
    };
    writer.create("secrets", "alice", &secret("c3dvcmRmaXNo"));
    let plain = Watcher::ready(server.watch(&["secrets", "--no-initial"]));
    let everything =
        Watcher::ready(server.watch(&["secrets", "--all-fields", "--initial", "--fields", "data,metadata"]));
    let json = Watcher::ready(server.watch(&["secrets", "-o", "json", "--objects", "--all-fields"]));
    writer.patch("secrets/s", "bob", &secret("c3dvcmRmaXNoIQ=="));
    writer.delete("secrets/s");
    assert_eq!(plain.told(), "MODIFIED  default/s  by bob  data.k: (9 bytes) -> (10 bytes) changed");
    assert_eq!(plain.told(), "DELETED   default/s");
    let mut said = String::new();
    for watcher in [everything, json] {
        loop {
            let line = watcher.line();
            said.push_str(&line);
            if line.contains("DELETED") {
                break;
            }
        }
    }
    assert!(said.contains("PRESENT") && said.contains("(10 bytes)"), "{said}");
    for secret in ["swordfish", "c3dvcmRmaXNo"] {
        assert!(!said.contains(secret), "{said}");
    }
}

#[test]
fn what_would_not_be_seen_or_would_turn_text_around_is_written_out() {
    let server = Server::start();
    let writer = server.writer();
    let watcher = Watcher::ready(server.watch(&["configmaps,events", "--no-initial"]));
    let json =
        Watcher::ready(server.watch(&["configmaps,events", "--no-initial", "-o", "json", "--objects"]));
    // Right to left, zero width, a mark, a tag, a separator of lines; and what a terminal obeys.
    let hidden = "a\u{202e}b\u{200b}c\u{61c}d\u{e0041}e\u{2028}f\u{2066}g\u{feff}h\u{9b}i";
    let shown = r"a\u202eb\u200bc\u061cd\udb40\udc41e\u2028f\u2066g\ufeffh";
    writer.create("configmaps", "alice", &config_map("c", r#"{"k":"x"}"#));
    assert_eq!(watcher.told(), "ADDED     configmaps default/c  by alice");
    writer.patch("configmaps/c", "bob", &format!(r#"{{"data":{{"k":"{hidden}"}}}}"#));
    let patched = format!("MODIFIED  configmaps default/c  by bob  data.k: x -> \"{shown}\\u009bi\"");
    assert_eq!(watcher.told(), patched);
    let event =
        r#"{"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","namespace":"default","name":"p"}"#;
    let event = format!(r#"{event},"reason":"R","type":"Normal","message":"{hidden}"}}"#);
    writer.create("events", "carol", &event);
    let told = format!("ADDED     events default/e  by carol  Normal R Pod/p: {shown} i");
    assert_eq!(watcher.told(), told);
    for _ in 0..3 {
        let line = json.line();
        assert!(line.is_ascii(), "{line}");
        let change: Value = serde_json::from_str(&line).unwrap();
        if change["kind"] == "Event" {
            assert_eq!(change["object"]["message"], hidden, "the same JSON");
        }
    }
}

#[test]
fn few_objects_are_listed_and_many_are_counted() {
    let server = Server::start();
    let writer = server.writer();
    for at in 0..25 {
        writer.create("configmaps", "alice", &config_map(&format!("c{at:02}"), "{}"));
    }
    let listed = |arguments: &[&str]| {
        let watcher = Watcher::start(server.watch(arguments));
        let note = watcher.note("-- watching ");
        watcher.signal("INT");
        let (code, lines, _) = watcher.end();
        assert_eq!(code, Some(0));
        (lines.len(), note)
    };
    let there = "-- watching configmaps (26 there) in namespace default".to_owned();
    assert_eq!(listed(&["cm"]), (0, there.clone()));
    assert_eq!(listed(&["cm", "--initial"]), (26, there.clone()));
    assert_eq!(listed(&["cm", "-o", "json"]), (26, there.clone()));
    assert_eq!(listed(&["cm", "-o", "json", "--no-initial"]), (0, there));
    let two = "-- watching configmaps/c01, configmaps/c02 in namespace default".to_owned();
    assert_eq!(listed(&["cm", "c01", "c02"]), (2, two));
    assert_eq!(
        listed(&["configmap/c03", "ns/default"]),
        (2, "-- watching configmaps/c03, namespaces/default".to_owned())
    );
    assert_eq!(
        listed(&["cm/nowhere"]),
        (0, "-- watching configmaps/nowhere (not there yet) in namespace default".to_owned())
    );
    assert_eq!(
        listed(&["ConfigMap.v1", "-n", "kube-system", "-l", "a=b"]),
        (0, "-- watching configmaps (0 there) in namespace kube-system".to_owned())
    );
    assert_eq!(listed(&["namespaces"]).0, 4);
}

#[test]
fn only_the_fields_that_were_asked_for_are_shown() {
    let server = Server::start();
    let writer = server.writer();
    writer.create("configmaps", "alice", &config_map("c", r#"{"a":"1","b":"1"}"#));
    let watcher =
        Watcher::ready(server.watch(&["cm/c", "--fields", "data.b,metadata.labels", "--until", "2"]));
    assert_eq!(watcher.told(), r#"PRESENT   default/c  + data.b: "1""#);
    writer.patch("configmaps/c", "bob", r#"{"data":{"a":"2"}}"#);
    writer.patch("configmaps/c", "bob", r#"{"data":{"a":"3","b":"3"}}"#);
    writer.patch("configmaps/c", "eve", r#"{"metadata":{"labels":{"x":"y"}}}"#);
    assert_eq!(watcher.told(), r#"MODIFIED  default/c  by bob  data.b: "1" -> "3""#);
    assert_eq!(watcher.told(), "MODIFIED  default/c  by eve  + metadata.labels.x: y");
    let (code, rest, notes) = watcher.end();
    assert_eq!((code, rest.len()), (Some(0), 0));
    assert!(notes[0].ends_with("; 1 more in fields that are not shown"), "{notes:?}");
}

#[test]
fn programs_get_a_json_object_a_line() {
    let server = Server::start();
    let writer = server.writer();
    let watcher = Watcher::ready(server.watch(&["cm", "-A", "-o", "json", "--objects", "--no-initial"]));
    writer.create("configmaps", "alice", &config_map("c", r#"{"a":"1"}"#));
    let changed = writer.patch("configmaps/c", "bob", r#"{"data":{"a":"2","b":"3"}}"#);
    let added: Value = serde_json::from_str(&watcher.line()).unwrap();
    assert_eq!(
        (&added["type"], &added["manager"], &added["changes"]),
        (&"ADDED".into(), &"alice".into(), &Value::Array(Vec::new()))
    );
    let mut line: Value = serde_json::from_str(&watcher.line()).unwrap();
    let time = line.as_object_mut().unwrap().remove("time").unwrap();
    assert!(time.as_str().unwrap().ends_with('Z') && time.as_str().unwrap().len() == 24, "{time}");
    let object = line.as_object_mut().unwrap().remove("object").unwrap();
    assert_eq!(object["data"], changed["data"]);
    assert!(object["metadata"]["managedFields"].is_null());
    assert_eq!(
        line,
        serde_json::json!({
            "type": "MODIFIED", "apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "c", "manager": "bob",
            "resourceVersion": changed["metadata"]["resourceVersion"],
            "changes": [{"path": "data.a", "from": "1", "to": "2"}, {"path": "data.b", "to": "3"}],
        })
    );
}

#[test]
fn colours_are_for_those_who_want_them() {
    let server = Server::start();
    let coloured = |arguments: &[&str]| {
        Watcher::start(server.watch(&[&["cm"], arguments].concat())).line().contains('\x1b')
    };
    assert!(!coloured(&[]));
    assert!(!coloured(&["--color", "never"]));
    assert!(coloured(&["--color", "always"]));
}

#[test]
fn it_ends_without_a_word_when_nobody_reads_any_more() {
    let server = Server::start();
    let mut child = server.watch(&["cm", "--initial"]).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    assert!(first.contains("PRESENT"), "{first}");
    drop(reader);
    let output = child.wait_with_output().unwrap();
    let notes = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(notes.lines().all(|line| line.starts_with("-- watching")), "{notes}");
}

#[test]
fn a_server_that_has_lost_its_history_is_compared_with_what_was_known() {
    let mut server = Server::start();
    let writer = server.writer();
    writer.create("configmaps", "alice", &config_map("c", r#"{"a":"1"}"#));
    let watcher = Watcher::ready(server.watch(&["cm/c"]));
    assert_eq!(watcher.told(), "PRESENT   default/c");
    server.end("TERM");
    for file in std::fs::read_dir(server.path("data")).unwrap() {
        let file = file.unwrap().path();
        if file.is_file() {
            std::fs::remove_file(file).unwrap();
        }
    }
    server.again();
    assert_eq!(watcher.told(), "DELETED   default/c");
    watcher.note("-- the server no longer has all changes of configmaps/c in namespace default: comparing");
    watcher.note("-- connected again, configmaps/c in namespace default compared: 1 difference");
    writer.create("configmaps", "alice", &config_map("c", r#"{"a":"1"}"#));
    assert_eq!(watcher.told(), "ADDED     default/c  by alice");
}

#[test]
fn what_cannot_be_is_one_line_with_a_hint() {
    let server = Server::start();
    let kubeconfig = std::fs::read_to_string(server.path("kubeconfig")).unwrap();
    let file = |name: &str, change: &dyn Fn(&str) -> String| {
        // Without the certificate of the administrator, who may do everything.
        let lines = kubeconfig.lines().filter(|line| !line.trim_start().starts_with("client-"));
        std::fs::write(server.path(name), lines.map(change).collect::<Vec<_>>().join("\n")).unwrap();
        server.path(name).to_str().unwrap().to_owned()
    };
    let begins = |line: &str, with: &str, other: &str| {
        let indent = line.len() - line.trim_start().len();
        if line.trim_start().starts_with(with) {
            format!("{}{with} {other}", &line[..indent])
        } else {
            line.to_owned()
        }
    };
    let weak = file("weak", &|line| begins(line, "token:", "weak"));
    let stranger = file("stranger", &|line| begins(line, "token:", "stranger"));
    let nobody = file("nobody", &|line| begins(line, "server:", "https://127.0.0.1:1"));
    for (arguments, code, expected) in [
        (&["pdos"][..], 2, "the server has no kind \"pdos\"; did you mean pods?"),
        (&["bindings"], 2, "bindings cannot be watched: the server offers only create"),
        (&["pods/a/b"], 2, "\"pods/a/b\" is not of the form KIND/NAME"),
        (&["pods", "-l", "a in ("], 2, "pods in namespace default cannot be watched so: 400 BadRequest: "),
        (&["pods", "--context", "other"], 2, "there is no context \"other\" in the kubeconfig: it has "),
        (&["pods", "--kubeconfig", "/nowhere"], 2, "kubeconfig /nowhere: No such file or directory"),
        (&["pods", "--objects"], 2, "--objects needs -o json"),
        (&["pods", "--fields", "a..b"], 2, "invalid value 'a..b' for '--fields <PATHS>': "),
        (&["pods", "--until", "0"], 2, "invalid value '0' for '--until <COUNT>': "),
        (&[], 2, "the following required arguments were not provided: <KIND>...; --help tells more"),
        (&["pods", "--until", "1", "--timeout", "300ms", "-q"], 1, "0 of 1 changes came within 300 ms"),
        (
            &["pods", "--kubeconfig", &weak],
            1,
            "not allowed to list and watch pods in namespace default: 403 Forbidden: pods is forbidden: User \"reader\" cannot ",
        ),
        (
            &["all", "-q", "--kubeconfig", &weak],
            1,
            "not allowed to list and watch anything of what was asked for in namespace default",
        ),
        (&["pods", "--kubeconfig", &stranger], 1, "https://127.0.0.1:"),
        (&["pods", "--kubeconfig", &nobody], 1, "cannot reach https://127.0.0.1:1: Connection refused"),
    ] {
        let (got, lines, error) = run(server.watch(arguments));
        assert_eq!((got, lines.len()), (Some(code), 0), "{arguments:?}: {error}");
        assert!(error.starts_with(&format!("watchkeeper: {expected}")), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }

    let mut homeless = watchkeeper();
    homeless
        .args(["watch", "pods"])
        .env("HOME", server.path("nowhere"))
        .env_remove("KUBERNETES_SERVICE_HOST");
    let (code, _, error) = run(homeless);
    assert_eq!(code, Some(2));
    for place in ["--kubeconfig", "$KUBECONFIG", "~/.kube/config", "pod", "`watchkeeper up`"] {
        assert!(error.contains(place), "{error}");
    }
}

#[test]
fn help_has_examples_and_exit_codes_everywhere() {
    for command in ["serve", "watch", "envtest", "completion", "version"] {
        let mut help = watchkeeper();
        help.args([command, "--help"]);
        let (code, lines, _) = run(help);
        assert_eq!(code, Some(0));
        for heading in ["Examples:", "Exit codes:"] {
            assert!(lines.iter().any(|line| line == heading), "{command}: {lines:?}");
        }
    }
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let mut completion = watchkeeper();
        completion.args(["completion", shell]);
        let (code, lines, _) = run(completion);
        assert_eq!(code, Some(0));
        assert!(lines.iter().any(|line| line.contains("field-selector")), "{shell}");
    }
    let mut version = watchkeeper();
    version.args(["version", "-o", "json"]);
    let (_, lines, _) = run(version);
    let version: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
}
