//! APIServices: who serves which group and version.
//!
//! What this server serves itself is registered by itself, as kube-apiserver does: the built-in versions when it starts,
//! those of definitions for as long as they are served. An APIService of somebody else's server is kept, and its condition
//! says why it is not available: requests are not forwarded yet.

mod availability;
mod registered;

use std::collections::HashSet;

use watchkeeper_storage::{Commit, Error as StorageError, Range, Storage};

use crate::server::{Error, Server};
pub(crate) use availability::{Backend, condition, set_condition};
pub(crate) use registered::{Registered, builtin, custom};

pub(crate) const GROUP: &str = "apiregistration.k8s.io";
pub(crate) const PLURAL: &str = "apiservices";

/// Who is said to have written what this server registers.
pub(crate) const MANAGER: &str = "kube-apiserver";

impl Server {
    /// Registers the built-in versions that are not registered, all at once.
    pub(crate) async fn register_builtin(&self) -> Result<(), Error> {
        let Some(resource) = self.registry().find(GROUP, "v1", PLURAL) else { return Ok(()) };
        let page = self.storage.range(Range::prefix(&resource.prefix)).await?;
        let present: HashSet<&str> = page.entries.iter().map(|entry| &*entry.key).collect();
        let (mut commit, mut is_empty) = (Commit::new(), true);
        for registered in builtin() {
            let key = resource.key(None, &registered.name());
            if present.contains(key.as_str()) {
                continue;
            }
            let object = self.made(&resource, registered.object(), MANAGER).map_err(|failure| {
                Error::Bootstrap { what: format!("apiservice {}", registered.name()), why: failure.message }
            })?;
            commit = commit.absent(key.as_str()).put(key.as_str(), resource.encode(&object));
            is_empty = false;
        }
        if is_empty {
            return Ok(());
        }
        match self.storage.commit(commit).await {
            // Another server on the same storage was faster.
            Ok(_) | Err(StorageError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
