use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use watchkeeper_storage::Storage;
use watchkeeper_supervision::Supervisor;

use crate::authentication::{Identity, Service};
use crate::front::{AccessMetrics, Request, Response};
use crate::server::{Error, Options, Server};
use crate::service_accounts::AccountAuthenticator;

/// A Kubernetes API over a [`Storage`].
///
/// The server is a function from requests to responses ([`Service`]) and needs no socket. It keeps no state but what can be
/// made again from the storage: any number of them may run over one.
///
/// It owns a few tasks that do what kube-controller-manager does elsewhere: they empty namespaces and definitions that are
/// deleted, collect what has lost its owner, and give namespaces what every namespace has. One that panics is begun
/// again; `/readyz` names those that do not recover. [`stop`](Self::stop) ends them and waits for them; dropping the server ends
/// them without waiting.
pub struct ApiServer(Arc<Server>);

impl ApiServer {
    /// Starts a server: reads the definitions of custom resources and makes sure that the namespaces exist which
    /// clients rely on. Needs a tokio runtime.
    pub async fn start(storage: Arc<dyn Storage>, options: Options) -> Result<Self, Error> {
        crate::startup::start(storage, options).await.map(Self)
    }

    /// Says where other machines reach this server: in the Endpoints and the EndpointSlice of the Service
    /// `default/kubernetes`. A loopback address is no such place, and neither is none; both leave the Service without
    /// endpoints. The address is also in the document by which others find the keys of tokens.
    pub async fn advertise(&self, address: Option<SocketAddr>) -> Result<(), Error> {
        self.0.advertise(address).await
    }

    /// The authenticator of the tokens that this server issues to ServiceAccounts.
    pub fn account_authenticator(&self) -> AccountAuthenticator {
        AccountAuthenticator::new(&self.0.accounts)
    }

    /// Shows these counts among the metrics of this server: those of the [`Front`](crate::front::Front) before it. Their names begin
    /// with `watchkeeper_`.
    pub fn show_access(&self, metrics: &AccessMetrics) {
        self.0.metrics.show_access(metrics);
    }

    /// All metrics, as `/metrics` shows them.
    pub fn metrics(&self) -> String {
        self.0.metrics.text(&self.0.storage.stats())
    }

    /// Whether it is ready, as `/readyz` says it; otherwise what is not.
    pub fn readiness(&self) -> Result<(), String> {
        crate::handlers::health::readiness(&self.0)
    }

    /// Is not ready any more (`/readyz` says `shutdown`), and does everything else as ever: who sends clients here has time to notice.
    pub fn leave(&self) {
        self.0.leave();
    }

    /// Answers new requests with 429 and `Retry-After`, so that clients turn to another server; those that run are answered. Questions after
    /// its health and its metrics are answered as ever.
    pub fn refuse(&self) {
        self.0.refuse();
    }

    /// Waits until no request is being answered. A watch is answered when it has begun.
    pub async fn drained(&self) {
        self.0.drained().await;
    }

    /// The number of open watches.
    pub fn watches(&self) -> usize {
        self.0.storage.stats().watchers
    }

    /// Ends all watches and the server's own tasks, and waits for the latter. Requests are still answered.
    pub async fn stop(&self) {
        self.stop_within(Duration::ZERO).await;
    }

    /// The same, with watches ending one after the other over this time, in which they tell what happens: their clients turn to
    /// other servers, and should not all do so at once. Does not wait for watches.
    pub async fn stop_within(&self, spread: Duration) {
        self.0.stop(spread).await;
    }
}

impl Service for ApiServer {
    fn call(&self, request: Request, identity: Identity) -> BoxFuture<'static, Response> {
        Box::pin(Arc::clone(&self.0).answer(request, identity))
    }

    fn supervisor(&self) -> Supervisor {
        self.0.supervisor.clone()
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.0.begin_to_stop(Duration::ZERO);
    }
}

/// Whether a key of the storage is about the servers that share it, and means nothing elsewhere: who has claimed which address or port of a
/// Service, which the Services say too, and where the servers are.
pub fn is_about_servers(key: &str) -> bool {
    crate::write::is_claim(key) || key.starts_with(crate::advertise::SERVERS)
}
