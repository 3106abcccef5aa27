//! Nothing of keys, prompts and answers is in anything that a gateway writes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../../sources/tests/postgres/server.rs"]
mod postgres;
#[allow(dead_code, reason = "other tests need more of it")]
#[path = "gateway/support.rs"]
mod support;

use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::{Method, Request};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};
use watchkeeper::client::Client;
use watchkeeper_ai::mcp::VERSION;
use watchkeeper_core::Key;
use watchkeeper_front::{Body, Response};
use watchkeeper_gateway::ai::RecordTable;
use watchkeeper_gateway::ai::records::Destinations;
use watchkeeper_gateway::kinds::LLMBudget;
use watchkeeper_gateway::mock::Mock;
use watchkeeper_gateway::{Admin, BudgetStore, From, Gateway, Options, Otlp, description, dump};
use watchkeeper_sources::channel::channel;
use watchkeeper_testkit::TestEnv;

use support::{Server, object, send, within};

/// Keeps everything that is logged, at every level.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<String>>);

impl Visit for Kept {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0.lock(), "{field}={value:?} ");
    }
}

impl Subscriber for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("watchkeeper")
    }
    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        attributes.record(&mut self.clone());
        span::Id::from_u64(NEXT.fetch_add(1, Relaxed))
    }
    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut self.clone());
    }
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
        self.0.lock().push('\n');
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const PROMPT: &str = "canary-prompt";
const KEY: &str = "wk-canary-key";
const PROVIDER: &str = "canary-provider-key";

/// A collector of spans, which keeps them.
fn collector(spans: Kept) -> Server {
    Server::start(move |request: watchkeeper_front::Request| {
        let mut spans = spans.clone();
        async move {
            let body = request.into_body().read(64 << 20).await.unwrap();
            spans.write_all(&body).unwrap();
            Response::new(Body::whole("{}"))
        }
    })
}

/// A server with one tool, whose description and results nobody else is to know.
fn tools() -> Server {
    Server::start(|request: watchkeeper_front::Request| async move {
        let body = request.into_body().read(1 << 20).await.unwrap();
        let asked: Value = serde_json::from_slice(&body).unwrap();
        let result = match asked["method"].as_str().unwrap() {
            "tools/list" => json!({
                "resultType": "complete", "ttlMs": 60_000, "cacheScope": "public",
                "tools": [{"name": "look", "description": "canary-description", "inputSchema": {"type": "object"}}],
            }),
            _ => {
                json!({"resultType": "complete", "content": [{"type": "text", "text": "canary-result"}], "isError": false})
            }
        };
        let told = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        let mut response = Response::new(Body::whole(told.to_string()));
        response.headers_mut().insert("content-type", "application/json".parse().unwrap());
        response
    })
}

/// A call of a tool, as agents send it.
fn tool_call(arguments: &Value) -> Request<Body> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "canary-agent", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "tools__look", "arguments": arguments, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": "canary-id", "method": "tools/call", "params": params});
    let request = Request::post("/mcp")
        .header("host", "a")
        .header("accept", "application/json, text/event-stream")
        .header("authorization", format!("Bearer {KEY}"))
        .header("mcp-protocol-version", VERSION)
        .header("mcp-method", "tools/call")
        .header("mcp-name", "tools__look");
    request.body(Body::whole(body.to_string())).unwrap()
}

#[tokio::test]
async fn no_key_prompt_or_answer_is_in_any_output() {
    let kept = Kept::default();
    tracing::subscriber::set_global_default(kept.clone()).unwrap();
    let records = tempfile::tempdir().unwrap();
    let mock = Mock::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Some(PROVIDER.to_owned())).unwrap();
    let env = TestEnv::builder().with_roles().start().await;
    env.install::<LLMBudget>().await;
    let database = postgres::Server::shared().database().await;
    let spans = Kept::default();
    let (collector, tools) = (collector(spans.clone()), tools());
    let url = format!("http://{}", mock.address());
    let (objects, source) = channel("test");
    let put = |kind: &str, name: &str, spec: Value| {
        objects.put(&Key::new(Some(kind), name), &object(kind, name, spec)).unwrap();
    };
    put("GatewayListener", "web", json!({"port": 0}));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "provider"}, "stringData": {"apiKey": PROVIDER}});
    objects.put(&Key::new(Some("Secret"), "provider"), &secret).unwrap();
    let wrong = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "wrong"}, "stringData": {"apiKey": "canary-wrong"}});
    objects.put(&Key::new(Some("Secret"), "wrong"), &wrong).unwrap();
    put(
        "AIGatewayConfig",
        "main",
        json!({"retry": {"attempts": 0}, "providers": [
            {"name": "openai", "dialect": "OpenAI", "url": url, "key": {"secretName": "provider"}},
            {"name": "anthropic", "dialect": "Anthropic", "url": url, "key": {"secretName": "provider"}},
            {"name": "refused", "dialect": "Gemini", "url": url, "key": {"secretName": "wrong"}},
            {"name": "keyless", "dialect": "OpenAI", "url": url, "key": {"secretName": "missing"}},
            {"name": "gemini", "dialect": "Gemini", "url": url, "key": {"secretName": "provider"}},
            {"name": "responses", "dialect": "OpenAI", "url": url, "key": {"secretName": "provider"}, "responses": true},
        ]}),
    );
    // One that judges nothing.
    let hook = |on: &str| {
        let webhook = json!({"url": url, "key": {"secretName": "wrong"}, "headers": {"x-token": "canary-header"}, "failurePolicy": "Ignore"});
        json!({"name": format!("hook-{on}"), "on": on, "webhook": webhook})
    };
    let digest: String =
        digest(&SHA256, KEY.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    put(
        "LLMGatewayPolicy",
        "keys",
        json!({
            "keys": [{"name": "jane", "sha256": digest}], "tools": ["*"],
            "limits": [{"per": "Month", "tokens": 100_000_000}],
            "guardrails": [{"name": "none", "pattern": "forbidden"}, hook("Request"), hook("Response")], "cache": {"ttl": "1h"},
        }),
    );
    let scripts = [
        ("same", "openai", "echo"),
        ("across", "anthropic", "echo"),
        ("fails", "openai", "echo,status=500"),
        ("refused", "refused", "echo"),
        ("keyless", "keyless", "echo"),
        ("breaks", "anthropic", "echo,error=2"),
        ("cut", "openai", "echo,cut=2"),
        ("html", "openai", "echo,html=yes"),
        ("gemini", "gemini", "echo"),
        ("responses", "responses", "echo"),
    ];
    for (model, provider, script) in scripts {
        put(
            "ModelContextMapping",
            model,
            json!({"model": model, "targets": [{"provider": provider, "model": script}], "prices": {"input": "1.00", "output": "2.00"}}),
        );
    }
    let prompt = json!({
        "gateway": "main", "prompt": "greet", "version": "v1", "model": "same", "template": "Greet {{ name }}",
        "inputs": {"name": {}, "age": {"type": "Number", "optional": true}},
    });
    put("PromptTemplate", "greet", prompt);
    let server = json!({
        "name": "tools", "url": format!("http://{}/mcp", tools.address), "key": {"secretName": "wrong"},
        "headers": {"x-token": "canary-header"},
    });
    put("McpRoute", "tools", json!({"servers": [server]}));
    let options = Options {
        from: vec![From::Source(Arc::new(source))],
        access_log: Some((Box::new(kept.clone()), 1)),
        records: Destinations {
            directory: Some(records.path().to_owned()),
            table: Some(RecordTable::from_url(&database.url).unwrap()),
        },
        share_budgets: Some(BudgetStore::Kubernetes(env.connection_for(&description()).await)),
        otlp: Some(Otlp {
            endpoint: format!("http://{}", collector.address).parse().unwrap(),
            one_in: 1,
            service: "test".to_owned(),
        }),
        ..Options::default()
    };
    let gateway = Gateway::start(options).unwrap();
    let mut handle = gateway.handle().clone();
    within("starting", handle.ready()).await;
    let address = *handle.ports().values().next().unwrap().as_ref().unwrap();
    let mut told = String::new();
    for (model, ..) in scripts {
        for stream in [false, true] {
            for (path, body) in [
                (
                    "/v1/chat/completions",
                    json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": PROMPT}]}),
                ),
                (
                    "/v1/messages",
                    json!({"model": model, "stream": stream, "max_tokens": 9, "messages": [{"role": "user", "content": PROMPT}]}),
                ),
                ("/v1/responses", json!({"model": model, "stream": stream, "input": PROMPT})),
                (
                    "/v1/responses",
                    json!({"model": model, "stream": stream, "input": [{"role": "user", "content": PROMPT}]}),
                ),
                ("/v1/messages", json!({"model": model, "stream": PROMPT})),
                ("/v1/chat/completions", json!({"model": model, "messages": [{"role": PROMPT}]})),
                (
                    "/v1/chat/completions",
                    json!({"model": model, "messages": [{"role": "user", "content": format!("{PROMPT} forbidden")}]}),
                ),
            ] {
                let request = Request::builder()
                    .method(Method::POST)
                    .uri(format!("{path}?key={KEY}"))
                    .header("host", "a")
                    .header("x-api-key", KEY);
                let answer = send(address, request.body(Body::whole(body.to_string())).unwrap()).await;
                if answer.status != 200 {
                    told.push_str(answer.text());
                }
            }
        }
    }
    let post = async |path: &str, body: &Value| {
        let request = Request::post(path).header("host", "a").header("x-goog-api-key", KEY);
        send(address, request.body(Body::whole(body.to_string())).unwrap()).await
    };
    for (model, ..) in scripts {
        for path in [
            format!("/v1beta/models/{model}:generateContent"),
            format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        ] {
            let answer = post(&path, &json!({"contents": [{"parts": [{"text": PROMPT}]}]})).await;
            if answer.status != 200 {
                told.push_str(answer.text());
            }
        }
    }
    let greeted = post("/v1/prompts/greet", &json!({"name": PROMPT})).await;
    assert!(greeted.text().contains(PROMPT), "{}", greeted.text());
    let refused = post("/v1/prompts/greet", &json!({"name": PROMPT, "age": PROMPT})).await;
    assert_eq!(refused.status, 400);
    told.push_str(refused.text());
    let called = send(address, tool_call(&json!({"where": PROMPT}))).await;
    assert!(called.text().contains("canary-result"), "{}", called.text());
    assert!(mock.requests() > 20);
    let admin = Admin::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &handle).unwrap();
    let mut written =
        handle.metrics() + &dump(&handle.table()).to_string() + &format!("{:?}", handle.table());
    let explain = format!("/explain?method=POST&url=http://a/v1/chat/completions&header=x-api-key:{KEY}");
    for path in ["/readyz", "/table", "/objects", "/backends", "/connections", "/metrics", &explain] {
        let page =
            send(admin.address(), Request::get(path).header("host", "a").body(Body::empty()).unwrap()).await;
        assert!(!page.text().is_empty(), "{path}");
        written.push_str(page.text());
    }
    admin.stop().await;
    for report in handle.reports() {
        written.push_str(&report.to_json().to_string());
    }
    gateway.stop(Duration::from_secs(1)).await;
    drop(handle);
    let lines = within("records", async {
        loop {
            let mut lines = String::new();
            watchkeeper_gateway::ai::records::read(records.path(), |record| {
                lines.push_str(&record.to_string());
            })
            .unwrap();
            if lines.matches("\"id\"").count() >= scripts.len() * 14 {
                return lines;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let client = Client::new(env.connection());
    let budgets = client.live().list::<LLMBudget>().await.unwrap();
    let budgets: String = budgets.iter().map(|budget| serde_json::to_string(&**budget).unwrap()).collect();
    assert!(budgets.contains("leases"), "{budgets}");
    let rows = "SELECT string_agg(calls::text, E'\\n') FROM watchkeeper_ai_calls AS calls";
    let rows: String = database.client.query_one(rows, &[]).await.unwrap().get(0);
    assert!(rows.lines().count() >= scripts.len() * 14 && rows.contains("jane"), "{rows}");
    assert!(spans.0.lock().contains("/v1/messages"), "spans are exported");
    assert!(lines.contains("\"key\":\"jane\"") && written.contains("gen_ai_client_token_usage"));
    assert!(kept.0.lock().contains("it answered with code 404"), "a webhook that fails is logged");
    for (what, text) in [
        ("records", &lines),
        ("rows", &rows),
        ("spans", &*spans.0.lock()),
        ("budgets", &budgets),
        ("logs", &*kept.0.lock()),
        ("metrics, table, reports, pages", &written),
    ] {
        let found = text.lines().find(|line| line.contains("canary"));
        assert_eq!(found, None, "{what}");
    }
    // A role is repeated in the error of the client who sent it, to that client; nothing else is.
    let found = told
        .split("{\"error\"")
        .find(|line| line.contains("canary") && !line.contains("].role:") && !line.contains("role: "));
    assert_eq!(found, None, "an error");
}
