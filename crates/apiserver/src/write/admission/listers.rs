//! The objects that plug-ins look up, in memory.
//!
//! A [`Lister`] has all objects of one resource as they are stored. `lifecycle` feeds it; whoever writes such an object hears of
//! it when the lister has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::watch;
use watchkeeper_storage::{Entry, Revision};

use crate::object::meta;
use crate::resource::{Resource, prefix};

/// The resources that plug-ins look up.
pub(crate) struct Listers {
    pub(crate) namespaces: Lister,
    pub(crate) limit_ranges: Lister,
    pub(crate) resource_quotas: Lister,
    pub(crate) service_accounts: Lister,
    pub(crate) priority_classes: Lister,
    pub(crate) runtime_classes: Lister,
    pub(crate) storage_classes: Lister,
    pub(crate) ingress_classes: Lister,
}

impl Default for Listers {
    fn default() -> Self {
        Self {
            namespaces: Lister::new("", "namespaces", keep_metadata),
            limit_ranges: Lister::new("", "limitranges", keep_unmanaged),
            // Quotas are written again, as a whole.
            resource_quotas: Lister::new("", "resourcequotas", |object| object),
            service_accounts: Lister::new("", "serviceaccounts", keep_unmanaged),
            priority_classes: Lister::new("scheduling.k8s.io", "priorityclasses", keep_unmanaged),
            runtime_classes: Lister::new("node.k8s.io", "runtimeclasses", keep_unmanaged),
            storage_classes: Lister::new("storage.k8s.io", "storageclasses", keep_unmanaged),
            ingress_classes: Lister::new("networking.k8s.io", "ingressclasses", keep_unmanaged),
        }
    }
}

impl Listers {
    /// All of them.
    pub(crate) fn all(&self) -> [&Lister; 8] {
        [
            &self.namespaces,
            &self.limit_ranges,
            &self.resource_quotas,
            &self.service_accounts,
            &self.priority_classes,
            &self.runtime_classes,
            &self.storage_classes,
            &self.ingress_classes,
        ]
    }

    /// The lister of a resource, if plug-ins look its objects up.
    pub(crate) fn of(&self, resource: &Resource) -> Option<&Lister> {
        resource.builtin_kind()?;
        self.all().into_iter().find(|lister| lister.prefix == resource.prefix)
    }
}

/// Labels and the rest of the metadata, without owners of fields.
fn keep_metadata(mut object: Value) -> Value {
    meta::fields(&mut object).retain(|field, _| field == "metadata");
    keep_unmanaged(object)
}

/// Everything but the owners of fields.
fn keep_unmanaged(mut object: Value) -> Value {
    meta::remove(&mut object, "managedFields");
    object
}

/// The objects of one resource.
pub(crate) struct Lister {
    pub(crate) plural: &'static str,
    /// What their keys begin with.
    pub(crate) prefix: String,
    /// What of an object is kept.
    keep: fn(Value) -> Value,
    /// By the rest of their keys: `name`, or `namespace/name`.
    objects: RwLock<BTreeMap<String, Listed>>,
    /// The revision up to which all of them are known here.
    reached: watch::Sender<Revision>,
}

/// An object, and the revisions of its entry.
#[derive(Clone)]
pub(crate) struct Listed {
    pub(crate) object: Arc<Value>,
    pub(crate) created: Revision,
    pub(crate) modified: Revision,
}

impl Lister {
    fn new(group: &'static str, plural: &'static str, keep: fn(Value) -> Value) -> Self {
        Self {
            plural,
            prefix: prefix(group, plural),
            keep,
            objects: RwLock::default(),
            reached: watch::channel(0).0,
        }
    }

    /// An object of a cluster-scoped resource.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Value>> {
        self.objects.read().get(name).map(|listed| Arc::clone(&listed.object))
    }

    /// An object in a namespace.
    pub(crate) fn get_in(&self, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.get(&format!("{namespace}/{name}"))
    }

    /// All objects in a namespace, by name.
    pub(crate) fn all_in(&self, namespace: &str) -> Vec<Listed> {
        let objects = self.objects.read();
        if objects.is_empty() {
            return Vec::new();
        }
        let prefix = format!("{namespace}/");
        let found = objects.range(prefix.clone()..).take_while(|(name, _)| name.starts_with(&prefix));
        found.map(|(_, listed)| listed.clone()).collect()
    }

    /// All objects, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Value>> {
        self.objects.read().values().map(|listed| Arc::clone(&listed.object)).collect()
    }

    /// Takes in all objects of a revision.
    pub(crate) fn replace(&self, objects: impl IntoIterator<Item = (Arc<Entry>, Value)>, revision: Revision) {
        let objects =
            objects.into_iter().map(|(entry, object)| (self.name(&entry.key), self.listed(&entry, object)));
        *self.objects.write() = objects.collect();
        self.reached.send_replace(revision);
    }

    /// Takes in an object. One that is newer stays.
    pub(crate) fn set(&self, entry: &Entry, object: Value) {
        let (name, listed) = (self.name(&entry.key), self.listed(entry, object));
        let mut objects = self.objects.write();
        if objects.get(&name).is_none_or(|known| known.modified < listed.modified) {
            objects.insert(name, listed);
        }
    }

    /// Forgets an object that was deleted at a revision. One that was made since then stays.
    pub(crate) fn remove(&self, key: &str, revision: Revision) {
        let name = self.name(key);
        let mut objects = self.objects.write();
        if objects.get(&name).is_some_and(|known| known.modified <= revision) {
            objects.remove(&name);
        }
    }

    /// Everything up to a revision has been taken in.
    pub(crate) fn reached(&self, revision: Revision) {
        self.reached.send_replace(revision);
    }

    /// Waits until every object up to a revision is known here.
    pub(crate) async fn reach(&self, revision: Revision) {
        // The sender is not dropped while this is borrowed.
        let _ = self.reached.subscribe().wait_for(|reached| *reached >= revision).await;
    }

    /// Word of every change from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<Revision> {
        self.reached.subscribe()
    }

    /// What an object is called here.
    fn name(&self, key: &str) -> String {
        key.strip_prefix(self.prefix.as_str()).unwrap_or(key).to_owned()
    }

    fn listed(&self, entry: &Entry, object: Value) -> Listed {
        Listed { object: Arc::new((self.keep)(object)), created: entry.created, modified: entry.modified }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(lister: &Lister, name: &str, modified: Revision) -> Arc<Entry> {
        let key = format!("{}{name}", lister.prefix).into();
        Arc::new(Entry { key, value: bytes::Bytes::new(), created: 1, modified })
    }

    #[test]
    fn what_is_older_than_what_is_known_is_ignored() {
        let listers = Listers::default();
        let quotas = &listers.resource_quotas;
        quotas.replace([(entry(quotas, "a/q", 5), json!({"is": 5}))], 5);
        quotas.set(&entry(quotas, "a/q", 4), json!({"is": 4}));
        assert_eq!(quotas.get_in("a", "q").as_deref(), Some(&json!({"is": 5})));
        quotas.set(&entry(quotas, "a/q", 7), json!({"is": 7}));
        quotas.remove("/registry/core/resourcequotas/a/q", 6);
        assert_eq!(quotas.get_in("a", "q").as_deref(), Some(&json!({"is": 7})));
        quotas.remove("/registry/core/resourcequotas/a/q", 8);
        assert!(quotas.all().is_empty());
    }

    #[test]
    fn objects_of_other_namespaces_are_not_found() {
        let listers = Listers::default();
        let ranges = &listers.limit_ranges;
        let named =
            |name: &str| (entry(ranges, name, 1), json!({"metadata": {"name": name, "managedFields": []}}));
        ranges.replace(["a/x", "a/y", "a-b/z", "aa/w", "b/v"].map(named), 1);
        let names: Vec<_> =
            ranges.all_in("a").iter().map(|listed| meta::name(&listed.object).to_owned()).collect();
        assert_eq!(names, ["a/x", "a/y"]);
        assert!(meta::get(&ranges.all()[0], "managedFields").is_none());
    }
}
