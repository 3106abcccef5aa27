use std::sync::Arc;

use watchkeeper_apiserver::ApiServer;
use watchkeeper_apiserver::authentication::{Identity, Service};
use watchkeeper_apiserver::front::{Request, Response};

use crate::entrance::Broken;
use crate::real::Real;

/// What is behind the entrance.
#[derive(Clone)]
pub(crate) enum Server {
    /// Ours, in this process.
    Embedded(Arc<ApiServer>),
    /// A real one, a process elsewhere on this machine.
    Real(Arc<Real>),
}

impl Server {
    pub(crate) async fn call(&self, request: Request, identity: Identity) -> Result<Response, Broken> {
        match self {
            Self::Embedded(server) => Ok(server.call(request, identity).await),
            Self::Real(server) => server.call(request, identity).await,
        }
    }
}
