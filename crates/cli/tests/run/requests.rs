//! Reactions that are requests.

use std::time::Duration;

use serde_json::json;

use super::hook::{Answer, Hook};
use super::place::Place;

fn posting(url: &str, more: &str) -> Place {
    Place::new(&format!(
        "  - name: send\n    on: routes\n    retry: {{initial: 50ms, max: 200ms}}\n    timeout: 500ms\n    do:\n      post:\n        url: {url}\n{more}"
    ))
}

#[test]
fn the_change_is_sent_with_headers_from_files_and_variables() {
    let hook = Hook::start(&[Answer::Head("500 No")]);
    let headers = r#"        headers:
        - {name: X-Plain, value: plain}
        - {name: Authorization, prefix: "Bearer ", file: token}
        - {name: X-Key, env: HOOK_KEY}
"#;
    let place = posting(&hook.url("/hook?secret=query-word"), headers);
    place.write("token", "file-word\n");
    place.route("a", 1);
    let mut command = place.command(&[]);
    command.env("HOOK_KEY", "env-word");
    let mut runner = super::place::Runner::start(command);
    let first = hook.wait(1).remove(0);
    assert_eq!(first.line, "POST /hook?secret=query-word");
    assert_eq!(first.header("content-type"), "application/json");
    assert_eq!(
        [first.header("x-plain"), first.header("authorization"), first.header("x-key")],
        ["plain", "Bearer file-word", "env-word"]
    );
    let state = |size: u8| json!({"apiVersion": "example.com/v1", "kind": "Route", "metadata": {"name": "a"}, "spec": {"size": size}});
    assert_eq!(
        first.json(),
        json!({"event": "added", "source": "routes", "key": "a", "namespace": null, "name": "a", "old": null, "new": state(1)})
    );
    let refused = runner.says("send: added a: failed: ");
    assert!(
        refused
            .contains(&format!("failed: {} answered 500 Internal Server Error; trying", hook.url("/hook"))),
        "{refused}"
    );
    runner.says("send: added a: done in ");
    // A new secret is used at once.
    place.write("token", "other-word\n");
    place.route("a", 2);
    let second = hook.wait(3).remove(2);
    assert_eq!(second.header("authorization"), "Bearer other-word");
    assert_eq!((&second.json()["old"], &second.json()["new"]), (&state(1), &state(2)));
    std::fs::remove_file(place.path("token")).unwrap();
    place.remove("a");
    runner.says("send: gone a: failed: ");
    runner.signal("TERM");
    let said = runner.end().1.join("\n");
    assert!(said.contains("token cannot be read: No such file"), "{said}");
    for secret in ["query-word", "file-word", "other-word", "env-word"] {
        assert!(!said.contains(secret), "{secret} in {said}");
    }
}

#[test]
fn a_template_makes_the_body() {
    let hook = Hook::start(&[]);
    let place = posting(
        &hook.url("/"),
        "        method: PUT\n        body: {text: '${name} is ${.spec.size}', size: '${.spec.size}', was: '${old.spec.size:-0}'}\n",
    );
    place.route("a", 1);
    let runner = place.run(&[]);
    let first = hook.wait(1).remove(0);
    assert_eq!(
        (first.line.as_str(), first.json()),
        ("PUT /", json!({"text": "a is 1", "size": 1, "was": 0}))
    );
    place.write("routes/a.yaml", "{apiVersion: example.com/v1, kind: Route, metadata: {name: a}}");
    runner.says("ERROR send: changed a: failed: body: ${.spec.size} finds nothing; ${.spec.size:-...} would have a default; not tried again before it changes");
}

#[test]
fn whatever_is_no_success_is_tried_again_with_the_same_key() {
    let answers = [
        Answer::Head("500 Internal Server Error"),
        Answer::Head("302 Found\r\nlocation: http://127.0.0.1:1/"),
        Answer::Head("404 Not Found"),
        Answer::Silence,
        Answer::Head("429 Too Many Requests\r\nretry-after: 2"),
        Answer::Head("201 Created"),
    ];
    let hook = Hook::start(&answers);
    let place = posting(&hook.url("/x"), "");
    place.route("a", 1);
    let runner = place.run(&[]);
    for said in [
        "answered 500 Internal",
        "answered 302 Found",
        "answered 404 Not Found",
        "did not end within 500ms",
        "answered 429 Too Many Requests; trying again in 2.0 s",
    ] {
        runner.says(said);
    }
    runner.says("send: added a: done in ");
    let received = hook.received();
    assert_eq!(received.len(), 6);
    assert!(
        received[5].at - received[4].at >= Duration::from_secs(2),
        "{:?}",
        received[5].at - received[4].at
    );
    assert!(received[1].at - received[0].at < Duration::from_secs(1));
    let key = received[0].header("idempotency-key");
    assert!(key.len() == 32 && received.iter().all(|received| received.header("idempotency-key") == key));
    place.route("a", 2);
    assert_ne!(hook.wait(7)[6].header("idempotency-key"), key);
}

#[test]
fn a_change_there_and_back_and_there_again_has_another_key_and_keeps_it_over_a_restart() {
    let hook = Hook::start(&[]);
    let place = posting(&hook.url("/x"), "");
    let state = place.path("state");
    let arguments = ["--state", state.to_str().unwrap()];
    let mut runner = place.run(&arguments);
    for (count, size) in [(1, 1), (2, 2), (3, 1), (4, 2), (5, 1)] {
        place.route("a", size);
        hook.wait(count);
        runner.says("done in");
    }
    place.remove("a");
    runner.says("gone a: done in");
    hook.fail("500 Internal Server Error");
    place.route("a", 1);
    runner.says("added a: failed: ");
    runner.kill();
    let before = hook.received().len();
    hook.mend();
    let runner = place.run(&arguments);
    runner.says("added a: done in");
    let received = hook.received();
    let key = |at: usize| received[at].header("idempotency-key");
    let mut keys: Vec<&str> = (0..7).map(key).collect();
    assert_eq!((before >= 7, received.len()), (true, before + 1), "{received:?}");
    assert!((6..=before).all(|at| key(at) == key(6)), "{received:?}");
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 7, "each change has a key of its own: {received:?}");
}

#[test]
fn a_url_that_is_a_secret_is_in_a_file_and_never_shown() {
    let hook = Hook::start(&[Answer::Head("500 No")]);
    let place = Place::new(
        "  - {name: send, on: routes, retry: {initial: 50ms, max: 50ms}, do: {post: {urlFile: url}}}\n",
    );
    place.write("url", &hook.url("/hook-word"));
    place.route("a", 1);
    let mut runner = place.run(&[]);
    runner.says("done in");
    assert_eq!(hook.received()[1].line, "POST /hook-word");
    place.write("url", "ftp://hook-word");
    place.route("a", 2);
    runner.says("has to be a URL that begins with http:// or https://");
    runner.signal("TERM");
    assert!(!runner.end().1.join("\n").contains("hook-word"));
}
