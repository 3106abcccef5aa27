//! What another server has written, before a client is told that something is not there or not allowed.

use std::time::Duration;

use crate::access::is_master;
use crate::authentication::Identity;
use crate::resource::ROOT;
use crate::server::Server;
use crate::status_error::StatusError;

/// How long what was written may take to be in force here, once it is in the storage.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Server {
    /// Waits until every definition is served here that any server has acknowledged. Returns whether there may be more of them now.
    pub(super) async fn learn_definitions(&self) -> Result<bool, StatusError> {
        if !self.storage.is_shared() {
            return Ok(false);
        }
        let revision = self.storage.get(ROOT, None).await?.revision;
        in_time(self.registrar.reach(revision)).await?;
        Ok(true)
    }

    /// Waits until every role and binding is in force here that any server has acknowledged. Returns whether somebody may do more now.
    /// Nothing is done for those without credentials: they are refused as often as they like.
    pub(super) async fn learn_roles(&self, identity: &Identity) -> Result<bool, StatusError> {
        if !self.may_learn_roles(identity) {
            return Ok(false);
        }
        let revision = self.storage.get(ROOT, None).await?.revision;
        in_time(self.access.reach(revision)).await?;
        Ok(true)
    }

    /// Whether other servers may have given rights to somebody that are not known here yet.
    pub(super) fn may_learn_roles(&self, identity: &Identity) -> bool {
        self.storage.is_shared() && identity.is_authenticated() && !is_master(identity)
    }
}

async fn in_time(reached: impl Future<Output = ()>) -> Result<(), StatusError> {
    let late = |_| StatusError::unavailable("what other servers have written is not known here yet");
    tokio::time::timeout(TIMEOUT, reached).await.map_err(late)
}
