//! Conversion: objects of custom resources in other versions than the one they are stored in.
//!
//! A definition says how its versions are converted into each other. With the strategy `None` that is a matter of the `apiVersion`
//! and of the schemas, which [`Resource`] does where it reads. With `Webhook`, somebody has to be asked, which takes time and may
//! fail. So everything that reads objects has them made [entries](Converter::entries) of the version first: what the
//! storage has, as if it had been stored in that version. From there on nothing knows of webhooks.
//!
//! Converted entries are kept, by key, revision, epoch of the storage and version, within a limit. What is missing is converted in batches; who needs an
//! object that somebody else has asked for waits for that answer. Nothing is asked for unless somebody waits for it, and nothing
//! is tried again by itself: a webhook that fails costs those who want its kind in another version, and nobody else.

mod batch;
mod cache;
mod pending;
mod review;

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use watchkeeper_storage::{Entry, Revision, Storage};

use crate::crd::Conversion;
use crate::metrics::WebhookMetrics;
use crate::object::{meta, record};
use crate::resource::{InstalledCrd, Nature, Resource};
use crate::status_error::StatusError;
use crate::webhook_client::WebhookClient;
use cache::{Cache, Id};
pub(crate) use pending::Conversions;
use review::Failure;

/// Converts objects, with the webhooks of their definitions.
pub(crate) struct Converter {
    client: Arc<WebhookClient>,
    metrics: WebhookMetrics,
    storage: Arc<dyn Storage>,
    cache: Arc<Mutex<Cache>>,
}

/// An object on its way into the storage.
pub(crate) struct Encoded {
    /// The stored form.
    pub(crate) value: Bytes,
    /// The object as it will be read in the version in which it was written; its author is answered with it.
    pub(crate) object: Value,
    /// The same as an entry has it, if that took a webhook.
    shown: Option<Bytes>,
}

impl From<Failure> for StatusError {
    fn from(failure: Failure) -> Self {
        Self::untyped(failure.message)
    }
}

impl Encoded {
    /// An object that is stored in its own version, whichever its definition stores.
    pub(crate) fn unconverted(resource: &Resource, object: Value) -> Self {
        Self { value: resource.encode(&object), object, shown: None }
    }
}

impl Converter {
    pub(crate) fn new(
        client: Arc<WebhookClient>,
        metrics: WebhookMetrics,
        storage: Arc<dyn Storage>,
    ) -> Self {
        Self { client, metrics, storage, cache: Arc::new(Mutex::new(Cache::new(cache::MOST_BYTES))) }
    }

    /// A stored object as an entry of the version of a resource.
    pub(crate) async fn entry(
        &self,
        resource: &Resource,
        entry: Arc<Entry>,
    ) -> Result<Arc<Entry>, StatusError> {
        if !resource.needs_webhook(&entry) {
            return Ok(entry);
        }
        let converted = self.entries(resource, vec![Arc::clone(&entry)]).await?;
        Ok(converted.into_iter().next().unwrap_or(entry))
    }

    /// An object of one version of a definition in another one, as it is while it is being written. Nothing of it is kept.
    pub(crate) async fn object(
        &self,
        from: &Resource,
        object: &Value,
        to: &Resource,
    ) -> Result<Value, StatusError> {
        let Nature::Custom(installed, _) = &from.nature else { return Ok(object.clone()) };
        let mut converted = self.converted(installed, object.clone(), &to.api_version).await?;
        meta::copy(&mut converted, object, "resourceVersion");
        Ok(converted)
    }

    /// The stored form of an object that a client writes: in the version that its definition stores.
    pub(crate) async fn encode(&self, resource: &Resource, object: Value) -> Result<Encoded, StatusError> {
        let Some((installed, index, storage)) = unstored(resource) else {
            return Ok(Encoded::unconverted(resource, object));
        };
        let versions = &installed.definition.versions;
        let version = object["metadata"].get("resourceVersion").cloned();
        let stored_as = installed.definition.api_version(&versions[storage]);
        let mut stored = self.converted(installed, object, &stored_as).await?;
        versions[storage].schema.prune(&mut stored);
        // Defaults of the stored version are filled in when it is read.
        let mut read = stored.clone();
        versions[storage].schema.default(&mut read);
        let fingerprint = if read == stored { versions[storage].fingerprint } else { record::UNKNOWN };
        let value = record::encode(&stored, fingerprint);
        let mut object = self.converted(installed, read, &resource.api_version).await?;
        versions[index].schema.prune(&mut object);
        let shown =
            resource.converts_by_webhook().then(|| record::encode(&object, versions[index].fingerprint));
        if let Some(version) = version {
            meta::set(&mut object, "resourceVersion", version);
        }
        Ok(Encoded { value, object, shown })
    }

    async fn converted(
        &self,
        installed: &Arc<InstalledCrd>,
        mut object: Value,
        to: &str,
    ) -> Result<Value, StatusError> {
        if matches!(installed.definition.conversion, Conversion::Webhook(_)) {
            return Ok(self.asked(installed, object, to).await?);
        }
        crate::crd::object::convert(&mut object, to);
        Ok(object)
    }

    /// Keeps what a writer was shown, for those who read it next.
    pub(crate) fn keep(
        &self,
        resource: &Resource,
        key: &str,
        [created, modified]: [Revision; 2],
        of: &Encoded,
    ) {
        let (Some(value), Nature::Custom(installed, index)) = (&of.shown, &resource.nature) else { return };
        let (version, definition) = (*index, installed.revision);
        let id = Id { key: key.into(), modified, version, definition, epoch: self.storage.epoch() };
        let entry = Entry { key: key.into(), value: value.clone(), created, modified };
        self.cache.lock().insert(id, Arc::new(entry));
    }
}

/// The definition of a resource, which of its versions the resource is, and which other one is stored; `None` if it is stored
/// as it is.
fn unstored(resource: &Resource) -> Option<(&Arc<InstalledCrd>, usize, usize)> {
    let Nature::Custom(installed, index) = &resource.nature else { return None };
    let storage = installed.definition.versions.iter().position(|version| version.storage)?;
    (storage != *index).then_some((installed, *index, storage))
}
