//! Every object is written as it is.

use std::fmt;

use futures_util::{StreamExt as _, stream};
use http::Request;
use serde_json::{Value, json};
use watchkeeper_connection::Connection;

use super::definition::Definition;
use super::state::StateFile;
use super::{answer, call, refusal};
use crate::failure::Failure;

/// How many objects are listed at a time.
const PAGE: usize = 500;

/// How often an object is written that others change at the same time.
const ATTEMPTS: usize = 10;

/// How many of the objects that failed are named.
const NAMED: usize = 10;

/// Only names are needed.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

pub(super) struct Migration<'a> {
    pub(super) connection: &'a Connection,
    pub(super) definition: &'a Definition,
    pub(super) dry_run: bool,
    pub(super) parallel: usize,
}

/// What became of the objects.
#[derive(Default)]
pub(super) struct Counts {
    /// Written, or stored in the right version already.
    pub(super) done: usize,
    /// Deleted before it was their turn.
    gone: usize,
    /// How many are still to come, as far as the server says.
    left: Option<usize>,
    /// Which could not be written, and why.
    failed: Vec<String>,
    /// How many these are in all.
    failures: usize,
}

enum Outcome {
    Done,
    Gone,
    Failed(String),
}

impl Migration<'_> {
    /// Writes all objects, page by page.
    pub(super) async fn run(
        &self,
        mut state: StateFile,
        progress: impl Fn(&Counts),
    ) -> Result<Counts, Failure> {
        let mut counts = Counts { done: state.done(), ..Counts::default() };
        let root = self.definition.collection()?;
        let mut token = state.token();
        loop {
            let (objects, next) = self.page(&root, &token).await?;
            counts.left = next.remaining;
            let writes = objects.iter().map(|object| self.write(&root, object));
            let mut writes = stream::iter(writes).buffer_unordered(self.parallel);
            while let Some(outcome) = writes.next().await {
                counts.add(outcome?);
                progress(&counts);
            }
            drop(writes);
            match next.token {
                Some(next) => token = next,
                None => return Ok(counts),
            }
            // What failed has to be tried again.
            if counts.failures == 0 && !self.dry_run {
                state.note(&token, counts.done)?;
            }
        }
    }

    /// The names of a page of objects, and where the next one begins.
    async fn page(&self, root: &str, token: &str) -> Result<(Vec<Value>, Next), Failure> {
        let plural = self.definition.plural();
        let mut token = token.to_owned();
        loop {
            let path = format!("{root}/{plural}?limit={PAGE}&continue={}", escaped(&token));
            let request = Request::get(path).header("accept", METADATA).body(String::new());
            let (code, mut body) = answer(self.connection, request.map_err(Failure::running)?).await?;
            match code {
                200 => {
                    let metadata = &body["metadata"];
                    let next = Next {
                        token: metadata["continue"]
                            .as_str()
                            .filter(|next| !next.is_empty())
                            .map(str::to_owned),
                        remaining: metadata["remainingItemCount"]
                            .as_u64()
                            .and_then(|left| left.try_into().ok()),
                    };
                    let items = body["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
                    return Ok((items, next));
                }
                // It took too long: the server says how to go on with what there is now. What came in between was stored right.
                410 if body["metadata"]["continue"].as_str().is_some_and(|next| !next.is_empty()) => {
                    token = body["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
                }
                410 if !token.is_empty() => token.clear(),
                code => {
                    let why = refusal(code, &body);
                    return Err(Failure::running(format!("{plural} cannot be listed: {why}")));
                }
            }
        }
    }

    /// Writes an object as it is.
    async fn write(&self, root: &str, object: &Value) -> Result<Outcome, Failure> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        let place = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
        let options = if self.dry_run { "?dryRun=All" } else { "" };
        let path = format!("{root}{place}/{}/{name}{options}", self.definition.plural());
        // The same object, whatever its state is by now.
        let patch = json!({"metadata": {"uid": text("uid")}}).to_string();
        for attempt in 1.. {
            let (code, body) =
                call(self.connection, "PATCH", &path, "application/merge-patch+json", patch.clone()).await?;
            match code {
                200 => return Ok(Outcome::Done),
                404 => return Ok(Outcome::Gone),
                // Deleted, and made again: whoever made it stored it right.
                409 if attempt > 1 && body["message"].as_str().is_some_and(|text| text.contains("UID")) => {
                    return Ok(Outcome::Gone);
                }
                409 | 429 | 503 if attempt < ATTEMPTS => {
                    let wait = body["details"]["retryAfterSeconds"].as_u64().unwrap_or_default().min(10);
                    tokio::time::sleep(std::time::Duration::from_secs(wait)).await;
                }
                code => {
                    let shown =
                        if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
                    return Ok(Outcome::Failed(format!("{shown}: {}", refusal(code, &body))));
                }
            }
        }
        Ok(Outcome::Gone)
    }
}

/// Where the next page begins.
struct Next {
    token: Option<String>,
    remaining: Option<usize>,
}

impl Counts {
    fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Done => self.done += 1,
            Outcome::Gone => self.gone += 1,
            Outcome::Failed(why) => {
                self.failures += 1;
                if self.failed.len() < NAMED {
                    self.failed.push(why);
                }
            }
        }
    }

    /// How far it is.
    pub(super) fn progress(&self) -> String {
        let seen = self.done + self.gone + self.failures;
        match self.left {
            Some(left) => format!("{seen} objects, about {left} to come after this page"),
            None => format!("{seen} objects"),
        }
    }

    /// That not all objects are stored in the storage version; `None` if they are.
    pub(super) fn failure(&self, name: &str) -> Option<Failure> {
        if self.failures == 0 {
            return None;
        }
        let more = self.failures - self.failed.len();
        let rest = if more == 0 { String::new() } else { format!("\n  and {more} more") };
        Some(Failure::running(format!(
            "{name}: {} objects could not be written, and storedVersions stay as they are:\n  {}{rest}",
            self.failures,
            self.failed.join("\n  ")
        )))
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects written", self.done)?;
        if self.gone > 0 {
            write!(f, ", {} deleted meanwhile", self.gone)?;
        }
        Ok(())
    }
}

/// A token as part of a query.
fn escaped(token: &str) -> String {
    let mut escaped = String::with_capacity(token.len());
    for byte in token.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}
