use std::net::SocketAddr;
use std::sync::Arc;

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

    /// What recognises the tokens that this server issues to ServiceAccounts.
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

    /// Ends all watches and the server's own tasks, and waits for the latter. Requests are still answered.
    pub async fn stop(&self) {
        self.0.stop().await;
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
        self.0.begin_to_stop();
    }
}
