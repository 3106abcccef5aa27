//! Which rule serves a request, and what it does.

use std::time::{Duration, Instant};

use http::{Method, Request};
use serde_json::json;

use crate::support::{Bench, Server, id, request, send};
use watchkeeper_front::Body;

fn respond(body: &str) -> serde_json::Value {
    json!({"respond": {"body": body}})
}

#[tokio::test]
async fn the_most_specific_rule_serves() {
    let bench = Bench::start().await;
    let rules = json!([
        {"filters": respond("any")},
        {"matches": [{"path": {"prefix": "/a"}}], "filters": respond("prefix")},
        {"matches": [{"path": {"prefix": "/a/b/"}}], "filters": respond("longer prefix")},
        {"matches": [{"path": {"exact": "/a/b"}}], "filters": respond("exact")},
        {"matches": [{"path": {"regex": "/a/[0-9]+"}}], "filters": respond("regex")},
        {"matches": [{"path": {"prefix": "/a"}, "method": "PUT"}], "filters": respond("method")},
        {"matches": [{"path": {"prefix": "/a"}, "headers": [{"name": "x-a", "value": "1"}]}], "filters": respond("header")},
        {"matches": [{"path": {"prefix": "/a"}, "headers": [{"name": "x-a", "value": "1"}, {"name": "x-b"}]}], "filters": respond("two headers")},
        {"matches": [{"path": {"prefix": "/a"}, "query": [{"name": "q", "regex": "v.*"}]}], "filters": respond("query")},
    ]);
    bench.put("GatewayRoute", "all", json!({"rules": rules})).await;
    bench.put("GatewayRoute", "host", json!({"hosts": ["*.test"], "rules": [{"matches": [{"path": {"exact": "/host"}}], "filters": respond("wildcard")}]})).await;
    bench.put("GatewayRoute", "exact-host", json!({"hosts": ["gateway.test"], "rules": [{"matches": [{"path": {"prefix": "/host"}}], "filters": respond("name")}]})).await;
    for (uri, expected) in [
        ("/", "any"),
        ("/ab", "any"),
        ("/a", "prefix"),
        ("/a/", "prefix"),
        ("/a/x", "prefix"),
        ("/a/b", "exact"),
        ("/a/b/c", "longer prefix"),
        ("/%61/b/c", "longer prefix"),
        ("/a/17", "regex"),
        ("/a/17x", "prefix"),
        ("/a/x?q=value", "query"),
        ("/a/x?p=1&q=%76x", "query"),
        ("/a/x?q=x", "prefix"),
        ("/host", "name"),
        ("/host/x", "name"),
    ] {
        assert_eq!(bench.get(uri).await.text(), expected, "{uri}");
    }
    assert_eq!(bench.send(Request::put("/a/x")).await.text(), "method");
    assert_eq!(bench.send(Request::get("/a/x").header("x-a", "1")).await.text(), "header");
    assert_eq!(
        bench.send(Request::get("/a/x").header("x-a", "1").header("x-b", "")).await.text(),
        "two headers"
    );
    let elsewhere = Request::get("/host").header("host", "other.test").body(Body::empty()).unwrap();
    assert_eq!(send(bench.address, elsewhere).await.text(), "wildcard");
}

#[tokio::test]
async fn of_two_routes_that_match_the_same_the_older_serves_and_both_are_told() {
    let bench = Bench::start().await;
    let spec = |body| json!({"rules": [{"filters": respond(body)}]});
    let mut old = crate::support::object("GatewayRoute", "z", spec("old"));
    old["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
    old["metadata"]["generation"] = json!(1);
    bench.put("GatewayRoute", "b", spec("b")).await;
    bench.put("GatewayRoute", "a", spec("a")).await;
    assert_eq!(bench.get("/").await.text(), "a", "by name");
    bench.objects.put(&watchkeeper_core::Key::new(Some("GatewayRoute"), "z"), &old).unwrap();
    bench.reported("GatewayRoute", "z", 1).await;
    assert_eq!(bench.get("/").await.text(), "old", "by age");
    for (name, expected) in
        [("z", "default/a matches the same and is younger"), ("b", "default/z matches the same and is older")]
    {
        let report = bench.handle.report(&crate::support::id("GatewayRoute", name)).unwrap();
        assert_eq!(report.accepted.reason, "Conflicted");
        assert!(report.accepted.message.contains(expected), "{}", report.accepted.message);
    }
    bench.remove("GatewayRoute", "z").await;
    assert_eq!(bench.get("/").await.text(), "a");
}

#[tokio::test]
async fn requests_and_responses_are_changed_as_filters_say() {
    let (bench, server) = (Bench::start().await, Server::echo("one"));
    bench.backend("one", &[&server]).await;
    let rule = json!({
        "matches": [{"path": {"prefix": "/shop"}}],
        "filters": {
            "rewrite": {"host": "inner.test", "path": {"prefix": "/v2"}},
            "requestHeaders": {"set": {"x-set": "new"}, "add": {"x-add": "more"}, "remove": ["x-gone"]},
            "responseHeaders": {"set": {"x-answer": "yes"}},
        },
        "backends": [{"name": "one"}],
    });
    bench.put("GatewayRoute", "shop", json!({"rules": [rule]})).await;
    let asked = Request::get("/shop/cart?x=1&y=%2F")
        .header("x-set", "old")
        .header("x-add", "one")
        .header("x-gone", "here")
        .header("connection", "x-hop, close, x-forwarded-for, x-forwarded-proto")
        .header("x-consumer", "admin")
        .header("x-hop", "secret")
        .header("keep-alive", "5")
        .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        .header("x-forwarded-for", "6.6.6.6")
        .header("forwarded", "for=6.6.6.6");
    let answer = bench.send(asked).await;
    assert_eq!(answer.header("x-answer"), Some("yes"));
    let told = answer.json();
    assert_eq!(told["target"], "/v2/cart?x=1&y=%2F");
    let headers = &told["headers"];
    assert_eq!(headers["host"], "inner.test");
    assert_eq!((&headers["x-set"], &headers["x-add"]), (&json!("new"), &json!("one, more")));
    for gone in ["x-gone", "x-hop", "keep-alive", "connection", "forwarded", "x-consumer"] {
        assert_eq!(headers.get(gone), None, "{gone}");
    }
    assert_eq!(headers["x-forwarded-for"], "127.0.0.1", "strangers are not believed");
    assert_eq!(
        (&headers["x-forwarded-proto"], &headers["x-forwarded-host"]),
        (&json!("http"), &json!("gateway.test"))
    );
    assert_eq!(headers["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
}

#[tokio::test]
async fn proxies_that_are_trusted_are_believed() {
    let bench = Bench::with(json!({"port": 0, "trustedProxies": ["127.0.0.0/8"], "forwarded": "Both"})).await;
    let server = Server::echo("one");
    bench.backend("one", &[&server]).await;
    bench.route("all", "/", "one").await;
    let asked = Request::get("/").header("x-forwarded-for", "192.0.2.7").header("x-forwarded-proto", "https");
    let told = bench.send(asked).await.json();
    assert_eq!(told["headers"]["x-forwarded-for"], "192.0.2.7, 127.0.0.1");
    assert_eq!(told["headers"]["x-forwarded-proto"], "https");
    assert_eq!(told["headers"]["forwarded"], "for=127.0.0.1;host=\"gateway.test\";proto=http");
}

#[tokio::test]
async fn regexes_are_bounded_in_memory_length_and_time() {
    let bench = Bench::start().await;
    let rules = |path: &str, header: &str| {
        let matches = json!([{"path": {"regex": path}, "headers": [{"name": "x-a", "regex": header}]}]);
        json!({"rules": [{"matches": matches, "filters": respond("matches")}]})
    };
    bench.put("GatewayRoute", "r", rules("/(a|a)*b", "(a|a)*b")).await;
    let ask = async |path: String| bench.send(Request::get(path).header("x-a", "aab")).await.status;
    assert_eq!(ask("/aab".to_owned()).await, 200);
    let (large, long) = ("(a{1000}){1000}", "x".repeat(1_025));
    let too_large = "takes too much memory: its repetitions are too large";
    let too_long = "is longer than 1024 characters";
    for (path, header, field, said) in [
        (large, ".*", "path.regex", too_large),
        (".*", large, "headers[0].regex", too_large),
        (&long, ".*", "path.regex", too_long),
        (".*", &long, "headers[0].regex", too_long),
    ] {
        let begin = Instant::now();
        bench.put("GatewayRoute", "r", rules(path, header)).await;
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
        let report = bench.handle.report(&id("GatewayRoute", "r")).unwrap();
        let expected = format!("spec.rules[0].matches[0].{field}: {said}");
        assert_eq!((report.accepted.is_true, report.accepted.message), (false, expected));
        assert_eq!(report.programmed.reason, "LastGood");
        assert_eq!(ask("/aab".to_owned()).await, 200);
    }
    // With backtracking, this would take longer than anybody waits.
    let begin = Instant::now();
    assert_eq!(ask(format!("/{}", "a".repeat(30_000))).await, 404);
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn redirects_and_cross_origin_requests_need_no_backend() {
    let (bench, server) = (Bench::start().await, Server::echo("one"));
    bench.backend("one", &[&server]).await;
    let rules = json!([
        {"matches": [{"path": {"prefix": "/old"}}], "filters": {"redirect": {"scheme": "https", "host": "new.test", "path": {"prefix": "/new"}, "status": 301}}},
        {"matches": [{"path": {"prefix": "/api"}}], "filters": {"cors": {"origins": ["https://*.example.com"], "methods": ["PUT"], "headers": ["x-a"], "credentials": true, "maxAge": "1m"}}, "backends": [{"name": "one"}]},
    ]);
    bench.put("GatewayRoute", "all", json!({"rules": rules})).await;
    let answer = bench.get("/old/x?y=1").await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("location")),
        (301, Some("https://new.test/new/x?y=1"))
    );
    let preflight = |origin: &str| {
        Request::options("/api").header("origin", origin).header("access-control-request-method", "PUT")
    };
    let answer = bench.send(preflight("https://shop.example.com")).await;
    assert_eq!(answer.status, 204);
    for (name, value) in [
        ("access-control-allow-origin", "https://shop.example.com"),
        ("access-control-allow-methods", "GET, HEAD, POST, PUT"),
        ("access-control-allow-headers", "x-a"),
        ("access-control-allow-credentials", "true"),
        ("access-control-max-age", "60"),
    ] {
        assert_eq!(answer.header(name), Some(value));
    }
    let answer = bench.send(preflight("https://evil.com/.example.com")).await;
    assert_eq!(answer.header("access-control-allow-origin"), None);
    assert_eq!(answer.json()["method"], "OPTIONS", "others are the backend's business");
    let answer = bench.send(Request::get("/api").header("origin", "https://shop.example.com")).await;
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://shop.example.com"));
    assert_eq!(answer.header("vary"), Some("origin"));
    // A cache would give the answer without an origin to those that have one.
    for request in [Request::get("/api"), Request::get("/api").header("origin", "https://evil.com")] {
        let answer = bench.send(request).await;
        assert_eq!(answer.header("access-control-allow-origin"), None);
        assert_eq!(answer.header("vary"), Some("origin"));
    }
    assert_eq!(bench.get("/old/x").await.header("vary"), None, "where origins do not matter");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let (bench, server) = (Bench::start().await, Server::echo("one"));
    bench.backend("one", &[&server]).await;
    let spec = json!({"rules": [{"backends": [{"name": "one"}], "maxBodyBytes": 10}]});
    bench.put("GatewayRoute", "all", spec).await;
    let post = async |body: Body| send(bench.address, request(Method::POST, "/", body)).await;
    assert_eq!(post(Body::whole("0123456789")).await.json()["body"], "0123456789");
    assert_eq!(post(Body::whole("0123456789x")).await.status, 413);
    let pieces = futures_util::stream::iter(["01234", "56789", "x"].map(bytes::Bytes::from));
    assert_eq!(post(Body::stream(pieces)).await.status, 413, "also if its length is not told");
}

#[tokio::test]
async fn responses_are_compressed_for_those_who_can_read_that() {
    let bench = Bench::start().await;
    let text = "watchkeeper ".repeat(1_000);
    let server = Server::start({
        let text = text.clone();
        move |request: watchkeeper_front::Request| {
            let text = text.clone();
            async move {
                let mut response = watchkeeper_front::Response::new(Body::whole(text));
                let kind = if request.uri().path() == "/png" { "image/png" } else { "text/plain" };
                response.headers_mut().insert("content-type", kind.parse().unwrap());
                response
            }
        }
    });
    bench.backend("one", &[&server]).await;
    let spec = json!({"rules": [{"backends": [{"name": "one"}], "filters": {"compress": {}}}]});
    bench.put("GatewayRoute", "all", spec).await;
    let accepting = |path: &str| Request::get(path).header("accept-encoding", "br, gzip;q=0.5");
    let answer = bench.send(accepting("/")).await;
    assert_eq!((answer.header("content-encoding"), answer.header("content-length")), (Some("gzip"), None));
    let mut read = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&*answer.body), &mut read).unwrap();
    assert!(read == text && answer.body.len() < 500);
    assert_eq!(bench.send(accepting("/png")).await.header("content-encoding"), None);
    assert_eq!(bench.get("/").await.text(), text);
    assert_eq!(bench.send(Request::get("/").header("accept-encoding", "gzip;q=0")).await.text(), text);
}

#[tokio::test]
async fn a_share_of_requests_goes_to_each_backend_and_copies_to_another() {
    let bench = Bench::start().await;
    let (one, two) = (Server::echo("one"), Server::echo("two"));
    let (copies, mut copied) = tokio::sync::mpsc::unbounded_channel();
    let mirror = Server::start(move |request: watchkeeper_front::Request| {
        let copies = copies.clone();
        async move {
            let body = request.into_body().read(100).await.unwrap();
            copies.send(String::from_utf8(body.to_vec()).unwrap()).unwrap();
            watchkeeper_front::Response::new(Body::empty())
        }
    });
    bench.backend("one", &[&one]).await;
    bench.backend("two", &[&two]).await;
    bench.backend("mirror", &[&mirror]).await;
    let spec = |weight: u32| {
        json!({"rules": [{
            "filters": {"mirror": {"backend": "mirror"}},
            "backends": [{"name": "one", "weight": 100 - weight}, {"name": "two", "weight": weight}],
        }]})
    };
    bench.put("GatewayRoute", "canary", spec(0)).await;
    let share = async || {
        let mut two = 0;
        for _ in 0..100 {
            two += u32::from(bench.get("/").await.json()["server"] == "two");
        }
        two
    };
    assert_eq!(share().await, 0);
    bench.put("GatewayRoute", "canary", spec(50)).await;
    assert!((20..80).contains(&share().await));
    bench.put("GatewayRoute", "canary", spec(100)).await;
    assert_eq!(share().await, 100);
    send(bench.address, request(Method::POST, "/", Body::whole("a copy"))).await;
    let found = async { while copied.recv().await.unwrap() != "a copy" {} };
    crate::support::within("a copy", found).await;
}
