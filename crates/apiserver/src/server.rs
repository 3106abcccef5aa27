//! The server as a whole: what it consists of, how it starts and stops.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use watchkeeper_storage::{Error as StorageError, Storage};
use watchkeeper_supervision::Supervisor;

use crate::access::{Access, Authorization};
use crate::aggregation::{Aggregator, FrontProxy};
use crate::authentication::Tokens;
use crate::budget::Budget;
use crate::conversion::Converter;
use crate::flow_control::FlowControl;
use crate::in_flight::{InFlight, InFlightLimits};
use crate::metrics::Metrics;
use crate::object::time::Clock;
use crate::registry::{Registrar, Registry};
use crate::service_accounts::{AccountTokens, Accounts};
use crate::stopping::{Stop, Stopping};
use crate::webhook_client::WebhookClient;
use crate::write::admission::{Chosen, PodSecurityConfiguration};
use crate::write::{Handles, Writer};

/// Options of an [`ApiServer`](crate::ApiServer).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The clock of the times in objects.
    pub clock: Clock,
    /// Whether objects go away with their owners. kube-apiserver leaves that to kube-controller-manager.
    pub garbage_collection: bool,
    /// Whether namespaces that are deleted are emptied. kube-apiserver leaves that to kube-controller-manager.
    pub namespace_deletion: bool,
    /// Whether every namespace is given the ServiceAccount `default`. kube-apiserver leaves that to kube-controller-manager.
    pub service_accounts: bool,
    /// The certificates, in PEM, by which clients know this server; none if they are not known here.
    pub certificate_authority: Option<String>,
    /// Whether every namespace is given these certificates, as the ConfigMap `kube-root-ca.crt`. kube-apiserver leaves that to
    /// kube-controller-manager.
    pub root_ca_publishing: bool,
    /// The time for which an event is kept after its last write.
    pub event_lifetime: Duration,
    /// The timeout of requests other than watches. A client may ask for less.
    pub request_timeout: Duration,
    /// The limits of requests that run at the same time.
    pub in_flight: InFlightLimits,
    /// Whether ClusterRoles that are the sum of others are kept up to date. kube-apiserver leaves that to
    /// kube-controller-manager.
    pub role_aggregation: bool,
    /// Whether requests are checked against roles. They are unless this says otherwise, as in a cluster: what is tried out
    /// here is meant to work there. [`Identity::admin`](crate::authentication::Identity::admin) may do everything either way.
    pub authorization: Authorization,
    /// The keys that sign and verify tokens of ServiceAccounts; without them, with a key that is made for this server and
    /// forgotten with it.
    pub account_tokens: Option<AccountTokens>,
    /// The admission plug-ins that are switched off, by upstream's names; see [`admission_plugins`](crate::admission_plugins).
    /// That is `ServiceAccount` unless this says otherwise, as in envtest.
    pub disabled_admission_plugins: Vec<String>,
    /// The admission plug-ins that are switched on, by upstream's names: those that are off by default, or switched off above.
    pub enabled_admission_plugins: Vec<String>,
    /// The configuration of the admission plug-in PodSecurity: its defaults and exemptions.
    pub pod_security: PodSecurityConfiguration,
    /// Whether what ResourceQuotas limit is added up, and given back when it is deleted. kube-apiserver leaves that to
    /// kube-controller-manager.
    pub resource_quotas: bool,
    /// Whether PersistentVolumeClaims that are deleted go once no pod uses them. kube-apiserver leaves that to
    /// kube-controller-manager.
    pub claim_protection: bool,
    /// Whether PersistentVolumes that are deleted go once they are not bound. kube-apiserver leaves that to kube-controller-manager.
    pub volume_protection: bool,
    /// Whether VolumeAttributesClasses that are deleted go once no claim and no volume uses them. kube-apiserver leaves that to
    /// kube-controller-manager.
    pub volume_attributes_class_protection: bool,
    /// Where Services are that webhooks are behind, as `namespace/name`, for servers that have no pods. Others are found by their
    /// EndpointSlices.
    pub service_addresses: BTreeMap<String, SocketAddr>,
    /// The bearer tokens that TokenReviews know besides those of ServiceAccounts. Files of them are read again by the server.
    pub tokens: Option<Arc<Tokens>>,
    /// Whether the storage is only looked at: nothing is written, neither by clients nor by the server itself, and writes are refused.
    pub read_only: bool,
    /// Watches over the server's tasks, and those of others that its health depends on, such as the storage's. One of its own by default.
    pub supervisor: Supervisor,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Clock::default(),
            garbage_collection: true,
            namespace_deletion: true,
            service_accounts: true,
            certificate_authority: None,
            root_ca_publishing: true,
            event_lifetime: Duration::from_secs(3600),
            request_timeout: Duration::from_secs(60),
            in_flight: InFlightLimits::default(),
            role_aggregation: true,
            authorization: Authorization::default(),
            account_tokens: None,
            disabled_admission_plugins: vec!["ServiceAccount".into()],
            enabled_admission_plugins: Vec::new(),
            pod_security: PodSecurityConfiguration::default(),
            resource_quotas: true,
            claim_protection: true,
            volume_protection: true,
            volume_attributes_class_protection: true,
            service_addresses: BTreeMap::new(),
            tokens: None,
            read_only: false,
            supervisor: Supervisor::default(),
        }
    }
}

/// The error of a server that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// What the server needs to exist could not be made.
    #[error("{what}: {why}")]
    Bootstrap {
        /// What it was.
        what: String,
        /// What was in the way.
        why: String,
    },
}

/// How often a server that stops looks whether requests are running. Only then: nobody waits for it otherwise, and requests do not pay for it.
const DRAIN_INTERVAL: Duration = Duration::from_millis(10);

/// A request that is being answered.
pub(crate) struct RunningRequest(Arc<Server>);

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
    }
}

/// What an [`ApiServer`](crate::ApiServer) consists of.
pub(crate) struct Server {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) registrar: Arc<Registrar>,
    /// Converts objects from version to version.
    pub(crate) converter: Arc<Converter>,
    pub(crate) options: Options,
    pub(crate) metrics: Metrics,
    pub(crate) access: Arc<Access>,
    /// Writes objects.
    pub(crate) writer: Writer,
    pub(crate) in_flight: Arc<InFlight>,
    /// Which FlowSchema a request belongs to.
    pub(crate) flow_control: FlowControl,
    /// Hands requests on to other servers.
    pub(crate) aggregator: Aggregator,
    /// The ServiceAccounts and their tokens.
    pub(crate) accounts: Arc<Accounts>,
    /// Where clients reach this server, once it listens.
    pub(crate) address: Mutex<Option<SocketAddr>>,
    /// What large bodies and objects may cost.
    pub(crate) budget: Arc<Budget>,
    /// Held while a document about all that is served is made.
    pub(crate) documenting: Arc<Semaphore>,
    /// Watches over the tasks of this server and of those who put it on sockets.
    pub(crate) supervisor: Supervisor,
    /// Whether it is about to stop: it is not ready any more, and does everything else as ever.
    is_leaving: AtomicBool,
    /// Whether new requests are asked to come again, to another server.
    is_refusing: AtomicBool,
    /// How many requests are being answered. A watch is answered when it has begun.
    running: AtomicUsize,
    stopping: watch::Sender<Option<Stop>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Server {
    /// The parts of a server. Nothing is read and no task runs yet.
    pub(crate) fn new(storage: Arc<dyn Storage>, options: Options) -> Result<Arc<Self>, Error> {
        let tokens = match options.account_tokens.clone() {
            Some(tokens) => tokens,
            None => AccountTokens::generate()
                .map_err(|error| Error::Bootstrap { what: "a key".into(), why: error.to_string() })?,
        };
        let metrics = Metrics::default();
        let (registrar, budget) = (Arc::new(Registrar::new()), Arc::new(Budget::default()));
        let access = Arc::new(Access::new(options.authorization));
        let stopping = watch::channel(None).0;
        let webhook_client = Arc::new(WebhookClient::new(
            Arc::clone(&storage),
            Arc::clone(&registrar),
            options.service_addresses.clone(),
        ));
        let converter =
            Arc::new(Converter::new(Arc::clone(&webhook_client), metrics.webhooks(), Arc::clone(&storage)));
        let front_proxy = FrontProxy::generate()
            .map_err(|error| Error::Bootstrap { what: "a certificate".into(), why: error.to_string() })?;
        let aggregator = Aggregator::new(Arc::clone(&webhook_client), front_proxy);
        let handles = Handles {
            storage: Arc::clone(&storage),
            registrar: Arc::clone(&registrar),
            access: Arc::clone(&access),
            budget: Arc::clone(&budget),
            clock: options.clock.clone(),
            stopping: Stopping::new(stopping.subscribe()),
            webhook_client,
            converter: Arc::clone(&converter),
            webhook_metrics: metrics.webhooks(),
            pod_security: options.pod_security.clone(),
            event_lifetime: options.event_lifetime,
        };
        let accounts = Accounts {
            tokens,
            storage: Arc::clone(&storage),
            registrar: Arc::clone(&registrar),
            clock: options.clock.clone(),
        };
        let chosen = Chosen {
            disabled: &options.disabled_admission_plugins,
            enabled: &options.enabled_admission_plugins,
            replenishes: options.resource_quotas,
        };
        let writer = Writer::new(handles, chosen);
        let supervisor = options.supervisor.clone();
        metrics.show_supervisor(&supervisor);
        Ok(Arc::new(Self {
            storage,
            registrar,
            converter,
            in_flight: InFlight::new(options.in_flight),
            flow_control: FlowControl::default(),
            options,
            access,
            writer,
            aggregator,
            accounts: Arc::new(accounts),
            address: Mutex::default(),
            supervisor,
            metrics,
            budget,
            documenting: Arc::new(Semaphore::new(1)),
            is_leaving: AtomicBool::new(false),
            is_refusing: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            stopping,
            tasks: Mutex::default(),
        }))
    }

    /// Ends all watches, spread over this time, and the server's own tasks, and waits for the latter. Requests are still answered.
    pub(crate) async fn stop(&self, spread: Duration) {
        self.begin_to_stop(spread);
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            // Panics are caught inside; it was told to end, and has.
            let _ = task.await;
        }
        self.sign_off().await;
        self.storage.retire().await;
    }

    /// Tells watches and tasks to end.
    pub(crate) fn begin_to_stop(&self, spread: Duration) {
        self.leave();
        self.stopping.send_if_modified(|stop| {
            let is_first = stop.is_none();
            stop.get_or_insert(Stop { at: Instant::now(), spread });
            is_first
        });
    }

    /// Is not ready any more.
    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Relaxed);
    }

    /// Asks new requests to come again, to another server.
    pub(crate) fn refuse(&self) {
        self.leave();
        self.is_refusing.store(true, Relaxed);
    }

    pub(crate) fn is_refusing(&self) -> bool {
        self.is_refusing.load(Relaxed)
    }

    /// Counts a request as running until this is dropped.
    pub(crate) fn run(self: &Arc<Self>) -> RunningRequest {
        self.running.fetch_add(1, Relaxed);
        RunningRequest(Arc::clone(self))
    }

    /// Waits until no request is running.
    pub(crate) async fn drained(&self) {
        while self.running.load(Relaxed) > 0 {
            tokio::time::sleep(DRAIN_INTERVAL).await;
        }
    }

    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registrar.current()
    }

    pub(crate) fn stopping(&self) -> Stopping {
        Stopping::new(self.stopping.subscribe())
    }

    /// Whether it is about to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_leaving.load(Relaxed)
    }

    /// Runs a task until it ends or the server stops. After a panic it is begun again, and has to find its way from what is
    /// stored.
    pub(crate) fn spawn<R>(
        self: &Arc<Self>,
        name: &'static str,
        mut task: impl FnMut(Arc<Self>) -> R + Send + 'static,
    ) where
        R: Future<Output = ()> + Send + 'static,
    {
        let server = Arc::clone(self);
        self.keep(async move {
            server.supervisor.run(name, || task(Arc::clone(&server))).await;
        });
    }

    /// The same on one of the servers that share a storage.
    pub(crate) fn spawn_led<R>(
        self: &Arc<Self>,
        name: &'static str,
        mut task: impl FnMut(Arc<Self>) -> R + Send + 'static,
    ) where
        R: Future<Output = ()> + Send + 'static,
    {
        let server = Arc::clone(self);
        self.keep(async move {
            let mut leadership = server.storage.leadership();
            loop {
                leadership.gained().await;
                tokio::select! {
                    () = leadership.lost() => {}
                    () = server.supervisor.run(name, || task(Arc::clone(&server))) => return,
                }
            }
        });
    }

    /// The same for work on one object, which does not make the server unready if it fails.
    pub(crate) fn spawn_for<R>(
        self: &Arc<Self>,
        name: &'static str,
        object: String,
        mut task: impl FnMut(Arc<Self>) -> R + Send + 'static,
    ) where
        R: Future<Output = ()> + Send + 'static,
    {
        let server = Arc::clone(self);
        self.keep(async move {
            server.supervisor.run_for(name, &object, || task(Arc::clone(&server))).await;
        });
    }

    /// Runs something until it ends or the server stops, which waits for it.
    fn keep(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut stopping = self.stopping();
        let handle = tokio::spawn(async move {
            tokio::select! {
                () = stopping.wait() => {}
                () = task => {}
            }
        });
        let mut tasks = self.tasks.lock();
        tasks.retain(|task| !task.is_finished());
        tasks.push(handle);
    }
}
