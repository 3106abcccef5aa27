//! What every cluster begins with: namespaces, roles and bindings, priorities, the Service by which programs find the server, the block
//! of addresses that Services have, since when tokens in Secrets are tracked, the APIServices of what is built in, and what flow control begins with.

mod api_services;
mod change;
mod flow_control;
mod roles;

use std::sync::Arc;

use serde_json::{Value, json};
use watchkeeper_storage::{Commit, Error as StorageError, Revision};

use change::Change;

use crate::access::Authorization;
use crate::object::meta;
use crate::resource::Resource;
use crate::server::{Error, Server};
use crate::status_error::StatusError;
use crate::write::{Holdings, Reservation};

/// The namespaces that are always there.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The priorities of what a cluster cannot do without: names, values, and what they are for.
const PRIORITY_CLASSES: [(&str, i64, &str); 2] = [
    ("system-cluster-critical", 2_000_000_000, "For what the cluster needs somewhere, on whichever node."),
    ("system-node-critical", 2_000_001_000, "For what a node needs, and what cannot run elsewhere."),
];

/// Who is said to have made them.
const MANAGER: &str = "watchkeeper";

/// How often this is tried when another server does the same at the same time.
const ATTEMPTS: usize = 10;

/// How many objects fit into a commit of any shared storage.
const MOST_SHARED: usize = 100;

/// Creates the objects that are missing and completes those that lack something, in one commit, if it is a storage of this server alone: a
/// first start waits for the disk once, and no start finds a part of them.
pub(crate) async fn create(server: &Server) -> Result<(), Error> {
    server.create_bootstrap_objects().await
}

impl Server {
    async fn create_bootstrap_objects(&self) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            let mut changes = self.missing_namespaces().await?;
            if self.options.authorization != Authorization::None {
                changes.extend(roles::missing(self).await?);
            }
            changes.extend(self.missing_priority_classes().await?);
            changes.extend(self.missing_settings().await?);
            changes.extend(api_services::missing(self).await?);
            changes.extend(flow_control::missing(self).await?);
            let given = self.missing_service().await?.map(|(change, holdings, reservation)| {
                let key = change.key.clone();
                changes.push(change);
                (key, holdings, reservation)
            });
            if changes.is_empty() {
                return Ok(());
            }
            match self.commit_in_parts(changes).await {
                Ok(revision) => {
                    if let Some((key, holdings, _reservation)) = given {
                        self.writer.allocator.note(&key, revision, holdings);
                    }
                    return Ok(());
                }
                Err(StorageError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let why = "another server keeps writing it".to_owned();
        Err(Error::Bootstrap { what: "bootstrap objects".into(), why })
    }

    /// Commits all changes; to a storage that takes no large commits, some at a time. Gives the revision of the last one.
    async fn commit_in_parts(&self, mut changes: Vec<Change>) -> Result<Revision, StorageError> {
        let most = if self.storage.is_shared() { MOST_SHARED } else { usize::MAX };
        loop {
            let rest = changes.split_off(changes.len().min(most));
            let commit = changes.into_iter().fold(Commit::new(), |commit, change| change.add_to(commit));
            let committed = self.storage.commit(commit).await?;
            if rest.is_empty() {
                return Ok(committed.revision);
            }
            changes = rest;
        }
    }

    async fn missing_namespaces(&self) -> Result<Vec<Change>, Error> {
        let mut changes = Vec::new();
        for name in NAMESPACES {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let Some((resource, key)) = self.missing("", "namespaces", &object).await? else { continue };
            let made = self
                .writer
                .new_stored(&resource, object, MANAGER)
                .map_err(|failure| failed(&key, failure))?;
            changes.push(Change { key, replaces: None, value: resource.encode(&made) });
        }
        Ok(changes)
    }

    async fn missing_priority_classes(&self) -> Result<Vec<Change>, Error> {
        let mut changes = Vec::new();
        for (name, value, description) in PRIORITY_CLASSES {
            let object = json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                "value": value, "description": description,
            });
            let Some((resource, key)) = self.missing("scheduling.k8s.io", "priorityclasses", &object).await?
            else {
                continue;
            };
            let made = self.writer.new_stored(&resource, object, MANAGER);
            let made = made.map_err(|failure| failed(&key, failure))?;
            changes.push(Change { key, replaces: None, value: resource.encode(&made) });
        }
        Ok(changes)
    }

    /// The Service by which programs in a cluster find its server, with what it is given.
    async fn missing_service(&self) -> Result<Option<(Change, Holdings, Reservation)>, Error> {
        let object = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "name": "kubernetes", "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {
                "clusterIP": crate::write::service::FIRST.to_string(),
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            },
        });
        let Some((resource, key)) = self.missing("", "services", &object).await? else { return Ok(None) };
        let mut made =
            self.writer.new_stored(&resource, object, MANAGER).map_err(|failure| failed(&key, failure))?;
        let reservation = self
            .writer
            .allocate(&resource, &mut made, None, false)
            .map_err(|failure| failed(&key, failure))?;
        let (holdings, value) = (Holdings::of(&made), resource.encode(&made));
        Ok(reservation.map(|reservation| (Change { key, replaces: None, value }, holdings, reservation)))
    }

    /// What controllers expect to find besides. It is written by hand, and not as the objects of clients are: a status comes with
    /// it, and nobody is said to have made it.
    async fn missing_settings(&self) -> Result<Vec<Change>, Error> {
        let now = self.options.clock.stamp();
        let blocks = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "kubernetes"},
            "spec": {"cidrs": [crate::write::service::BLOCK]},
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
        let mut changes = Vec::new();
        for (group, plural, mut object) in
            [("networking.k8s.io", "servicecidrs", blocks), ("", "configmaps", tracking)]
        {
            let Some((resource, key)) = self.missing(group, plural, &object).await? else { continue };
            meta::set(&mut object, "creationTimestamp", now.as_str());
            meta::set(&mut object, "uid", crate::object::random::uid());
            changes.push(Change { key, replaces: None, value: resource.encode(&object) });
        }
        Ok(changes)
    }

    /// The resource and the key of an object, if it is served and not there.
    async fn missing(
        &self,
        group: &str,
        plural: &str,
        object: &Value,
    ) -> Result<Option<(Arc<Resource>, String)>, Error> {
        let Some(resource) = self.registry().find(group, "v1", plural) else { return Ok(None) };
        let namespace = Some(meta::text(object, "namespace")).filter(|namespace| !namespace.is_empty());
        let key = resource.key(namespace, meta::name(object));
        let is_there = self.storage.get(&key, None).await?.entry.is_some();
        Ok((!is_there).then_some((resource, key)))
    }
}

fn failed(what: &str, failure: StatusError) -> Error {
    Error::Bootstrap { what: what.to_owned(), why: failure.message }
}
