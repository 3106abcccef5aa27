//! What is written of calls: in files and in a database, with and without content.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use watchkeeper_gateway::Options;
use watchkeeper_gateway::ai::RecordTable;
use watchkeeper_gateway::ai::records::{self, Destinations};

use crate::ai::{Ai, chat, mock, sha256, streamed};
use crate::postgres::{Database, Server};
use crate::support::{Bench, send, within};

pub(crate) async fn recording(destinations: Destinations) -> Ai {
    let options = Options { records: destinations, ..Options::default() };
    Ai::over(Bench::start_with(json!({"port": 0}), options).await, mock(), json!({})).await
}

pub(crate) fn files(directory: &Path) -> Destinations {
    Destinations { directory: Some(directory.to_owned()), table: None }
}

fn table(database: &Database) -> Destinations {
    Destinations { directory: None, table: Some(RecordTable::from_url(&database.url).unwrap()) }
}

/// Stops a gateway, which writes all records, and reads them, in the order of the calls.
pub(crate) async fn stopped(ai: Ai, directory: &Path) -> Vec<Value> {
    ai.bench.gateway.stop(Duration::from_secs(5)).await;
    let mut read = Vec::new();
    records::read(directory, |record| read.push(record.clone())).unwrap();
    read.sort_by_key(|record| record["time"].as_str().unwrap().to_owned());
    read
}

fn policy(content: Option<Value>) -> Value {
    let mut spec = json!({"keys": [{"name": "jane", "sha256": sha256("secret")}]});
    if let Some(content) = content {
        spec["contentLog"] = content;
    }
    spec
}

#[tokio::test]
async fn content_is_kept_where_a_policy_says_so_and_redacted() {
    let directory = tempfile::tempdir().unwrap();
    let ai = recording(files(directory.path())).await;
    let said = "write to jo@example.com about 4111-1111-1111-1111 and project falcon";
    let expected = "You said: write to [email] about [number] and project [redacted]";
    ai.model("m", &[("openai", "echo")]).await;
    assert_eq!(ai.post("/v1/chat/completions", &chat("m", said)).await.status, 200);
    ai.policy(policy(Some(json!({"redact": ["falcon"]})))).await;
    let stranger = json!({"keys": [{"name": "joe", "sha256": sha256("other")}]});
    ai.bench.put("LLMGatewayPolicy", "others", stranger).await;
    send(ai.bench.address, Ai::request("/v1/chat/completions", &chat("m", said), Some("other"))).await;
    for provider in ["openai", "anthropic", "gemini"] {
        ai.model("m", &[(provider, "echo")]).await;
        for body in [chat("m", said), streamed(chat("m", said))] {
            let told = ai.post("/v1/chat/completions", &body).await;
            assert!(told.text().contains("jo@example.com"), "the client gets all of it: {}", told.text());
        }
    }
    ai.policy(policy(Some(json!({"of": ["Response"], "redaction": "Off", "maxBytes": 18})))).await;
    ai.post("/v1/chat/completions", &chat("m", said)).await;
    ai.post(
        "/v1/chat/completions",
        &json!({"model": "unknown", "messages": [{"role": "user", "content": said}]}),
    )
    .await;
    let read = stopped(ai, directory.path()).await;
    assert_eq!(read.len(), 10);
    for record in &read[..2] {
        assert!(record.get("request").is_none() && record.get("response").is_none(), "{record}");
    }
    for record in &read[2..8] {
        let request: Value = serde_json::from_str(record["request"].as_str().unwrap()).unwrap();
        assert_eq!(request["messages"][0]["content"], expected.strip_prefix("You said: ").unwrap());
        assert_eq!(record["response"], expected, "{record}");
    }
    assert_eq!((&read[8]["request"], &read[8]["response"]), (&Value::Null, &json!("You said: write to")));
    assert_eq!((&read[9]["status"], &read[9]["response"]), (&json!(404), &Value::Null));
}

#[tokio::test]
async fn calls_are_rows_of_a_database() {
    let database = Server::shared().database().await;
    let directory = tempfile::tempdir().unwrap();
    let both = Destinations { directory: Some(directory.path().to_owned()), ..table(&database) };
    let ai = recording(both).await;
    ai.policy(policy(Some(json!({})))).await;
    let spec = json!({
        "model": "it's \"m\"", "targets": [{"provider": "openai", "model": "echo"}], "prices": {"input": "1000.00", "output": "2000.00"},
    });
    ai.bench.put("ModelContextMapping", "quoted", spec).await;
    let said = "it's a \\ 'quote' \u{0} and ü, \u{1F600}";
    for number in 0..600 {
        let body =
            if number % 2 == 0 { chat("it's \"m\"", said) } else { streamed(chat("it's \"m\"", said)) };
        assert_eq!(ai.post("/v1/chat/completions", &body).await.status, 200);
    }
    assert_eq!(ai.chat("unknown").await.status, 404);
    let mut in_files = stopped(ai, directory.path()).await;
    let calls = "SELECT count(*) FROM watchkeeper_ai_calls";
    assert_eq!(database.number(calls).await, 601, "a gateway that stops has written all");
    database.until("SELECT count(*) = 600 FROM watchkeeper_ai_calls WHERE status = 200 AND key = 'jane' AND model = 'it''s \"m\"' AND provider = 'openai' AND cost > 0 AND cost = charged_cost AND input_tokens > 0 AND time > now() - interval '10 minutes' AND error IS NULL").await;
    database.until("SELECT count(*) = 300 FROM watchkeeper_ai_calls WHERE stream AND first_token_milliseconds <= milliseconds").await;
    database.until("SELECT count(*) = 600 FROM watchkeeper_ai_calls WHERE response = 'You said: it''s a \\ ''quote''  and ü, \u{1F600}' AND request LIKE '%quote%'").await;
    database.until("SELECT error = 'not_found' AND input_tokens IS NULL FROM watchkeeper_ai_calls WHERE status = 404").await;
    // What is read from there is what is in the files, but for the content.
    let mut read = Vec::new();
    let stored = RecordTable::from_url(&database.url).unwrap();
    stored.read(Some("2026-01-01T00:00:00Z"), |record| read.push(record.clone())).await.unwrap();
    let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
    read.sort_by_key(id);
    in_files.sort_by_key(id);
    assert_eq!(read.len(), in_files.len());
    for (row, line) in read.iter().zip(&mut in_files) {
        let line = line.as_object_mut().unwrap();
        assert!(line.remove("request").is_some(), "also of those that are refused");
        line.remove("response");
        for (name, value) in line {
            match value.as_f64() {
                Some(number) => assert_eq!(row[name].as_f64(), Some(number), "{name}"),
                None => assert_eq!(row[name], *value, "{name}"),
            }
        }
    }
    let mut later = 0;
    stored.read(Some("2999-01-01T00:00:00Z"), |_| later += 1).await.unwrap();
    assert_eq!(later, 0);
}

#[tokio::test]
async fn a_database_that_is_gone_slows_no_call_and_has_all_records_when_it_is_back() {
    let mut server = Server::start(&[]);
    let database = server.database().await;
    let ai = recording(table(&database)).await;
    ai.model("m", &[("openai", "echo")]).await;
    let ask = async |count: usize| {
        let mut slowest = Duration::ZERO;
        for _ in 0..count {
            let begin = Instant::now();
            assert_eq!(ai.chat("m").await.status, 200);
            slowest = slowest.max(begin.elapsed());
        }
        slowest
    };
    ask(20).await;
    database.until("SELECT count(*) = 20 FROM watchkeeper_ai_calls").await;
    let url = database.url.clone();
    drop(database);
    server.kill();
    let slowest = ask(50).await;
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    server.restart();
    let back = Database { client: crate::postgres::connect(&url).await, url, name: String::new() };
    within("all records", back.until("SELECT count(*) = 70 FROM watchkeeper_ai_calls")).await;
    assert_eq!(ai.chat("m").await.status, 200);
    within("one more", back.until("SELECT count(*) = 71 FROM watchkeeper_ai_calls")).await;
    // A connection that is cut while nothing is written is found out by the next record.
    back.cut().await;
    ask(5).await;
    within("those after the cut", back.until("SELECT count(*) = 76 FROM watchkeeper_ai_calls")).await;
    let metrics = ai.bench.handle.metrics();
    assert!(metrics.contains("gateway_ai_records_database_lost_total 0\n"), "{metrics}");
    assert!(metrics.contains("gateway_ai_records_database_written_total 76\n"), "{metrics}");
}

#[tokio::test]
async fn a_record_that_the_database_refuses_is_lost_alone_and_counted() {
    let database = Server::shared().database().await;
    let ai = recording(table(&database)).await;
    ai.model("m", &[("openai", "echo")]).await;
    ai.model("unwanted", &[("openai", "echo")]).await;
    assert_eq!(ai.chat("m").await.status, 200);
    database.until("to_regclass('watchkeeper_ai_calls') IS NOT NULL").await;
    database.until("SELECT count(*) = 1 FROM watchkeeper_ai_calls").await;
    database.sql("ALTER TABLE watchkeeper_ai_calls ADD CHECK (model <> 'unwanted')").await;
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (address, model) = (ai.bench.address, if number % 10 == 0 { "unwanted" } else { "m" });
        clients.spawn(async move {
            send(address, Ai::request("/v1/chat/completions", &chat(model, "hi"), Some("secret")))
                .await
                .status
        });
    }
    assert!(clients.join_all().await.iter().all(|status| *status == 200));
    database.until("SELECT count(*) = 37 FROM watchkeeper_ai_calls").await;
    within("counting", async {
        while !ai.bench.handle.metrics().contains("gateway_ai_records_database_lost_total 4\n") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A gateway over these records with a model, and a policy of two keys, the first of which may make so many requests.
async fn limited(destinations: Destinations, requests: u64) -> Ai {
    let ai = recording(destinations).await;
    ai.model("m", &[("openai", "echo")]).await;
    let policy = json!({
        "keys": [{"name": "jane", "sha256": sha256("secret")}, {"name": "joe", "sha256": sha256("other")}],
        "limits": [{"per": "Month", "requests": requests}, {"per": "Month", "tokens": 1_000_000, "by": "Policy"}],
    });
    ai.policy(policy).await;
    // Who has no limit waits for nobody.
    ai.bench
        .put("LLMGatewayPolicy", "free", json!({"keys": [{"name": "jim", "sha256": sha256("free")}]}))
        .await;
    ai
}

async fn ask(ai: &Ai, key: &str) -> u16 {
    let request = Ai::request("/v1/chat/completions", &chat("m", "hi"), Some(key));
    send(ai.bench.address, request).await.status.as_u16()
}

#[tokio::test]
async fn a_gateway_that_starts_again_knows_from_a_database_what_was_used() {
    let database = Server::shared().database().await;
    let ai = limited(table(&database), 3).await;
    assert_eq!(
        (ask(&ai, "secret").await, ask(&ai, "secret").await, ask(&ai, "other").await),
        (200, 200, 200)
    );
    assert_eq!(ask(&ai, "free").await, 200);
    ai.bench.gateway.stop(Duration::from_secs(5)).await;
    database.until("SELECT count(*) = 4 FROM watchkeeper_ai_calls").await;
    // What was spent last year, or by the calls of another policy, says nothing.
    let columns = "id, time, namespace, policy, key, charged_requests, charged_tokens, charged_cost";
    for (id, time, policy, requests, tokens) in [
        ("old", "now() - interval '370 days'", "keys", 9, 9_000_000),
        ("theirs", "now()", "others", 9, 9_000_000),
        ("own", "now()", "keys", 0, 900_000),
    ] {
        let values = format!("'{id}', {time}, 'default', '{policy}', 'jane', {requests}, {tokens}, 0.5");
        database.sql(&format!("INSERT INTO watchkeeper_ai_calls ({columns}) VALUES ({values})")).await;
    }
    let ai = limited(table(&database), 3).await;
    assert_eq!((ask(&ai, "secret").await, ask(&ai, "secret").await), (200, 429));
    assert_eq!((ask(&ai, "other").await, ask(&ai, "other").await, ask(&ai, "other").await), (200, 200, 429));
    let policy = json!({
        "keys": [{"name": "jane", "sha256": sha256("secret")}], "limits": [{"per": "Month", "tokens": 900_000, "by": "Policy"}],
    });
    ai.policy(policy).await;
    let told = ai.chat("m").await;
    assert!(told.status == 429 && told.text().contains("all keys of the policy"), "{}", told.text());
}

#[tokio::test]
async fn who_has_limits_waits_for_a_database_that_is_not_there_at_the_start() {
    let mut server = Server::start(&[]);
    let database = server.database().await;
    let ai = limited(table(&database), 3).await;
    assert_eq!((ask(&ai, "secret").await, ask(&ai, "secret").await), (200, 200));
    ai.bench.gateway.stop(Duration::from_secs(5)).await;
    let destinations = table(&database);
    drop(database);
    server.kill();
    let ai = limited(destinations, 3).await;
    assert_eq!(ask(&ai, "free").await, 200);
    let told = ai.chat("m").await;
    assert!(told.status == 503 && told.text().contains("budget_unavailable"), "{}", told.text());
    let (ready, notes) = ai.bench.handle.readiness();
    assert!(ready && notes.iter().any(|note| note.contains("database of records")), "{notes:?}");
    ai.bench.supervisor.inject("spent-budgets");
    within("a panic", async {
        while ai.bench.supervisor.panics("spent-budgets") == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    server.restart();
    let status = within("the database", async {
        loop {
            match ask(&ai, "secret").await {
                503 => {}
                status => return status,
            }
        }
    })
    .await;
    assert_eq!((status, ask(&ai, "secret").await), (200, 429), "two were served before");
}
