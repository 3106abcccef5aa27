//! Sending a scenario.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::{Answer, Request, Scenario};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Broken {
    /// The server panicked.
    #[error("a panic: {0}")]
    Panic(String),
    /// Nothing came in time.
    #[error("no answer within {0:?}")]
    Silence(Duration),
    /// The connection ended before the answer.
    #[error("the connection ended: {0}")]
    Dropped(String),
}

/// Who is asked.
pub trait Server: Sync {
    /// Sends a request and reads the answer.
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Answer, Broken>>;
}

/// How often a request is repeated that waits for a code.
const TRIES: usize = 100;

/// Sends the requests of a scenario, up to `count`, and tells every one with its answer to `heard`.
pub async fn run(
    server: &dyn Server,
    scenario: &Scenario,
    count: usize,
    mut heard: impl FnMut(usize, &Request, &Result<Answer, Broken>),
) {
    let mut values = BTreeMap::new();
    for (place, request) in scenario.requests.iter().take(count).enumerate() {
        let request = request.filled(&values);
        let mut answer = server.send(&request).await;
        for _ in 0..TRIES {
            match (&answer, request.until) {
                (Ok(answer), Some(code)) if answer.code != code => {}
                _ => break,
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            answer = server.send(&request).await;
        }
        if let Ok(answer) = &answer {
            capture(&request, answer, &mut values);
        }
        heard(place, &request, &answer);
    }
}

fn capture(request: &Request, answer: &Answer, values: &mut BTreeMap<String, String>) {
    let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else { return };
    let usual =
        [("uid", "metadata.uid"), ("version", "metadata.resourceVersion"), ("continue", "metadata.continue")];
    let usual = usual.map(|(name, path)| (name.to_owned(), path.to_owned()));
    for (name, path) in usual.iter().chain(&request.captures) {
        let found = path.split('.').try_fold(&body, |found, part| match found {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            value => value.get(part),
        });
        if let Some(text) = found.and_then(Value::as_str).filter(|text| !text.is_empty()) {
            values.insert(name.clone(), text.to_owned());
        }
    }
}

/// What the environment says: the variable `WATCHKEEPER_FUZZ_<name>`, if it is set to something.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(format!("WATCHKEEPER_FUZZ_{name}")).ok().filter(|value| !value.is_empty())
}

/// How long this share of the whole takes, in hundredths of it.
pub fn seconds(share: u32) -> Duration {
    let all = variable("SECONDS").and_then(|text| text.parse().ok()).unwrap_or(60);
    Duration::from_secs(all) * share / 100
}
