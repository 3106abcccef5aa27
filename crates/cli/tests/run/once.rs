//! `--once`, `--dry-run`, `--check`, and what else can be said on the command line.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use super::place::{Place, ended};
use super::server::watchkeeper;

const LOG: &str = r#"  - {name: log, on: routes, do: {shell: 'echo "$WATCHKEEPER_EVENT $WATCHKEEPER_NAME" >> log'}}
"#;

#[test]
fn once_does_what_is_to_be_done_and_ends() {
    let place = Place::new(LOG);
    place.route("a", 1);
    place.route("b", 1);
    let (code, out, said) = ended(place.command(&["--once"]));
    assert_eq!((code, out.as_str()), (Some(0), ""), "{said}");
    assert!(said.contains("done: 2, filtered: 0, failed: 0, not understood: 0"), "{said}");
    place.has("log", &["added a", "added b"]);
}

#[test]
fn once_says_by_its_code_whether_all_was_done() {
    let failing = "  - {name: picky, on: routes, do: {shell: '[ $WATCHKEEPER_NAME = a ]'}}\n";
    let place = Place::new(failing);
    place.route("a", 1);
    place.route("b", 1);
    let (code, _, said) = ended(place.command(&["--once"]));
    assert_eq!(code, Some(1));
    assert!(said.ends_with("watchkeeper: failed: 1 of 2\n"), "{said}");
    assert!(
        said.contains("picky: added b: failed: exit code 1; not tried again before it changes"),
        "{said}"
    );

    // As often as the reaction allows.
    place.reactions(
        "  - {name: picky, on: routes, retry: {initial: 10ms, max: 10ms, attempts: 3}, do: {shell: 'echo x >> tries; [ $WATCHKEEPER_NAME = a ]'}}\n",
    );
    assert_eq!(ended(place.command(&["--once"])).0, Some(1));
    place.has("tries", &["x"; 4]);

    place.reactions(LOG);
    place.write("routes/c.yaml", "apiVersion: example.com/v1\nkind: Route\nmetadata: {name: [}\n");
    let (code, _, said) = ended(place.command(&["--once"]));
    assert_eq!(code, Some(1));
    assert!(said.contains("WARN routes: ") && said.contains("routes/c.yaml:3:"), "{said}");
    assert!(said.ends_with("watchkeeper: not understood: 1\n"), "{said}");
    place.has("log", &["added a", "added b"]);

    std::fs::remove_dir_all(place.path("routes")).unwrap();
    let (code, _, said) = ended(place.command(&["--once"]));
    assert_eq!(code, Some(1));
    assert!(said.contains("watchkeeper: routes: missing: "), "{said}");
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let place = Place::new(
        r#"  - {name: log, on: routes, do: {command: [touch, "${name}-word"]}}
  - {name: sh, on: routes, filter: [{path: .spec.size, equals: 2}], do: {shell: touch made}}
  - {name: send, on: routes, do: {post: {url: "https://host.invalid/x?query=word"}}}
"#,
    );
    place.route("a", 1);
    place.route("b", 2);
    let state = place.path("state");
    let (code, _, said) = ended(place.command(&["--once", "--dry-run", "--state", state.to_str().unwrap()]));
    assert_eq!(code, Some(0), "{said}");
    for line in [
        "log: added a: would run touch",
        "log: added b: would run touch",
        "sh: added b: would run the shell command",
        "send: added a: would POST to https://host.invalid/x",
        "done: 5, filtered: 1, failed: 0",
    ] {
        assert!(said.contains(line), "{line} in {said}");
    }
    assert!(!said.contains("sh: added a") && !said.contains("query") && !said.contains("a-word"), "{said}");
    assert!(!state.exists() && !place.path("a-word").exists() && !place.path("made").exists());
}

#[test]
fn a_file_is_checked_alone() {
    let place = Place::new(LOG);
    std::fs::remove_dir_all(place.path("routes")).unwrap();
    let file = place.path("reactor.yaml");
    let (code, out, said) = ended(place.command(&["--check"]));
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(out, format!("{}: no mistakes; sources: 1, reactions: 1\n", file.display()));

    place.reactions("  - {name: log, on: rotes, do: {shell: x}, timeout: 5}\n");
    for arguments in [&["--check"][..], &[]] {
        let (code, out, said) = ended(place.command(arguments));
        assert_eq!((code, out.as_str()), (Some(2), ""));
        let file = file.display();
        assert_eq!(
            said,
            format!(
                "watchkeeper: {file}:10:17: spec.reactions[0].on: there is no source \"rotes\"; did you mean routes?\n\
                 {file}:10:44: spec.reactions[0].timeout: has to be a duration such as 90s, 5m or 1h30m\n"
            )
        );
    }
    let mut nowhere = watchkeeper();
    nowhere.args(["run", "-f", "/nonexistent/reactor.yaml"]);
    let (code, _, said) = ended(nowhere);
    assert_eq!(
        (code, said.as_str()),
        (Some(2), "watchkeeper: /nonexistent/reactor.yaml: No such file or directory (os error 2)\n")
    );
}

#[test]
fn a_file_may_come_from_stdin() {
    let place = Place::new(LOG);
    let mut command = watchkeeper();
    command.args(["run", "-f", "-", "--check"]).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let text = std::fs::read(place.path("reactor.yaml")).unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "stdin: no mistakes; sources: 1, reactions: 1\n");
}

#[test]
fn metrics_are_served() {
    let place = Place::new(LOG);
    place.route("a", 1);
    let runner = place.run(&["--metrics", "127.0.0.1:0"]);
    let line = runner.says("metrics on http://");
    let address = line.rsplit_once("http://").unwrap().1.strip_suffix("/metrics").unwrap().to_owned();
    runner.says("log: added a: done in ");
    let get = |path: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let metrics = get("/metrics");
    for line in [
        r#"watchkeeper_run_reactions_total{reaction="log",outcome="done"} 1"#,
        r#"watchkeeper_run_reaction_duration_seconds_count{reaction="log"} 1"#,
        r#"workqueue_adds_total{name="log",controller="log"} 1"#,
        r#"watchkeeper_informer_objects{informer="routes"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    assert!(get("/healthz").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_reactor_that_needs_a_cluster_says_so() {
    let place = Place::new(
        "  - {name: a, on: routes, do: {apply: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}}\n",
    );
    let mut command = place.command(&[]);
    command.env("HOME", place.path("")).env_remove("KUBERNETES_SERVICE_HOST");
    let (code, _, said) = ended(command);
    assert_eq!(code, Some(2));
    assert!(said.contains("cannot find out which cluster to talk to"), "{said}");
}
