//! What the write pipeline works with.

use std::sync::Arc;
use std::time::Duration;

use watchkeeper_storage::{Revision, Storage};

use super::Allocator;
use super::admission::listers::Listers;
use super::admission::resource_quota::ResourceQuota;
use super::admission::webhooks::Webhooks;
use super::admission::{Chain, Chosen, PluginHandles, PodSecurityConfiguration};
use crate::access::Access;
use crate::budget::Budget;
use crate::conversion::Converter;
use crate::metrics::WebhookMetrics;
use crate::object::time::Clock;
use crate::registry::Registrar;
use crate::resource::Resource;
use crate::stopping::Stopping;
use crate::webhook_client::WebhookClient;

/// The handles that a [`Writer`] is made of.
pub(crate) struct Handles {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) registrar: Arc<Registrar>,
    pub(crate) access: Arc<Access>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) clock: Clock,
    pub(crate) stopping: Stopping,
    pub(crate) webhook_client: Arc<WebhookClient>,
    pub(crate) converter: Arc<Converter>,
    pub(crate) webhook_metrics: WebhookMetrics,
    pub(crate) pod_security: PodSecurityConfiguration,
    pub(crate) event_lifetime: Duration,
}

/// Writes objects. See the [module](super) for the way of a write.
pub(crate) struct Writer {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) registrar: Arc<Registrar>,
    pub(super) access: Arc<Access>,
    pub(super) budget: Arc<Budget>,
    pub(super) clock: Clock,
    pub(super) stopping: Stopping,
    pub(super) converter: Arc<Converter>,
    /// For how long events are needed.
    event_lifetime: Duration,
    pub(super) admission: Chain,
    /// What admission plug-ins look up.
    pub(crate) listers: Arc<Listers>,
    /// Which Service has which cluster IP and node ports.
    pub(crate) allocator: Allocator,
    /// The revision of the last CRD that was written here. Held while one is written: no two may have the same names.
    pub(super) crd_names: tokio::sync::Mutex<Revision>,
}

impl Writer {
    /// A writer with these plug-ins in its admission chain.
    pub(crate) fn new(handles: Handles, chosen: Chosen<'_>) -> Self {
        let Handles { storage, registrar, access, budget, clock, stopping, .. } = handles;
        let Handles { webhook_client, converter, webhook_metrics, pod_security, event_lifetime, .. } =
            handles;
        let listers = Arc::new(Listers::default());
        let webhooks = Webhooks::new(
            Arc::clone(&storage),
            Arc::clone(&registrar),
            webhook_client,
            Arc::clone(&converter),
            webhook_metrics,
        );
        let plugins = PluginHandles {
            access: Arc::clone(&access),
            listers: Arc::clone(&listers),
            registrar: Arc::clone(&registrar),
            storage: Arc::clone(&storage),
            pod_security,
        };
        Self {
            admission: Chain::new(&plugins, webhooks, chosen),
            listers,
            storage,
            registrar,
            access,
            budget,
            clock,
            stopping,
            converter,
            event_lifetime,
            allocator: super::service::allocator(),
            crd_names: tokio::sync::Mutex::default(),
        }
    }

    /// For how long an object of this resource is needed, if not until somebody deletes it.
    pub(super) fn lifetime(&self, resource: &Resource) -> Option<Duration> {
        resource.is_events().then_some(self.event_lifetime)
    }

    /// The quotas of all namespaces, unless nobody looks at them.
    pub(crate) fn quota(&self) -> Option<&ResourceQuota> {
        self.admission.quota.as_ref()
    }

    /// The webhooks that writes are shown to.
    pub(crate) fn webhooks(&self) -> &Webhooks {
        &self.admission.webhooks
    }
}
