use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;
use watchkeeper_connection::HttpClient;
use watchkeeper_core::Key;
use watchkeeper_supervision::Supervisor;

use crate::object::{InputKind, ObjectId};
use crate::policy::{KeySet, Policy, PolicyState};
use crate::table::{Attachment, Table};
use crate::upstream::{Backend, check_actively};

/// How often the keys of issuers are fetched, and how soon again after a failure.
const FETCH: (Duration, Duration) = (Duration::from_secs(300), Duration::from_secs(5));
/// The largest set of keys.
const KEYS_BYTES: usize = 1 << 20;

/// Tasks that backends and policies need: health checks, keys that are fetched.
pub(super) struct SideTasks {
    supervisor: Supervisor,
    tasks: JoinSet<()>,
    checks: HashMap<Key, (Arc<Backend>, Vec<AbortHandle>)>,
    fetches: HashMap<Key, (Uri, AbortHandle)>,
}

impl SideTasks {
    pub(super) fn new(supervisor: Supervisor) -> Self {
        Self { supervisor, tasks: JoinSet::new(), checks: HashMap::new(), fetches: HashMap::new() }
    }

    /// Begins and ends tasks for what has changed.
    pub(super) fn follow(&mut self, table: &Table, touched: &BTreeSet<ObjectId>) {
        while self.tasks.try_join_next().is_some() {}
        for id in touched {
            match id.kind {
                InputKind::Backend => self.follow_backend(&id.key, table.backend(&id.key)),
                InputKind::Policy => self.follow_policy(&id.key, table),
                _ => {}
            }
        }
    }

    fn follow_backend(&mut self, key: &Key, backend: Option<&Arc<Backend>>) {
        let known = self.checks.get(key).map(|(known, _)| known);
        if known.zip(backend).is_some_and(|(known, backend)| Arc::ptr_eq(known, backend)) {
            return;
        }
        for task in self.checks.remove(key).into_iter().flat_map(|(_, tasks)| tasks) {
            task.abort();
        }
        let Some((backend, check)) = backend.and_then(|backend| Some((backend, backend.active.clone()?)))
        else {
            return;
        };
        let begin = |endpoint: &crate::upstream::Endpoint| {
            let (backend, state, check) = (Arc::clone(backend), Arc::clone(&endpoint.state), check.clone());
            let (supervisor, name) = (self.supervisor.clone(), key.to_string());
            self.tasks.spawn(async move {
                let check = || check_actively(Arc::clone(&backend), Arc::clone(&state), check.clone());
                supervisor.run_for("health-check", &name, check).await;
            })
        };
        let tasks = backend.endpoints.iter().map(begin).collect();
        self.checks.insert(key.clone(), (Arc::clone(backend), tasks));
    }

    fn follow_policy(&mut self, key: &Key, table: &Table) {
        let policy = find(table, key);
        let url = policy.and_then(|policy| policy.jwt.as_ref()?.url.clone());
        let known = self.fetches.get(key).map(|(known, _)| known);
        if known == url.as_ref() {
            return;
        }
        if let Some((_, task)) = self.fetches.remove(key) {
            task.abort();
        }
        if let Some((url, policy)) = url.zip(policy) {
            let (supervisor, name) = (self.supervisor.clone(), key.to_string());
            let (policy, keys_url, state) = (policy.key.clone(), url.clone(), Arc::clone(&policy.state));
            let task = self.tasks.spawn(async move {
                let fetch = || fetch(policy.clone(), keys_url.clone(), Arc::clone(&state));
                supervisor.run_for("issuer-keys", &name, fetch).await;
            });
            self.fetches.insert(key.clone(), (url, task));
        }
    }

    pub(super) fn stop(&mut self) {
        self.tasks.abort_all();
    }
}

fn find<'a>(table: &'a Table, key: &Key) -> Option<&'a Arc<Policy>> {
    let mut all = table.attachments().flat_map(|(_, policies): (&Attachment, _)| policies.iter());
    all.find(|policy| policy.key == *key)
}

/// Fetches the keys of an issuer, again and again.
async fn fetch(policy: Key, url: Uri, state: Arc<PolicyState>) {
    let client = match HttpClient::new(None) {
        Ok(client) => client,
        Err(reason) => return tracing::error!("policy {policy}: {reason}"),
    };
    loop {
        let wait = match keys(&client, &url).await {
            Ok(keys) => {
                *state.keys.write() = Some(Arc::new(keys));
                FETCH.0
            }
            Err(reason) => {
                tracing::warn!("policy {policy}: spec.jwt.jwksUrl: {reason}; the keys before stay in use");
                FETCH.1
            }
        };
        sleep(wait).await;
    }
}

async fn keys(client: &HttpClient, url: &Uri) -> Result<KeySet, String> {
    let request = Request::get(url).body(Bytes::new()).map_err(|error| error.to_string())?;
    let response = client.send(request).await.map_err(|error| error.to_string())?;
    if !response.status().is_success() {
        return Err(format!("the answer has code {}", response.status().as_u16()));
    }
    let mut body = http_body_util::Limited::new(response.into_body(), KEYS_BYTES);
    let mut bytes = Vec::new();
    while let Some(frame) = http_body_util::BodyExt::frame(&mut body).await {
        if let Ok(data) = frame.map_err(|error| error.to_string())?.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    KeySet::parse(&bytes)
}
