//! What a server said to a case, in one line.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use kube_client::{Client, client::Body};
use serde_json::Value;

use super::case::Case;
use super::kind::LABEL;
use super::user::{ANONYMOUS, STRANGER};

/// How long an answer may take. A watch ends after a second by itself.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How often a server that is too busy, or cannot be reached, is asked.
const ATTEMPTS: usize = 20;

/// How often a watch that said nothing is asked for again.
const SILENT_WATCHES: usize = 2;

/// What came of a case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The status.
    pub code: u16,
    /// The reason of a refusal, or the kind of what came.
    pub what: String,
    /// The objects in the answer that belong to the fixture or to a request, as `NAMESPACE/NAME`.
    pub objects: BTreeSet<String>,
}

impl Outcome {
    /// Whether the server did what it was asked for.
    pub fn is_success(&self) -> bool {
        self.code < 400
    }

    /// Whether one who is answered like this did or saw nothing that `other` does not allow, too.
    pub fn is_within(&self, other: &Self) -> bool {
        !self.is_success() || (other.is_success() && self.objects.is_subset(&other.objects))
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.code, self.what)?;
        self.objects.iter().try_for_each(|object| write!(f, " {object}"))
    }
}

impl std::str::FromStr for Outcome {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split(' ');
        let code = words.next().and_then(|code| code.parse().ok()).ok_or("no status")?;
        let what = words.next().unwrap_or_default().to_owned();
        Ok(Self { code, what, objects: words.map(str::to_owned).collect() })
    }
}

/// Sends cases to a server.
pub(super) struct Asker(Client);

impl Asker {
    /// One that uses a client without credentials.
    pub(super) fn new(client: Client) -> Self {
        Self(client)
    }

    /// Asks as a dry run first, if the case would change something. What is refused then is asked for in earnest: that
    /// has to be refused as well, and is the outcome. So no case changes anything on a server that refuses what it should.
    pub(super) async fn ask(&self, case: &Case) -> Result<Outcome, String> {
        let mut outcome = self.send(case, case.is_write()).await?;
        // A busy server may not come to say anything before the time of a watch is over.
        for _ in 0..SILENT_WATCHES {
            if outcome.what == "watch" && outcome.objects.is_empty() {
                outcome = self.send(case, case.is_write()).await?;
            }
        }
        if case.is_write() && !outcome.is_success() {
            return self.send(case, false).await;
        }
        Ok(outcome)
    }

    async fn send(&self, case: &Case, is_dry_run: bool) -> Result<Outcome, String> {
        let mut trouble = String::new();
        for _ in 0..ATTEMPTS {
            let sent = tokio::time::timeout(TIMEOUT, self.send_once(case, is_dry_run)).await;
            match sent.map_err(|_| format!("{case}: no answer within {TIMEOUT:?}"))? {
                Ok(outcome) if outcome.code == StatusCode::TOO_MANY_REQUESTS => {
                    trouble = "the server says that it is too busy".to_owned();
                }
                Ok(outcome) => return Ok(outcome),
                // A connection that is kept may be closed by the server just when it is used again.
                Err(error) => trouble = error.to_string(),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(format!("{case}: {trouble}"))
    }

    async fn send_once(
        &self,
        case: &Case,
        is_dry_run: bool,
    ) -> Result<Outcome, Box<dyn std::error::Error + Send + Sync>> {
        let mut request = Request::builder()
            .method(Method::from_bytes(case.method.as_bytes())?)
            .uri(case.target(is_dry_run));
        match case.user {
            ANONYMOUS => {}
            STRANGER => request = request.header("authorization", "Bearer nobody-gave-me-this"),
            user => request = request.header("authorization", format!("Bearer {user}")),
        }
        if let Some(other) = case.impersonated {
            request = request.header("impersonate-user", other);
        }
        if !case.content_type.is_empty() {
            request = request.header("content-type", case.content_type);
        }
        let request = request.body(Body::from(case.body(is_dry_run).into_bytes()))?;
        let (head, body) = self.0.send(request).await?.into_parts();
        let code = head.status.as_u16();
        if case.method == "HEAD" || (!case.is_resource && code < 400) {
            // Documents about the server itself are not compared, and some are long.
            drop(body);
            return Ok(Outcome { code, what: "-".to_owned(), objects: BTreeSet::new() });
        }
        let bytes = body.collect().await.map(|body| body.to_bytes());
        // A watch that is cut off has said what it had to say.
        let bytes = if case.is_watch() { bytes.unwrap_or_default() } else { bytes? };
        Ok(outcome(code, &bytes))
    }
}

fn outcome(code: u16, bytes: &Bytes) -> Outcome {
    let text = |value: &Value| value.as_str().unwrap_or_default().replace(' ', "_");
    let mut objects = BTreeSet::new();
    let values: Option<Vec<Value>> =
        serde_json::Deserializer::from_slice(bytes).into_iter().collect::<Result<_, _>>().ok();
    let what = match values.as_deref() {
        Some([status]) if status["kind"] == "Status" && code >= 400 => text(&status["reason"]),
        Some([object]) if object["kind"].is_string() => {
            let items = object["items"].as_array();
            let listed = items.into_iter().flatten().filter(|item| item["metadata"]["labels"][LABEL] == "1");
            objects.extend(listed.map(name));
            if items.is_none() && object["metadata"]["name"].is_string() {
                objects.insert(name(object));
            }
            text(&object["kind"])
        }
        Some([]) if code != 200 => "-".to_owned(),
        Some(events) if events.iter().all(|event| event["type"].is_string()) => {
            let seen = events.iter().map(|event| &event["object"]);
            objects.extend(seen.filter(|object| object["metadata"]["labels"][LABEL] == "1").map(name));
            "watch".to_owned()
        }
        _ => "text".to_owned(),
    };
    Outcome { code, what, objects }
}

fn name(object: &Value) -> String {
    let part = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    match part("namespace").as_str() {
        "" => part("name"),
        namespace => format!("{namespace}/{}", part("name")),
    }
}
