//! Many objects at a time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;
use watchkeeper_storage::Entry;

use super::Converter;
use super::cache::{Batch, Cache, Id, Pending};
use super::review::{self, Failure, ReviewVersion};
use crate::budget::beside;
use crate::crd::Conversion;
use crate::metrics::WebhookMetrics;
use crate::object::meta;
use crate::object::record::{self, Record};
use crate::resource::{InstalledCrd, Nature, Resource};
use crate::status_error::StatusError;
use crate::webhook_client::{CallLimits, ClientConfig, WebhookClient};

/// How many objects a webhook is asked for at once.
const MOST_OBJECTS: usize = 500;

/// How many bytes of objects a webhook is asked for at once.
const MOST_OBJECT_BYTES: usize = 2 << 20;

/// How many calls of one request run at a time.
const TOGETHER: usize = 4;

/// How long a webhook may take, as upstream has it.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How many bytes the answer may have for each that was asked for, and in any case.
const GROWTH: usize = 4;
const ANSWER_BYTES: usize = 4 << 20;

impl Converter {
    /// Stored objects as entries of the version of a resource: of each what it was converted to, or itself if it is of that version.
    /// One that cannot be converted fails them all.
    pub(crate) async fn entries(
        &self,
        resource: &Resource,
        mut entries: Vec<Arc<Entry>>,
    ) -> Result<Vec<Arc<Entry>>, StatusError> {
        let Nature::Custom(installed, version) = &resource.nature else { return Ok(entries) };
        if !resource.converts_by_webhook() {
            return Ok(entries);
        }
        for joins in [true, false] {
            let waiting = self.begin(installed, *version, resource, &mut entries, joins);
            let mut have_others_failed = false;
            for Waiting { at, pending, is_own } in waiting {
                match pending.batch.await {
                    Ok(converted) => {
                        if let Some(converted) = converted.get(pending.index) {
                            entries[at] = Arc::clone(converted);
                        }
                    }
                    Err(failure) if is_own || pending.is_alone => return Err(failure.into()),
                    // It may have been another object of somebody else's batch: what is missing is asked for once more, together.
                    Err(_) => have_others_failed = true,
                }
            }
            if !have_others_failed {
                break;
            }
        }
        Ok(entries)
    }

    /// Puts those in place that are kept, and sees to it that all others are being converted: by somebody else who has asked for them
    /// already, or only for this one.
    fn begin(
        &self,
        installed: &Arc<InstalledCrd>,
        version: usize,
        resource: &Resource,
        entries: &mut [Arc<Entry>],
        joins: bool,
    ) -> Vec<Waiting> {
        let (mut waiting, mut own, mut bytes) = (Vec::new(), Vec::new(), 0);
        let together = Together { turns: Arc::new(Semaphore::new(TOGETHER)), failed: Arc::default() };
        let epoch = self.storage.epoch();
        let mut cache = self.cache.lock();
        for at in 0..entries.len() {
            let entry = &entries[at];
            if !resource.needs_webhook(entry) {
                continue;
            }
            let id = Id {
                key: (&*entry.key).into(),
                modified: entry.modified,
                version,
                definition: installed.revision,
                epoch,
            };
            if let Some(kept) = cache.get(&id) {
                entries[at] = kept;
            } else if let Some(pending) = cache.pending.get(&id).filter(|_| joins) {
                waiting.push(Waiting { at, pending: pending.clone(), is_own: false });
            } else {
                bytes += entry.value.len();
                own.push((at, id));
                if own.len() >= MOST_OBJECTS || bytes >= MOST_OBJECT_BYTES {
                    waiting.extend(self.send(
                        &mut cache,
                        installed,
                        std::mem::take(&mut own),
                        entries,
                        &together,
                    ));
                    bytes = 0;
                }
            }
        }
        if !own.is_empty() {
            waiting.extend(self.send(&mut cache, installed, own, entries, &together));
        }
        waiting
    }

    /// Begins a call for some of the entries.
    fn send(
        &self,
        cache: &mut Cache,
        installed: &Arc<InstalledCrd>,
        own: Vec<(usize, Id)>,
        entries: &[Arc<Entry>],
        together: &Together,
    ) -> Vec<Waiting> {
        let version = own.first().map_or(0, |(_, id)| id.version);
        let call = Call {
            client: Arc::clone(&self.client),
            metrics: self.metrics.clone(),
            installed: Arc::clone(installed),
            version,
        };
        let ids: Vec<Id> = own.iter().map(|(_, id)| id.clone()).collect();
        let asked: Vec<Arc<Entry>> = own.iter().map(|(at, _)| Arc::clone(&entries[*at])).collect();
        let (kept, together) = (Arc::clone(&self.cache), together.clone());
        // A task of its own: whoever else waits for it gets the answer even if who began it goes away. It ends with the call.
        let task = tokio::spawn(async move {
            let forget = Forget { cache: kept, ids };
            let converted = together.run(call.convert(asked)).await?;
            let mut cache = forget.cache.lock();
            for (id, entry) in forget.ids.iter().zip(&converted) {
                cache.insert(id.clone(), Arc::clone(entry));
            }
            Ok(converted.into())
        });
        let batch: Batch = async move {
            task.await.unwrap_or_else(|_| {
                let message = "the conversion was interrupted".to_owned();
                Err(Failure { message, kind: review::CALL })
            })
        }
        .boxed()
        .shared();
        let is_alone = own.len() == 1;
        let pending = own.into_iter().enumerate().map(|(index, (at, id))| {
            let pending = Pending { batch: batch.clone(), index, is_alone };
            cache.pending.insert(id, pending.clone());
            Waiting { at, pending, is_own: true }
        });
        pending.collect()
    }

    /// Asks the webhook of a definition for one object.
    pub(super) async fn asked(
        &self,
        installed: &Arc<InstalledCrd>,
        object: Value,
        to: &str,
    ) -> Result<Value, Failure> {
        if object["apiVersion"] == to {
            return Ok(object);
        }
        let (client, metrics) = (&self.client, &self.metrics);
        let mut converted = ask(client, metrics, installed, vec![object], to).await?;
        converted.pop().ok_or_else(|| Failure { message: String::new(), kind: review::CALL })
    }
}

/// An entry that is being converted, and where it stands.
struct Waiting {
    at: usize,
    pending: Pending,
    /// Whether it was asked for by who waits.
    is_own: bool,
}

/// The calls of one request.
#[derive(Clone)]
struct Together {
    turns: Arc<Semaphore>,
    /// The first failure: what was not asked for by then is not asked for any more.
    failed: Arc<Mutex<Option<Failure>>>,
}

impl Together {
    async fn run<T>(&self, call: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let _turn = self.turns.acquire().await;
        if let Some(failure) = self.failed.lock().clone() {
            return Err(failure);
        }
        let outcome = call.await;
        if let Err(failure) = &outcome {
            self.failed.lock().get_or_insert_with(|| failure.clone());
        }
        outcome
    }
}

/// Ends that objects are being converted, however the call ended.
struct Forget {
    cache: Arc<Mutex<Cache>>,
    ids: Vec<Id>,
}

impl Drop for Forget {
    fn drop(&mut self) {
        let mut cache = self.cache.lock();
        for id in &self.ids {
            cache.pending.remove(id);
        }
    }
}

/// What a call for stored objects needs.
struct Call {
    client: Arc<WebhookClient>,
    metrics: WebhookMetrics,
    installed: Arc<InstalledCrd>,
    version: usize,
}

impl Call {
    /// Stored objects as entries of the version.
    async fn convert(&self, entries: Vec<Arc<Entry>>) -> Result<Vec<Arc<Entry>>, Failure> {
        let definition = &self.installed.definition;
        let version = &definition.versions[self.version];
        let objects =
            beside(|| entries.iter().map(|entry| self.stored(entry)).collect::<Result<Vec<_>, _>>())?;
        let to = definition.api_version(version);
        let converted = ask(&self.client, &self.metrics, &self.installed, objects, &to).await?;
        let encoded = |(mut object, entry): (Value, &Arc<Entry>)| {
            version.schema.prune(&mut object);
            let value = record::encode(&object, version.fingerprint);
            let Entry { key, created, modified, .. } = &**entry;
            Arc::new(Entry { key: key.clone(), value, created: *created, modified: *modified })
        };
        Ok(beside(|| converted.into_iter().zip(&entries).map(encoded).collect()))
    }

    /// A stored object in the version in which it is stored, as its schema has it now.
    fn stored(&self, entry: &Entry) -> Result<Value, Failure> {
        let unread = |message: String| Failure { message, kind: review::CALL };
        let record = Record::read(entry).map_err(|error| unread(error.to_string()))?;
        let mut object = record.object().map_err(|error| unread(format!("{}: {error}", entry.key)))?;
        let stored = record.api_version().unwrap_or_default();
        let definition = &self.installed.definition;
        let known = definition.versions.iter().find(|version| definition.api_version(version) == stored);
        let Some(version) = known else {
            return Err(unread(format!("request to convert CR from an invalid group/version: {stored}")));
        };
        if record.fingerprint != version.fingerprint {
            version.schema.prune(&mut object);
            version.schema.default(&mut object);
        }
        Ok(object)
    }
}

/// Asks the webhook of a definition for objects in another version.
async fn ask(
    client: &WebhookClient,
    metrics: &WebhookMetrics,
    installed: &InstalledCrd,
    mut objects: Vec<Value>,
    to: &str,
) -> Result<Vec<Value>, Failure> {
    let outcome = async {
        let Conversion::Webhook(webhook) = &installed.definition.conversion else { return Ok(Vec::new()) };
        let Some(version) = ReviewVersion::read(&webhook["conversionReviewVersions"]) else {
            let message = "no supported conversion review versions".to_owned();
            return Err(Failure { message, kind: review::CALL });
        };
        for object in &mut objects {
            // What is stored does not have it.
            meta::remove(object, "resourceVersion");
        }
        let uid = crate::object::random::uid();
        let body: Bytes = beside(|| review::request(version, &uid, &objects, to));
        let limits = CallLimits {
            timeout: TIMEOUT,
            tells_timeout: true,
            answer_bytes: body.len().saturating_mul(GROWTH).saturating_add(ANSWER_BYTES),
        };
        let answer = client.post(&ClientConfig::read(&webhook["clientConfig"]), limits, body).await;
        let answer = answer.map_err(|why| {
            let about = objects.first().map(review::about).unwrap_or_default();
            Failure { message: format!("{about} failed: {why}"), kind: review::CALL }
        })?;
        beside(|| review::read(&answer, version, &uid, &objects, to))
    };
    let outcome = outcome.await;
    metrics.converted(outcome.as_ref().err().map(|failure| failure.kind));
    outcome
}
