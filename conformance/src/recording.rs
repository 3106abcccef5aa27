//! Sending requests and keeping the answers.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http_body_util::BodyExt;
use kube_client::{Client, client::Body};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::exchange::Order;
use crate::{Exchange, Exchanges, Mask, choice};

/// The headers of an answer that clients look at.
const HEADERS: &[&str] = &[
    "allow",
    "content-type",
    "location",
    "retry-after",
    "vary",
    "warning",
    "www-authenticate",
    "x-content-type-options",
];

/// Who sends the requests; the name shows as the manager of fields.
const AGENT: &str = "conformance/1.0";

/// What a server answered to a list of requests, masked.
#[derive(Debug, Default)]
pub struct Recording {
    /// The answers, in the order of the requests.
    pub answers: Vec<Answer>,
}

/// One masked answer.
#[derive(Debug)]
pub struct Answer {
    /// What the request was about.
    pub title: String,
    /// Verb and path of the request.
    pub request: String,
    /// Status, headers and body.
    pub answer: Value,
}

impl Recording {
    /// Sends the requests in order; `namespace` exists. A request that gets no answer is recorded with its error.
    pub async fn of(exchanges: &Exchanges, namespace: &str, known: &Client, anonymous: &Client) -> Self {
        let mut mask = Mask::new(namespace, exchanges.managed_fields).keeping_hashes(exchanges.hashes);
        let mut values = BTreeMap::from([("namespace".to_owned(), namespace.to_owned())]);
        let mut recording = Self::default();
        let pause = choice("PAUSE").and_then(|millis| millis.parse().ok()).map(Duration::from_millis);
        for exchange in &exchanges.exchanges {
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
            let client = if exchange.anonymous { anonymous } else { known };
            let answer = match answer(&exchange.filled(&values), client, &mut mask, &mut values).await {
                Ok(answer) => answer,
                Err(error) => json!({"error": error.to_string()}),
            };
            let request = format!("{} {}", exchange.method, exchange.path);
            recording.answers.push(Answer { title: exchange.title.clone(), request, answer });
        }
        recording
    }

    /// Reads what [`Recording::to_json`] wrote.
    pub fn from_json(value: &Value) -> Self {
        let text = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
        let answers = value.as_array().into_iter().flatten().map(|item| Answer {
            title: text(item, "title"),
            request: text(item, "request"),
            answer: item["answer"].clone(),
        });
        Self { answers: answers.collect() }
    }

    /// The recording as it is kept in a file.
    pub fn to_json(&self) -> Value {
        let answer = |answer: &Answer| json!({"title": answer.title, "request": answer.request, "answer": answer.answer});
        self.answers.iter().map(answer).collect()
    }
}

async fn answer(
    exchange: &Exchange,
    client: &Client,
    mask: &mut Mask,
    values: &mut BTreeMap<String, String>,
) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
    let (head, bytes) = send(exchange, client).await?;
    let mut headers = Map::new();
    for name in HEADERS {
        let lines: Vec<Value> = head
            .headers
            .get_all(*name)
            .iter()
            .map(|line| mask.text(&String::from_utf8_lossy(line.as_bytes())).into())
            .collect();
        match lines.as_slice() {
            [] => {}
            [line] => drop(headers.insert((*name).to_owned(), line.clone())),
            _ => drop(headers.insert((*name).to_owned(), lines.into())),
        }
    }
    let mut answer = json!({"status": head.status.as_u16(), "headers": headers});
    let text = String::from_utf8_lossy(&bytes);
    match exchange.order {
        Order::Any => {}
        Order::Text => {
            answer["text"] = mask.text(&text).into();
            return Ok(answer);
        }
        Order::Keys => {
            answer["keys"] = serde_json::from_slice::<Keys>(&bytes)?.0.into();
            return Ok(answer);
        }
    }
    if let Ok(mut body) = serde_json::from_slice::<Value>(&bytes) {
        capture(exchange, &body, values);
        mask.json(&mut body);
        answer["body"] = exchange.structure.map_or(body.clone(), |depth| Mask::structure(&body, depth));
    } else if let Ok(lines) = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>() {
        let mut lines = Value::from(lines);
        capture(exchange, &lines, values);
        mask.json(&mut lines);
        answer["lines"] = lines;
    } else {
        answer["text"] = mask.lines(&text).into();
    }
    Ok(answer)
}

/// The names of the fields of an object, in the order in which they stand.
struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Keys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = map.next_entry()? {
                    names.push(name);
                }
                Ok(Keys(names))
            }
        }
        from.deserialize_map(Names)
    }
}

type Received = (http::response::Parts, bytes::Bytes);

/// Sends a request; if it says until when, again and again, but not for ever.
async fn send(
    exchange: &Exchange,
    client: &Client,
) -> Result<Received, Box<dyn std::error::Error + Send + Sync>> {
    const ATTEMPTS: usize = 300;
    const RETRY_DELAY: Duration = Duration::from_millis(100);
    for _ in 0..ATTEMPTS {
        let received = send_once(exchange, client).await?;
        match exchange.until {
            Some(status) if received.0.status != status => tokio::time::sleep(RETRY_DELAY).await,
            _ => return Ok(received),
        }
    }
    Err(format!("no answer with status {:?}", exchange.until).into())
}

async fn send_once(
    exchange: &Exchange,
    client: &Client,
) -> Result<Received, Box<dyn std::error::Error + Send + Sync>> {
    let mut request = http::Request::builder().method(exchange.method.as_str()).uri(exchange.path.as_str());
    for (name, value) in &exchange.headers {
        request = request.header(name, value);
    }
    if !exchange.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
        request = request.header("user-agent", AGENT);
    }
    let response = client.send(request.body(Body::from(exchange.body.clone().into_bytes()))?).await?;
    let (head, body) = response.into_parts();
    Ok((head, body.collect().await?.to_bytes()))
}

fn capture(exchange: &Exchange, body: &Value, values: &mut BTreeMap<String, String>) {
    for capture in &exchange.captures {
        let pointer = format!("/{}", capture.path.replace('.', "/"));
        let value = match body.pointer(&pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => "missing".to_owned(),
        };
        values.insert(capture.name.clone(), value);
    }
}
