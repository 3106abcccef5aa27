//! Backends: which server gets a request, and the connections to it.
//!
//! A [`Backend`] is compiled configuration and never changes. What is learned and counted (connections, health, how much is under way) is
//! in [`BackendState`] and [`EndpointState`], which outlive every edit of the object: they are found by the name of the backend and the
//! address of the server.

mod balance;
mod connect;
mod health;
mod pool;
mod state;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use watchkeeper_core::Key;

pub(crate) use balance::{BalanceBy, HashBy, Hashed};
pub(crate) use connect::{Transport, client_config, system_roots};
pub(crate) use health::{ActiveCheck, check_actively};
pub(crate) use pool::{Connections, Lease, Reason};
pub(crate) use state::{Active, Counted};
pub use state::{BackendState, EndpointState};

/// A compiled backend.
#[derive(Debug)]
pub struct Backend {
    /// Which backend.
    pub key: Key,
    /// Its servers.
    pub endpoints: Box<[Endpoint]>,
    /// Servers that it had before, whose connections stay open until they were idle for too long.
    pub(crate) former: Box<[Arc<EndpointState>]>,
    /// Which server gets the next request.
    pub(crate) balance: BalanceBy,
    /// How servers are reached.
    pub(crate) transport: Arc<Transport>,
    /// When servers that fail are left out.
    pub passive: Option<Passive>,
    /// How servers are asked how they are.
    pub(crate) active: Option<ActiveCheck>,
    /// Requests at a time.
    pub max_requests: Option<u32>,
    /// The `Host` that servers get.
    pub host: Option<HeaderValue>,
    /// What comes before the path of requests.
    pub path: Box<str>,
    /// What is learned and counted.
    pub state: Arc<BackendState>,
}

/// A server of a backend.
#[derive(Debug)]
pub struct Endpoint {
    /// Its share.
    pub weight: u32,
    /// What is learned and counted.
    pub state: Arc<EndpointState>,
}

/// When servers that fail are left out.
#[derive(Clone, Copy, Debug)]
pub struct Passive {
    /// After how many failures in a row.
    pub failures: u32,
    /// For how long at first.
    pub eject_for: Duration,
    /// How many of a hundred at most.
    pub max_percent: u32,
}

/// Why no server can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEndpoint {
    /// There are none.
    None,
    /// None is healthy.
    Unhealthy,
}

impl Backend {
    /// Chooses a server, not one of those that were tried already if there are others.
    pub(crate) fn choose(
        &self,
        hashed: Hashed<'_>,
        tried: &[Arc<EndpointState>],
    ) -> Result<&Arc<EndpointState>, NoEndpoint> {
        if self.endpoints.is_empty() {
            return Err(NoEndpoint::None);
        }
        let untried = |endpoint: &EndpointState| {
            endpoint.is_available() && !tried.iter().any(|tried| std::ptr::eq(&**tried, endpoint))
        };
        let chosen = self.balance.choose(&self.endpoints, &self.state, hashed, untried);
        let chosen = match chosen {
            None if !tried.is_empty() => {
                self.balance.choose(&self.endpoints, &self.state, hashed, EndpointState::is_available)
            }
            chosen => chosen,
        };
        chosen.map(|endpoint| &endpoint.state).ok_or(NoEndpoint::Unhealthy)
    }

    /// Closes connections that were idle for too long.
    pub(crate) fn sweep(&self) {
        let servers = self.endpoints.iter().map(|endpoint| &endpoint.state).chain(&self.former);
        servers.for_each(|server| server.sweep(self.transport.idle_timeout));
    }

    /// Notes what became of a request to a server, and leaves the server out if it fails too often.
    pub(crate) fn note(&self, endpoint: &EndpointState, ok: bool) {
        if ok {
            return endpoint.succeeded();
        }
        let failures = endpoint.failed();
        let Some(passive) = &self.passive else { return };
        if failures < passive.failures {
            return;
        }
        let ejected = self.endpoints.iter().filter(|endpoint| endpoint.state.is_ejected()).count();
        let most = self.endpoints.len() * passive.max_percent as usize / 100;
        if ejected < most && endpoint.eject(passive.eject_for) {
            tracing::warn!(backend = %self.key, endpoint = %endpoint.address, failures, "left out for a while: it fails");
        }
    }
}
