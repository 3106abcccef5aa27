//! What controllers expect to find in a cluster, besides namespaces and roles: the block of addresses that Services have, and
//! since when tokens in Secrets are tracked.

use serde_json::{Value, json};
use watchkeeper_storage::{Commit, Error as StorageError};

use crate::meta;
use crate::server::{Error, Server};

impl Server {
    /// Makes what is missing. It is written by hand, and not as the objects of clients are: a status comes with it.
    pub(crate) async fn create_beginnings(&self) -> Result<(), Error> {
        let now = self.options.clock.stamp();
        let blocks = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "kubernetes"},
            "spec": {"cidrs": [crate::services::block()]},
            "status": {"conditions": [{
                "type": "Ready", "status": "True", "reason": "", "lastTransitionTime": now,
                "message": "Kubernetes default Service CIDR is ready",
            }]},
        });
        let tracking = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "kube-apiserver-legacy-service-account-token-tracking",
                "namespace": "kube-system",
            },
            "data": {"since": now.split('T').next()},
        });
        let blocks = self.create_beginning("networking.k8s.io", "servicecidrs", blocks, &now);
        let tracking = self.create_beginning("", "configmaps", tracking, &now);
        futures_util::try_join!(blocks, tracking).map(drop)
    }

    async fn create_beginning(
        &self,
        group: &str,
        plural: &str,
        mut object: Value,
        now: &str,
    ) -> Result<(), Error> {
        let Some(resource) = self.registry().find(group, "v1", plural) else { return Ok(()) };
        let namespace = Some(meta::text(&object, "namespace").to_owned()).filter(|name| !name.is_empty());
        let key = resource.key(namespace.as_deref(), meta::name(&object));
        meta::set(&mut object, "creationTimestamp", now);
        meta::set(&mut object, "uid", crate::random::uid());
        let commit = Commit::new().absent(key.as_str()).put(key.as_str(), resource.encode(&object));
        match self.storage.commit(commit).await {
            // It is there.
            Ok(_) | Err(StorageError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
