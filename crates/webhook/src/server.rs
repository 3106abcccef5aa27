use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use watchkeeper_connection::Connection;
use watchkeeper_front::{ClientAuth, Deadlines, Front, Limits, Listener, Tls};
use watchkeeper_supervision::Supervisor;

use crate::api::Api;
use crate::certificates::{FilesKeeper, Keeper, Memory, ShownCertificate, Status, Vault};
use crate::configuration::{Configuration, Setting, configurations};
use crate::metrics::WebhookMetrics;
use crate::nearby;
use crate::options::{
    Certificates, DRAIN_TIMEOUT, PORT, Plan, WITHDRAW_TIMEOUT, Way, WebhookOptions, secret_name,
};
use crate::service::{CONVERT, Routes, WebhookService};
use crate::webhook::AnyWebhook;

/// Connections at a time. API servers keep a few each; nobody else has a reason to come.
const CONNECTIONS: usize = 512;

/// The error of webhooks that cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be had.
    #[error("cannot serve webhooks: {0}")]
    Listen(#[from] watchkeeper_front::Error),
    /// The webhooks do not fit together.
    #[error("{0}")]
    Webhooks(String),
}

/// The program that webhooks are part of.
pub struct Program<'a> {
    /// The name of the program: that of its configurations, and of their field manager.
    pub name: &'a str,
    /// The namespace of the program.
    pub namespace: &'a str,
    /// The API server. Beside one at a loopback address, it is asked where it is; everything else goes over the connection that
    /// [`WebhookServer::run`] is given.
    pub connection: &'a Connection,
    /// Whether the program installs the CRD of this name itself.
    pub installs: &'a dyn Fn(&str) -> bool,
    /// Whether definitions and empty webhook configurations come with the manifests or the chart of the program, and go with them. Then
    /// a configuration that API servers ask through a Service is not created: one that was deleted would come back, and be left
    /// behind by an uninstallation.
    pub installed_by_others: bool,
    /// The supervisor of the tasks.
    pub supervisor: &'a Supervisor,
}

/// The name of the task that keeps certificates and configurations.
const KEEPER: &str = "webhook-certificates";

/// A server of webhooks.
///
/// From here on connections are taken; certificates and configurations come with [`run`](Self::run).
///
/// ```no_run
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use tokio_util::sync::CancellationToken;
/// use watchkeeper_connection::Connection;
/// use watchkeeper_supervision::Supervisor;
/// use watchkeeper_webhook::{
///     AdmissionRequest, Program, ServeError, Verdict, Webhook, WebhookMetrics, WebhookOptions, WebhookServer,
/// };
///
/// fn validate(_new: &ConfigMap, _old: Option<&ConfigMap>, _: &AdmissionRequest) -> Verdict {
///     Verdict::allow()
/// }
///
/// async fn serve(connection: Connection, stop: CancellationToken) -> Result<(), ServeError> {
///     let webhooks = [Webhook::of::<ConfigMap>().validate(validate).into()];
///     let program = Program {
///         name: "maps",
///         namespace: connection.default_namespace(),
///         connection: &connection,
///         installs: &|_| false,
///         installed_by_others: false,
///         supervisor: &Supervisor::default(),
///     };
///     let options = WebhookOptions::default();
///     let server = WebhookServer::start(&webhooks, options, &program, &WebhookMetrics::default())?;
///     server.run(connection.clone(), stop).await;
///     Ok(())
/// }
/// ```
pub struct WebhookServer {
    front: Front,
    address: SocketAddr,
    /// What is served.
    paths: String,
    plan: Plan,
    options: WebhookOptions,
    connection: Connection,
    name: String,
    namespace: String,
    configurations: Vec<Configuration>,
    certificate: ShownCertificate,
    status: Status,
    metrics: WebhookMetrics,
    published: Option<oneshot::Sender<()>>,
    leaving: CancellationToken,
    supervisor: Supervisor,
}

impl WebhookServer {
    /// Starts to listen.
    ///
    /// # Errors
    ///
    /// If the address is taken, or versions of a kind do not fit together.
    pub fn start(
        webhooks: &[AnyWebhook],
        options: WebhookOptions,
        program: &Program<'_>,
        metrics: &WebhookMetrics,
    ) -> Result<Self, ServeError> {
        let mut routes = Routes::default();
        webhooks.iter().for_each(|webhook| webhook.serve(&mut routes));
        let converts = (!routes.conversion.is_empty()).then(|| CONVERT.to_owned());
        let paths: Vec<String> = routes.admission.keys().cloned().chain(converts).collect();
        let plan = options.plan(program.name, program.connection.locality());
        let listener = match Listener::bind(plan.address) {
            Err(_) if plan.or_any_port => Listener::bind((plan.address.ip(), 0).into())?,
            bound => bound?,
        };
        let address = listener.address();
        let configurations = match plan.way.endpoint(program.namespace, address) {
            None => Vec::new(),
            Some(endpoint) => {
                let in_cluster = matches!(plan.way, Way::Service(_));
                let setting = Setting {
                    name: program.name,
                    endpoint: &endpoint,
                    own_namespace: in_cluster.then_some(program.namespace),
                    installs: program.installs,
                    installed_by_others: in_cluster && program.installed_by_others,
                };
                configurations(webhooks, &setting).map_err(ServeError::Webhooks)?
            }
        };
        let certificate = ShownCertificate::default();
        let leaving = CancellationToken::new();
        let service =
            WebhookService::new(routes, metrics.clone(), program.supervisor.clone(), leaving.clone());
        let deadlines = Deadlines { body_stall: Duration::from_secs(10), ..Deadlines::default() };
        let limits = Limits {
            // Nobody says who they are, and API servers come from a few addresses.
            strangers: CONNECTIONS,
            strangers_per_address: CONNECTIONS / 2,
            ..Limits::of_connections(CONNECTIONS)
        };
        let front = Front::builder(service)
            .https(listener, Tls::new(certificate.clone(), &ClientAuth::Off)?)
            .limits(limits)
            .deadlines(deadlines)
            .metrics(&metrics.access)
            .supervisor(program.supervisor.clone())
            .task("webhooks");
        let server = Self {
            front: front.start()?,
            address,
            paths: paths.join(", "),
            options,
            connection: program.connection.clone(),
            name: program.name.to_owned(),
            namespace: program.namespace.to_owned(),
            configurations,
            certificate,
            status: Status::new("webhooks are not published yet"),
            metrics: metrics.clone(),
            published: None,
            plan,
            leaving,
            supervisor: program.supervisor.clone(),
        };
        server.tell();
        Ok(server)
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A check for readiness: whether requests of an API server are answered, or why not.
    pub fn check(&self) -> impl Fn() -> Result<(), String> + Send + Sync + use<> {
        let status = self.status.clone();
        move || status.get()
    }

    /// Resolves when everything was published, or could not be at first.
    pub fn published(&mut self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.published = Some(sender);
        receiver
    }

    /// Says what it takes to be asked from elsewhere.
    fn tell(&self) {
        let (address, paths) = (self.address, &self.paths);
        match &self.plan.way {
            Way::Not => {
                // Where it is going to listen then.
                let next = self.options.address.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, PORT).into());
                tracing::warn!(
                    "webhooks are served on {address}, and nobody asks them: the API server is on another machine. Make a tunnel for TCP \
                     from a host and a port that it reaches to {next} (TLS ends here), and start with --webhook-url https://HOST:PORT; \
                     it is going to ask for {paths}. In a cluster no tunnel is needed"
                );
            }
            way => tracing::info!(%address, ?way, paths, "webhooks are served"),
        }
    }

    /// Makes sure that an API server at a loopback address is on this machine. What it could not reach is not published.
    async fn look_around(&mut self, stop: &CancellationToken) {
        if !self.plan.is_supposed {
            return;
        }
        let api = Api { connection: self.connection.clone(), manager: self.name.clone() };
        let is_here = nearby::is_here(&api, &self.status, stop).await;
        if is_here != Some(true) {
            self.plan.way = Way::Not;
            self.configurations.clear();
        }
        if is_here == Some(false) {
            self.tell();
        }
    }

    /// Keeps certificates and configurations until `stop`; then serves on for a while, and drains, in
    /// [`WebhookOptions::stop_time`] at most. Readiness is the caller's: it has to fail before, so that nobody comes any more.
    pub async fn run(mut self, connection: Connection, stop: CancellationToken) {
        let api = Api { connection, manager: self.name.clone() };
        self.look_around(&stop).await;
        let Self { front, plan, options, name, namespace, configurations, certificate, status, .. } = self;
        let supervisor = self.supervisor;
        let names = plan.way.names(&namespace, self.address);
        if plan.way == Way::Not && configurations.is_empty() {
            // Who runs a program here wants it to work on; the log has said what is missing.
            status.set(Ok(()));
        }
        match options.certificates {
            Certificates::Files(folder) => {
                let configurations = configurations.clone();
                let (api, published) = (api.clone(), self.published);
                // What an API server asks for.
                let name = names.into_iter().next().unwrap_or_default();
                let keeper =
                    FilesKeeper::new(api, folder, configurations, name, certificate, status, published);
                supervisor.run_with(KEEPER, keeper, |keeper| Box::pin(keeper.run(stop.clone()))).await;
            }
            Certificates::Own(rotation) => {
                let shared = matches!(plan.way, Way::Service(_));
                let vault = match shared {
                    true => Vault::Secret { namespace, name: secret_name(&name) },
                    false => Vault::Memory(None),
                };
                let keeper = Keeper {
                    api: api.clone(),
                    vault,
                    configurations: configurations.clone(),
                    names,
                    rotation,
                    certificate,
                    status,
                    metrics: self.metrics,
                    published: self.published,
                    memory: Memory::default(),
                };
                supervisor.run_with(KEEPER, keeper, |keeper| Box::pin(keeper.run(stop.clone()))).await;
            }
        }
        if plan.way.is_alone() {
            // Nobody else serves them: what waits for them would wait forever.
            let withdrawn = timeout(WITHDRAW_TIMEOUT, Keeper::withdraw(&api, &configurations)).await;
            if withdrawn.is_err() {
                tracing::warn!(
                    program = %name,
                    "webhook configurations may be left behind: the API server did not answer within {WITHDRAW_TIMEOUT:?}"
                );
            }
        }
        // Those who have a connection use it for one review more at most, so that none is lost with it.
        self.leaving.cancel();
        tokio::time::sleep(plan.linger).await;
        front.shutdown(DRAIN_TIMEOUT).await;
    }
}

impl std::fmt::Debug for WebhookServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookServer").field("address", &self.address).finish_non_exhaustive()
    }
}
