//! Panics in the tasks of a gateway.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use watchkeeper_front::Body;
use watchkeeper_gateway::ai::RecordTable;
use watchkeeper_gateway::ai::records::{self, Destinations};
use watchkeeper_gateway::{BudgetStore, Options, Otlp};

use crate::ai::{Ai, chat, mock, sha256};
use crate::support::{Bench, Server, send, within};

fn answer(path: &str, body: &str) -> Value {
    json!({"rules": [{"matches": [{"path": {"prefix": path}}], "filters": {"respond": {"body": body}}}]})
}

/// Waits until a task has panicked so often.
async fn panicked(bench: &Bench, task: &str, times: u64) {
    within(task, async {
        while bench.supervisor.panics(task) < times {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// The value of a metric without labels.
fn metric(bench: &Bench, name: &str) -> u64 {
    let metrics = bench.handle.metrics();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap().parse().unwrap()
}

#[tokio::test]
async fn every_task_goes_on_after_a_panic() {
    let bench = Bench::start().await;
    for task in ["configuration", "source test", "statuses", "informer test"] {
        assert!(bench.supervisor.tasks().contains(task), "{task}: {:?}", bench.supervisor.tasks());
        bench.supervisor.inject(task);
        panicked(&bench, task, 1).await;
        bench.put("GatewayRoute", "r", answer("/", task)).await;
        assert_eq!(bench.get("/").await.text(), task);
    }
}

#[tokio::test]
async fn an_object_that_makes_the_compiler_panic_keeps_its_last_good_form_and_costs_no_other() {
    let bench = Bench::start().await;
    bench.put("GatewayRoute", "bad", answer("/bad", "before")).await;
    let place = "test: GatewayRoute/bad";
    bench.supervisor.poison(place);
    bench.tell("GatewayRoute", "bad", answer("/bad", "after"));
    bench.put("GatewayRoute", "good", answer("/good", "good")).await;
    assert_eq!(bench.get("/bad").await.text(), "before");
    assert_eq!(bench.get("/good").await.text(), "good");
    assert_eq!(bench.supervisor.panics("configuration"), 1);
    assert!(bench.handle.rejected().contains_key(place), "{:?}", bench.handle.rejected());
    assert!(bench.handle.readiness().0, "one object does not make a gateway unfit");
}

#[tokio::test]
async fn readiness_names_a_task_that_does_not_recover_and_requests_are_served_meanwhile() {
    let bench = Bench::start().await;
    bench.put("GatewayRoute", "r", answer("/", "served")).await;
    bench.supervisor.break_down("configuration");
    let failing = async {
        while bench.handle.readiness().0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within("the task to fail", failing).await;
    let (_, notes) = bench.handle.readiness();
    assert!(notes.iter().any(|note| note.contains("task configuration")), "{notes:?}");
    assert_eq!(bench.get("/").await.text(), "served");
    bench.supervisor.mend("configuration");
    bench.put("GatewayRoute", "r", answer("/", "again")).await;
    assert_eq!(bench.get("/").await.text(), "again");
}

/// Keeps what is written, slowly, and panics when it is told to.
#[derive(Clone, Default)]
struct Output {
    panics: Arc<AtomicBool>,
    delay: Duration,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        std::thread::sleep(self.delay);
        assert!(!self.panics.swap(false, Relaxed), "injected");
        self.written.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output {
    fn lines(&self) -> usize {
        self.written.lock().iter().filter(|byte| **byte == b'\n').count()
    }
}

#[tokio::test]
async fn an_access_log_that_panics_goes_on_and_the_line_in_hand_is_counted_as_lost() {
    let output = Output::default();
    let bench = Bench::logging(Box::new(output.clone()), 1).await;
    assert!(bench.supervisor.tasks().contains("access-log"));
    output.panics.store(true, Relaxed);
    bench.get("/lost").await;
    panicked(&bench, "access-log", 1).await;
    bench.get("/logged").await;
    within("the log", async {
        while output.lines() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(String::from_utf8_lossy(&output.written.lock()).contains("/logged"));
    assert_eq!(metric(&bench, "gateway_access_log_lost_total"), 1);
}

#[tokio::test]
async fn a_gateway_that_stops_has_written_its_access_log() {
    let output = Output { delay: Duration::from_millis(5), ..Output::default() };
    let bench = Bench::logging(Box::new(output.clone()), 1).await;
    for _ in 0..100 {
        bench.get("/").await;
    }
    bench.gateway.stop(Duration::from_secs(5)).await;
    assert_eq!(output.lines(), 100);
}

#[tokio::test]
async fn what_is_kept_of_calls_goes_on_after_a_panic_and_a_record_that_panics_costs_itself() {
    let database = crate::postgres::Server::shared().database().await;
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        records: Destinations {
            directory: Some(directory.path().to_owned()),
            table: Some(RecordTable::from_url(&database.url).unwrap()),
        },
        share_budgets: Some(BudgetStore::from_url(&database.url).unwrap()),
        ..Options::default()
    };
    let ai = Ai::over(Bench::start_with(json!({"port": 0}), options).await, mock(), json!({})).await;
    ai.model("m", &[("openai", "echo")]).await;
    let limited = json!({
        "keys": [{"name": "joe", "sha256": sha256("other")}],
        "limits": [{"per": "Day", "requests": 1_000, "by": "Policy"}],
    });
    ai.bench.put("LLMGatewayPolicy", "others", limited).await;
    let call = async |key: &str| {
        let request = Ai::request("/v1/chat/completions", &chat("m", "hello"), Some(key));
        assert_eq!(send(ai.bench.address, request).await.status, 200, "{key}");
    };
    call("other").await;
    for task in ["budgets", "records"] {
        ai.bench.supervisor.inject(task);
        panicked(&ai.bench, task, 1).await;
        call("other").await;
    }
    assert!(ai.bench.supervisor.tasks().contains("ai-records"));
    ai.bench.supervisor.poison("default/keys");
    call("secret").await;
    panicked(&ai.bench, "ai-records", 1).await;
    call("other").await;
    assert_eq!(metric(&ai.bench, "gateway_ai_records_lost_total"), 1);
    ai.bench.gateway.stop(Duration::from_secs(5)).await;
    let mut keys = Vec::new();
    records::read(directory.path(), |record| keys.push(record["key"].clone())).unwrap();
    assert_eq!(keys, ["joe"; 4]);
    assert_eq!(database.number("SELECT count(*) FROM watchkeeper_ai_calls WHERE key = 'joe'").await, 4);
}

/// A server that counts what it is asked, and how often.
fn counting(body: &'static str) -> (Server, Arc<AtomicUsize>) {
    let asked = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&asked);
    let server = Server::start(move |_: watchkeeper_front::Request| {
        counted.fetch_add(1, Relaxed);
        async move { watchkeeper_front::Response::new(Body::whole(body)) }
    });
    (server, asked)
}

/// Waits until a server was asked more often than this.
async fn asked_more(asked: &AtomicUsize, than: usize) {
    within("being asked", async {
        while asked.load(Relaxed) <= than {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn tasks_for_one_backend_or_policy_begin_again_after_a_panic_and_so_does_the_export_of_spans() {
    let (checked, checks) = counting("well");
    let (issuer, fetches) = counting("{\"keys\": []}");
    let (collector, exports) = counting("{}");
    let endpoint = format!("http://{}", collector.address).parse().unwrap();
    let bench = Bench::tracing(Otlp { endpoint, one_in: 1, service: "test".to_owned() }).await;
    let backend = json!({
        "endpoints": [{"address": checked.address.to_string()}],
        "health": {"active": {"path": "/", "interval": "20ms"}},
    });
    bench.put("GatewayBackend", "b", backend).await;
    let jwt = json!({"issuer": "https://issuer.test", "jwksUrl": format!("http://{}/keys", issuer.address)});
    let policy = json!({"targets": [{"kind": "Namespace"}], "jwt": jwt});
    bench.put("GatewayPolicy", "tokens", policy).await;
    bench.put("GatewayRoute", "r", answer("/", "served")).await;
    for (task, asked) in [("health-check", &checks), ("issuer-keys", &fetches), ("spans", &exports)] {
        // It runs.
        bench.get("/").await;
        asked_more(asked, 0).await;
        bench.supervisor.inject(task);
        panicked(&bench, task, 1).await;
        let before = asked.load(Relaxed);
        bench.get("/").await;
        asked_more(asked, before).await;
    }
    assert!(bench.handle.readiness().0);
}
