//! What is logged, counted and told.

use std::io::{self, Write};
use std::sync::Arc;

use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use watchkeeper_front::Body;
use watchkeeper_gateway::Admin;

use crate::support::{Bench, Server, connect, request, send, within};

/// Keeps what is written.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn lines(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[tokio::test]
async fn of_a_sample_one_in_so_many_is_logged_and_all_that_failed() {
    let kept = Kept::default();
    let bench = Bench::logging(Box::new(kept.clone()), 10).await;
    let respond = |path: &str, status: u16| json!({"matches": [{"path": {"prefix": path}}], "filters": {"respond": {"status": status, "body": "x"}}});
    bench.put("GatewayRoute", "r", json!({"rules": [respond("/good", 200), respond("/bad", 503)]})).await;
    for _ in 0..30 {
        assert_eq!(bench.get("/good?token=secret").await.status, 200);
    }
    for _ in 0..5 {
        assert_eq!(bench.get("/bad").await.status, 503);
    }
    within("the log", async {
        while kept.lines().len() < 8 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    let lines = kept.lines();
    let of = |code: u16| lines.iter().filter(|line| line["code"] == code).count();
    assert_eq!((of(200), of(503)), (3, 5));
    let line = &lines[0];
    assert_eq!(
        (&line["method"], &line["path"], &line["route"]),
        (&json!("GET"), &json!("/good"), &json!("default/r"))
    );
}

#[tokio::test]
async fn routes_beyond_a_thousand_are_counted_together() {
    let bench = Bench::start().await;
    let spec = |number: usize| json!({"rules": [{"matches": [{"path": {"prefix": format!("/r{number:04}")}}], "filters": {"respond": {"body": "x"}}}]});
    for number in 0..1_002 {
        bench.tell("GatewayRoute", &format!("r{number:04}"), spec(number));
    }
    bench.put("GatewayRoute", "r1002", spec(1_002)).await;
    for path in ["/r0999", "/r1000", "/r1001", "/r1002"] {
        assert_eq!(bench.get(path).await.status, 200);
    }
    let metrics = bench.handle.metrics();
    for line in [
        "gateway_requests_total{route=\"default/r0999\",code=\"2xx\"} 1",
        "gateway_requests_total{route=\"_other\",code=\"2xx\"} 3",
        "gateway_request_seconds_count{route=\"_other\"} 3",
        "gateway_routes 1003",
    ] {
        assert!(metrics.lines().any(|each| each == line), "{line}");
    }
    assert!(!metrics.contains("default/r1000"));
}

#[tokio::test]
async fn connections_are_counted_by_listener() {
    let bench = Bench::start().await;
    let admin = Admin::start("127.0.0.1:0".parse().unwrap(), &bench.handle).unwrap();
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = connect(bench.address).await;
        client.send_request(request(Method::GET, "/", Body::empty())).await.unwrap();
        clients.push(client);
    }
    let page = send(admin.address(), request(Method::GET, "/connections", Body::empty())).await.json();
    assert_eq!(page["listeners"][0]["connections"], 3, "{page}");
}

#[tokio::test]
async fn the_servers_of_backends_are_shown_with_how_they_are_and_what_they_did() {
    let (bench, good) = (Bench::start().await, Server::echo("good"));
    let admin = Admin::start("127.0.0.1:0".parse().unwrap(), &bench.handle).unwrap();
    // Nobody listens there.
    let bad = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let spec = json!({
        "endpoints": [{"address": good.address.to_string(), "weight": 3}, {"address": bad.to_string()}],
        "health": {"passive": {"failures": 1, "ejectFor": "1h", "maxEjectedPercent": 100}},
    });
    bench.put("GatewayBackend", "b", spec).await;
    bench.put("GatewayBackend", "a", json!({"endpoints": [{"address": good.address.to_string()}]})).await;
    bench.route("all", "/", "b").await;
    for _ in 0..12 {
        assert_eq!(bench.get("/").await.status, 200);
    }
    let page = send(admin.address(), request(Method::GET, "/backends", Body::empty())).await.json();
    let names: Vec<&Value> = page["backends"].as_array().unwrap().iter().map(|each| &each["name"]).collect();
    assert_eq!(names, ["default/a", "default/b"], "{page}");
    let backend = &page["backends"][1];
    // What no server got is sent to another.
    assert_eq!(
        (&backend["active"], &backend["overflowed"], &backend["retried"]),
        (&json!(0), &json!(0), &json!(1))
    );
    let (one, two) = (&backend["endpoints"][0], &backend["endpoints"][1]);
    assert_eq!((&one["address"], &one["weight"]), (&json!(good.address.to_string()), &json!(3)));
    assert_eq!(
        (&one["healthy"], &one["ejected"], &one["failures"]),
        (&json!(true), &json!(false), &json!(0))
    );
    assert_eq!((&one["requests"], &one["active"]), (&json!(12), &json!(0)), "{page}");
    assert_eq!((&two["address"], &two["weight"]), (&json!(bad.to_string()), &json!(1)));
    assert_eq!(
        (&two["ejected"], &two["failures"], &two["connections"]),
        (&json!(true), &json!(1), &json!(0))
    );
}

#[tokio::test]
async fn explain_names_the_rules_that_do_not_serve_a_request() {
    let bench = Bench::start().await;
    let rule =
        |path: &str| json!({"matches": [{"path": {"prefix": path}}], "filters": {"respond": {"body": "x"}}});
    bench.put("GatewayRoute", "deep", json!({"rules": [rule("/a/b")]})).await;
    bench.put("GatewayRoute", "shallow", json!({"rules": [rule("/a")]})).await;
    bench.put("GatewayRoute", "elsewhere", json!({"rules": [rule("/c")]})).await;
    bench.put("GatewayRoute", "other-host", json!({"hosts": ["shop.test"], "rules": [rule("/a")]})).await;
    let post = json!({"rules": [{"matches": [{"path": {"exact": "/a/b/c"}, "method": "POST"}], "filters": {"respond": {}}}]});
    bench.put("GatewayRoute", "post", post).await;
    let question = watchkeeper_gateway::Question {
        method: Method::GET,
        url: "http://gateway.test/a/b/c".parse().unwrap(),
        headers: http::HeaderMap::new(),
    };
    let explained = watchkeeper_gateway::explain(&bench.handle.table(), &question);
    let text = explained.to_string();
    let lines: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(
        lines,
        [
            "not       default/post rules[0].matches[0]: the method is not POST",
            "route     default/deep rules[0].matches[0]: host *, path prefix /a/b",
            "          answers 200 with 1 bytes",
            "not       default/shallow rules[0].matches[0]: matches, and is less specific",
            "not       default/elsewhere rules[0].matches[0]: the path is not prefix /c",
            "not       default/other-host rules[0].matches[0]: the host is not shop.test",
        ],
        "{text}"
    );
    for number in 0..40 {
        bench.tell(
            "GatewayRoute",
            &format!("more-{number:02}"),
            json!({"rules": [rule(&format!("/more/{number}"))]}),
        );
    }
    bench.put("GatewayRoute", "more-last", json!({"rules": [rule("/more/last")]})).await;
    let explained = watchkeeper_gateway::explain(&bench.handle.table(), &question);
    assert_eq!((explained.others.len(), explained.more), (20, 24));
    assert!(explained.to_string().ends_with("          and 24 more\n"));
}
