//! How a server starts.

use std::sync::Arc;

use watchkeeper_storage::Storage;

use crate::server::{Error, Options, Server};
use crate::{bootstrap, lifecycle};

/// Starts a server: reads CRDs, creates the objects that every cluster has, and reads roles and what admission
/// looks up.
pub(crate) async fn start(storage: Arc<dyn Storage>, options: Options) -> Result<Arc<Server>, Error> {
    let server = Server::new(storage, options)?;
    lifecycle::start(&server).await?;
    if !server.options.read_only {
        bootstrap::create(&server).await?;
    }
    lifecycle::start_listers(&server).await?;
    lifecycle::start_roles(&server).await?;
    lifecycle::load_flow_control(&server).await?;
    lifecycle::publish_front_proxy(&server).await?;
    Ok(server)
}
