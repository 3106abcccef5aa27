//! Tools of several servers behind one endpoint, over real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use watchkeeper_ai::mcp::VERSION;
use watchkeeper_core::Key;
use watchkeeper_front::{Body, Response};

use crate::ai::sha256;
use crate::support::{Answer, Bench, Server, connect, send, within};

/// A server with tools, and what it was asked: headers and bodies.
struct Tools {
    server: Server,
    asked: Arc<Mutex<Vec<(HeaderMap, String)>>>,
}

impl Tools {
    /// Lists these tools in pages of two, and says what it was called with.
    fn start(names: &'static [&'static str]) -> Self {
        Self::answering(move |request: &Value| {
            let id = &request["id"];
            let text = match request["method"].as_str().unwrap() {
                "tools/list" => {
                    let begin: usize =
                        request["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
                    let page: Vec<Value> = names[begin..].iter().take(2).map(|name| tool(name)).collect();
                    let mut result = json!({"resultType": "complete", "tools": page, "ttlMs": 60_000, "cacheScope": "public"});
                    if begin + 2 < names.len() {
                        result["nextCursor"] = (begin + 2).to_string().into();
                    }
                    json!({"jsonrpc": "2.0", "id": id, "result": result})
                }
                _ => {
                    let said = request["params"]["arguments"].to_string();
                    let content = json!([{"type": "text", "text": said}]);
                    json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "content": content, "isError": false}})
                }
            };
            json(StatusCode::OK, &text)
        })
    }

    fn answering(answer: impl Fn(&Value) -> Response + Send + Sync + 'static) -> Self {
        let asked = Arc::<Mutex<Vec<(HeaderMap, String)>>>::default();
        let (known, answer) = (Arc::clone(&asked), Arc::new(answer));
        let server = Server::start(move |request: watchkeeper_front::Request| {
            let (asked, answer) = (Arc::clone(&known), Arc::clone(&answer));
            async move {
                let (head, body) = request.into_parts();
                let body = body.read(1 << 20).await.unwrap();
                let body = String::from_utf8(body.to_vec()).unwrap();
                asked.lock().push((head.headers, body.clone()));
                answer(&serde_json::from_str(&body).unwrap())
            }
        });
        Self { server, asked }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.server.address)
    }

    fn last(&self) -> (HeaderMap, String) {
        self.asked.lock().last().cloned().unwrap()
    }

    fn count(&self) -> usize {
        self.asked.lock().len()
    }
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}"), "inputSchema": {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "number"}}}})
}

fn json(status: StatusCode, value: &Value) -> Response {
    let mut response = Response::new(Body::whole(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    response
}

/// A request as agents send it.
fn request(method: &str, params: Value, key: &str) -> Request<Body> {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "agent", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut request = Request::post("/mcp")
        .header("host", "gateway.test")
        .header("accept", "application/json, text/event-stream")
        .header("authorization", format!("Bearer {key}"))
        .header("mcp-protocol-version", VERSION)
        .header("mcp-method", method);
    if let Some(name) = params["name"].as_str() {
        request = request.header("mcp-name", name);
    }
    let body = json!({"jsonrpc": "2.0", "id": "q-1", "method": method, "params": params});
    request.body(Body::whole(body.to_string())).unwrap()
}

fn call(tool: &str) -> Request<Body> {
    request("tools/call", json!({"name": tool, "arguments": {"z": "x", "a": 1.50}}), "secret")
}

async fn names(bench: &Bench, key: &str) -> Vec<String> {
    let told = send(bench.address, request("tools/list", json!({}), key)).await;
    assert_eq!(told.status, 200, "{}", told.text());
    let tools = told.json()["result"]["tools"].as_array().unwrap().clone();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// A gateway with these servers, and a key that may use all their tools.
async fn start(servers: &[(&str, &Tools)]) -> Bench {
    let bench = Bench::start().await;
    let servers: Vec<Value> =
        servers.iter().map(|(name, tools)| json!({"name": name, "url": tools.url()})).collect();
    bench.put("McpRoute", "tools", json!({"servers": servers})).await;
    policy(&bench, json!({"tools": ["*"]})).await;
    bench
}

async fn policy(bench: &Bench, more: Value) {
    let mut spec = json!({"keys": [{"name": "jane", "sha256": sha256("secret")}]});
    for (name, value) in more.as_object().unwrap() {
        spec[name] = value.clone();
    }
    bench.put("LLMGatewayPolicy", "keys", spec).await;
}

fn code(told: &Answer) -> (u16, i64) {
    (told.status.as_u16(), told.json()["error"]["code"].as_i64().unwrap_or_else(|| panic!("{}", told.text())))
}

#[tokio::test]
async fn a_key_sees_and_calls_the_tools_that_it_may_of_all_servers() {
    let (weather, files) =
        (Tools::start(&["forecast", "alerts", "admin_reset"]), Tools::start(&["read", "write"]));
    let bench = start(&[("weather", &weather), ("files", &files)]).await;
    assert_eq!(
        names(&bench, "secret").await,
        ["weather__forecast", "weather__alerts", "weather__admin_reset", "files__read", "files__write"]
    );
    let servers = json!([{"name": "weather", "url": weather.url(), "tools": ["forecast", "alerts"]}, {"name": "files", "url": files.url()}]);
    bench.put("McpRoute", "tools", json!({"servers": servers})).await;
    let keys = json!([
        {"name": "jane", "sha256": sha256("secret")}, {"name": "joe", "sha256": sha256("other"), "tools": ["files__read", "weather__*"]},
        {"name": "jim", "sha256": sha256("none"), "tools": ["elsewhere__*"]},
    ]);
    policy(&bench, json!({"keys": keys, "tools": ["weather__*", "files__*"]})).await;
    assert_eq!(
        names(&bench, "secret").await,
        ["weather__forecast", "weather__alerts", "files__read", "files__write"]
    );
    assert_eq!(names(&bench, "other").await, ["weather__forecast", "weather__alerts", "files__read"]);
    let before = weather.count() + files.count();
    assert_eq!(names(&bench, "none").await, Vec::<String>::new());
    assert_eq!(weather.count() + files.count(), before, "nobody is asked in vain");
    // What is not listed cannot be called, and nothing tells whether it is there.
    let ask = async |tool: &str, key: &str| {
        send(bench.address, request("tools/call", json!({"name": tool, "arguments": {}}), key)).await
    };
    assert_eq!(ask("files__read", "other").await.status, 200);
    let mut told = Vec::new();
    for (tool, key) in [
        ("files__write", "other"),
        ("weather__admin_reset", "secret"),
        ("weather__nothing", "none"),
        ("forecast", "secret"),
        ("nowhere__x", "secret"),
    ] {
        let answer = ask(tool, key).await;
        assert_eq!(code(&answer), (200, -32_602), "{tool}");
        told.push(answer.text().replace(tool, "TOOL"));
    }
    told.dedup();
    assert_eq!(told.len(), 1, "{told:?}");
    policy(&bench, json!({"keys": keys, "tools": []})).await;
    assert_eq!(names(&bench, "secret").await, Vec::<String>::new(), "no tools unless a policy names them");
    assert_eq!(code(&ask("files__read", "secret").await), (200, -32_602), "at once");
}

#[tokio::test]
async fn a_call_gets_to_its_server_as_it_is_and_back() {
    let files = Tools::start(&["read"]);
    let bench = start(&[("files", &files)]).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "files"}, "stringData": {"apiKey": "server-key"}});
    bench.objects.put(&Key::new(Some("Secret"), "files"), &secret).unwrap();
    let server = json!({"name": "files", "url": files.url(), "key": {"secretName": "files"}, "headers": {"x-team": "blue"}});
    bench.put("McpRoute", "tools", json!({"servers": [server]})).await;
    let mut asked = call("files__read");
    asked.headers_mut().insert("mcp-param-region", "us-west1".parse().unwrap());
    asked.headers_mut().insert("mcp-session-id", "old".parse().unwrap());
    let told = send(bench.address, asked).await;
    assert_eq!(told.status, 200, "{}", told.text());
    assert_eq!(
        (&told.json()["id"], &told.json()["result"]["resultType"]),
        (&json!("q-1"), &json!("complete"))
    );
    let (headers, body) = files.last();
    let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!((header("authorization"), header("x-team")), (Some("Bearer server-key"), Some("blue")));
    assert_eq!(
        (header("mcp-method"), header("mcp-name"), header("mcp-protocol-version")),
        (Some("tools/call"), Some("read"), Some(VERSION))
    );
    assert_eq!((header("mcp-param-region"), header("mcp-session-id")), (Some("us-west1"), None));
    assert!(
        body.contains("\"arguments\":{\"a\":1.5,\"z\":\"x\"}") && body.contains("\"name\":\"agent\""),
        "{body}"
    );
    // The list of a server has another order of fields, but each of them is as it was.
    let told = send(bench.address, request("tools/list", json!({}), "secret")).await;
    let result = &told.json()["result"];
    assert_eq!((&result["cacheScope"], &result["ttlMs"]), (&json!("private"), &json!(5_000)));
    let mut expected = tool("read");
    expected["name"] = "files__read".into();
    assert_eq!(result["tools"][0], expected);
    let told = send(bench.address, request("server/discover", json!({}), "secret")).await;
    assert_eq!(told.json()["result"]["supportedVersions"], json!([VERSION]));
    assert!(told.json()["result"]["capabilities"]["tools"].is_object(), "{}", told.text());
}

#[tokio::test]
async fn what_is_no_request_is_refused_before_any_server_is_asked() {
    let files = Tools::start(&["read"]);
    let bench = start(&[("files", &files)]).await;
    let changed = async |change: fn(&mut HeaderMap)| {
        let mut asked = call("files__read");
        change(asked.headers_mut());
        send(bench.address, asked).await
    };
    let told = changed(|headers| drop(headers.remove("authorization"))).await;
    assert_eq!((code(&told), told.header("www-authenticate")), ((401, 401), Some("Bearer")));
    assert_eq!(
        code(&changed(|headers| drop(headers.insert("authorization", "Bearer x".parse().unwrap()))).await),
        (401, 401)
    );
    assert_eq!(code(&changed(|headers| drop(headers.remove("mcp-protocol-version"))).await), (400, -32_020));
    let told =
        changed(|headers| drop(headers.insert("mcp-protocol-version", "2025-11-25".parse().unwrap()))).await;
    assert_eq!(
        (code(&told), told.json()["error"]["data"]["supported"].clone()),
        ((400, -32_022), json!([VERSION]))
    );
    assert_eq!(
        code(&changed(|headers| drop(headers.insert("mcp-name", "files__write".parse().unwrap()))).await),
        (400, -32_020)
    );
    assert_eq!(
        code(&changed(|headers| drop(headers.insert("mcp-method", "tools/list".parse().unwrap()))).await),
        (400, -32_020)
    );
    assert_eq!(
        code(
            &changed(|headers| drop(headers.insert("origin", "https://evil.example".parse().unwrap()))).await
        ),
        (403, 403)
    );
    for method in ["resources/list", "initialize", "subscriptions/listen"] {
        let told = send(bench.address, request(method, json!({}), "secret")).await;
        assert_eq!(code(&told), (404, -32_601), "{method}");
    }
    assert_eq!(
        code(&send(bench.address, request("tools/list", json!({"cursor": "x"}), "secret")).await),
        (400, -32_602)
    );
    let told = bench.get("/mcp").await;
    assert_eq!((told.status.as_u16(), told.header("allow")), (405, Some("POST")));
    let large = request(
        "tools/call",
        json!({"name": "files__read", "arguments": {"z": "x".repeat(2 << 20)}}),
        "secret",
    );
    assert_eq!(code(&send(bench.address, large).await), (413, 413));
    let (head, _) = call("files__read").into_parts();
    let told = send(bench.address, Request::from_parts(head, Body::whole("{"))).await;
    assert_eq!(code(&told), (400, -32_700));
    let (head, _) = call("files__read").into_parts();
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}).to_string();
    assert_eq!(send(bench.address, Request::from_parts(head, Body::whole(notification))).await.status, 202);
    assert_eq!(files.count(), 0);
    let servers = json!([{"name": "files", "url": files.url()}]);
    bench
        .put(
            "McpRoute",
            "tools",
            json!({"servers": servers, "origins": ["https://app.example"], "path": "/agents"}),
        )
        .await;
    let mut asked = call("files__read");
    *asked.uri_mut() = "/agents".parse().unwrap();
    asked.headers_mut().insert("origin", "https://app.example".parse().unwrap());
    assert_eq!(send(bench.address, asked).await.status, 200);
    bench
        .put(
            "McpRoute",
            "tools",
            json!({"servers": [{"name": "a__b", "url": "http://a"}, {"name": "c", "url": "c"}]}),
        )
        .await;
    let report = bench.handle.report(&crate::support::id("McpRoute", "tools")).unwrap();
    assert!(report.accepted.message.contains("spec.servers[0].name"), "{report}");
}

#[tokio::test]
async fn a_server_that_fails_harms_no_other_and_tells_nothing_of_its_key() {
    let (good, how) = (Tools::start(&["read"]), Arc::new(Mutex::new("500")));
    let told_how = Arc::clone(&how);
    let bad = Tools::answering(move |_| match *told_how.lock() {
        "html" => Response::new(Body::whole("<html>canary</html>")),
        "not json" => {
            let mut response = json(StatusCode::OK, &json!({}));
            *response.body_mut() = Body::whole("canary");
            response
        }
        "redirect" => {
            let mut response = json(StatusCode::FOUND, &json!({"canary": 1}));
            response.headers_mut().insert("location", "http://127.0.0.1:1/".parse().unwrap());
            response
        }
        code => json(code.parse().unwrap(), &json!({"error": "the key canary is wrong"})),
    });
    let bench = start(&[("bad", &bad), ("good", &good)]).await;
    for failure in ["500", "401", "403", "html", "not json", "redirect"] {
        *how.lock() = failure;
        assert_eq!(names(&bench, "secret").await, ["good__read"], "{failure}");
        let told = send(bench.address, request("tools/list", json!({}), "secret")).await;
        assert_eq!(told.json()["result"]["ttlMs"], 0, "nobody keeps a list that is not whole");
        if failure != "not json" {
            let told = send(bench.address, call("bad__x")).await;
            assert_eq!(code(&told), (502, 502), "{failure}");
            assert!(!told.text().contains("canary"), "{failure}: {}", told.text());
        }
    }
    *how.lock() = "400";
    let told = send(bench.address, call("bad__x")).await;
    assert!(
        told.status == 400 && told.text().contains("canary"),
        "what is wrong with arguments, clients have to know: {}",
        told.text()
    );
    bench.put("McpRoute", "tools", json!({"servers": [{"name": "bad", "url": bad.url()}]})).await;
    *how.lock() = "500";
    assert_eq!(code(&send(bench.address, request("tools/list", json!({}), "secret")).await), (502, 502));
    let slow = Tools::answering(|_| json(StatusCode::OK, &json!({})));
    let hangs = Server::start(|_request: watchkeeper_front::Request| std::future::pending());
    let servers = json!([{"name": "bad", "url": format!("http://{}", hangs.address), "timeout": "100ms"}, {"name": "slow", "url": slow.url()}]);
    bench.put("McpRoute", "tools", json!({"servers": servers})).await;
    assert_eq!(code(&send(bench.address, call("bad__x")).await), (502, 502));
}

/// Counts what is dropped.
struct Counted(Arc<AtomicU64>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[tokio::test]
async fn a_stream_comes_as_it_is_sent_and_ends_with_its_client_or_its_key() {
    let (goes_on, dropped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (told_on, counter) = (Arc::clone(&goes_on), Arc::clone(&dropped));
    let tools = Tools::answering(move |request| {
        let last = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"resultType": "complete", "content": []}});
        let progress =
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}});
        let state = (0, Arc::clone(&told_on), Counted(Arc::clone(&counter)));
        let pieces = futures_util::stream::unfold(state, move |(at, goes_on, counted)| {
            let event = Bytes::from(format!("data: {}\n\n", if at == 0 { &progress } else { &last }));
            async move {
                while at == 1 && !goes_on.load(Relaxed) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                (at < 2).then(|| {
                    (Ok::<_, std::io::Error>(http_body::Frame::data(event)), (at + 1, goes_on, counted))
                })
            }
        });
        let mut response = Response::new(Body::wrap(http_body_util::StreamBody::new(pieces)));
        response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
        response
    });
    let bench = start(&[("s", &tools)]).await;
    let begin = async || {
        let mut client = connect(bench.address).await;
        let mut response = within("an answer", client.send_request(call("s__x"))).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let first = within("the first event", response.body_mut().frame())
            .await
            .unwrap()
            .unwrap()
            .into_data()
            .unwrap();
        assert!(String::from_utf8_lossy(&first).contains("notifications/progress"));
        (client, response)
    };
    let until = async |count: u64| {
        within("the server's stream", async {
            while dropped.load(Relaxed) < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    };
    drop(begin().await);
    until(1).await;
    policy(&bench, json!({"tools": ["*"], "cutStreams": true})).await;
    let (_client, response) = begin().await;
    policy(&bench, json!({"tools": ["*"], "cutStreams": true, "keys": []})).await;
    assert!(within("the end", response.into_body().collect()).await.is_err(), "it is cut");
    until(2).await;
    policy(&bench, json!({"tools": ["*"]})).await;
    let (_client, response) = begin().await;
    goes_on.store(true, Relaxed);
    let rest = within("the end", response.into_body().collect()).await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&rest).contains("\"resultType\":\"complete\""));
    // A list may come as a stream, too.
    let told = send(bench.address, request("tools/list", json!({}), "secret")).await;
    assert_eq!(code(&told), (502, 502), "this one has no tools in it: {}", told.text());
}

#[tokio::test]
async fn calls_are_limited_guarded_and_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let files = Tools::start(&["read"]);
    let records = watchkeeper_gateway::ai::records::Destinations {
        directory: Some(directory.path().to_owned()),
        table: None,
    };
    let options = watchkeeper_gateway::Options { records, ..Default::default() };
    let bench = Bench::start_with(json!({"port": 0}), options).await;
    bench.put("McpRoute", "tools", json!({"servers": [{"name": "files", "url": files.url()}]})).await;
    policy(
        &bench,
        json!({
            "tools": ["*"], "limits": [{"per": "Month", "requests": 2}, {"per": "Month", "tokens": 1}],
            "guardrails": [{"name": "secrets", "pattern": "forbidden"}],
        }),
    )
    .await;
    let forbidden =
        request("tools/call", json!({"name": "files__read", "arguments": {"z": "forbidden"}}), "secret");
    let told = send(bench.address, forbidden).await;
    assert!(code(&told) == (400, 400) && told.text().contains("secrets"), "{}", told.text());
    for _ in 0..2 {
        assert_eq!(send(bench.address, call("files__read")).await.status, 200);
    }
    let told = send(bench.address, call("files__read")).await;
    assert_eq!((code(&told), told.header("retry-after").is_some()), ((429, 429), true), "{}", told.text());
    assert_eq!(files.count(), 2);
    let metrics = bench.handle.metrics();
    assert!(metrics.contains("gen_ai_operation_name=\"execute_tool\",gen_ai_provider_name=\"files\",gen_ai_request_model=\"files__read\""), "{metrics}");
    bench.gateway.stop(Duration::from_secs(5)).await;
    let mut read = Vec::new();
    watchkeeper_gateway::ai::records::read(directory.path(), |record| read.push(record.clone())).unwrap();
    let statuses: Vec<i64> = read.iter().map(|record| record["status"].as_i64().unwrap()).collect();
    assert_eq!(statuses, [400, 200, 200, 429]);
    assert_eq!(
        (&read[1]["dialect"], &read[1]["model"], &read[1]["key"], &read[1]["chargedRequests"]),
        (&json!("mcp"), &json!("files__read"), &json!("jane"), &json!(1))
    );
}
