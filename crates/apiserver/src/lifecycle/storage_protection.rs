//! Claims, volumes and attribute classes that are deleted go once nobody uses them.
//!
//! The admission plug-in StorageObjectInUseProtection gives each of them a finalizer; here it is removed, as three controllers of
//! kube-controller-manager do elsewhere. Objects that use others are followed only while something waits for them.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SelectAll, select_all};
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::Value;
use watchkeeper_storage::{self as storage, Entry, Event, Follow, Followed, Range, Storage};

use crate::object::meta;
use crate::resource::{ObjectRef, prefix};
use crate::server::Server;
use crate::status_error::StatusError;
use crate::write::Subresource;

/// How many finalizers are removed together; their commits share syncs.
const TOGETHER: usize = 64;

/// How long to wait before trying again what failed.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// A resource whose objects stay while they are used.
#[derive(Clone, Copy, Debug)]
pub(super) enum Protected {
    /// A claim is used by pods of its namespace that have a node.
    Claims,
    /// A volume is in use while it is bound to a claim, which it says itself.
    Volumes,
    /// An attribute class is used by claims and volumes.
    AttributeClasses,
}

impl Protected {
    /// What the task is called.
    pub(super) fn task(self) -> &'static str {
        match self {
            Self::Claims => "claim-protection",
            Self::Volumes => "volume-protection",
            Self::AttributeClasses => "volume-attributes-class-protection",
        }
    }

    fn finalizer(self) -> &'static str {
        match self {
            Self::Claims => "kubernetes.io/pvc-protection",
            Self::Volumes => "kubernetes.io/pv-protection",
            Self::AttributeClasses => "kubernetes.io/vac-protection",
        }
    }

    fn prefix(self) -> String {
        match self {
            Self::Claims => prefix("", "persistentvolumeclaims"),
            Self::Volumes => prefix("", "persistentvolumes"),
            Self::AttributeClasses => prefix("storage.k8s.io", "volumeattributesclasses"),
        }
    }

    /// The prefixes of the resources whose objects use it, in a namespace or in all.
    fn users(self, scope: &Scope) -> Vec<String> {
        let plurals: &[&str] = match self {
            Self::Claims => &["pods"],
            Self::Volumes => &["persistentvolumes"],
            Self::AttributeClasses => &["persistentvolumeclaims", "persistentvolumes"],
        };
        let namespace = scope.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        plurals.iter().map(|plural| prefix("", plural) + &namespace).collect()
    }

    /// What an object uses.
    fn used_by(self, user: &Value) -> Vec<Use> {
        match self {
            Self::Claims => claims_of(user),
            Self::Volumes if user["status"]["phase"] == "Bound" => vec![Use::named(meta::name(user))],
            Self::Volumes => Vec::new(),
            Self::AttributeClasses => {
                let names = [
                    &user["spec"]["volumeAttributesClassName"],
                    &user["status"]["currentVolumeAttributesClassName"],
                    &user["status"]["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
                ];
                names.into_iter().filter_map(Value::as_str).map(Use::named).collect()
            }
        }
    }
}

/// The namespace of a claim; `None` for what is in no namespace.
type Scope = Option<String>;

/// One object using another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Use {
    name: String,
    /// If there is one, only the object that this uid controls is used: the claim of an ephemeral volume.
    controller: Option<String>,
}

impl Use {
    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), controller: None }
    }
}

/// The claims that a pod uses. A pod without a node uses none: no kubelet starts one whose claim is being deleted.
fn claims_of(pod: &Value) -> Vec<Use> {
    if pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty() {
        return Vec::new();
    }
    let is_shut_down =
        meta::is_deleting(pod) && meta::get(pod, "deletionGracePeriodSeconds") == Some(&Value::from(0));
    let volumes = pod["spec"]["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let claim = |volume: &Value| {
        if let Some(name) = volume["persistentVolumeClaim"]["claimName"].as_str() {
            return Some(Use::named(name));
        }
        let ephemeral = volume.get("ephemeral").is_some_and(|source| !source.is_null());
        (ephemeral && !is_shut_down).then(|| Use {
            name: format!("{}-{}", meta::name(pod), volume["name"].as_str().unwrap_or_default()),
            controller: Some(meta::uid(pod).to_owned()),
        })
    };
    volumes.iter().filter_map(claim).collect()
}

/// Whether an object is one of those that are used.
fn is_used(object: &Value, used: &HashSet<Use>) -> bool {
    let name = meta::name(object);
    if used.contains(&Use::named(name)) {
        return true;
    }
    let owners = meta::get(object, "ownerReferences").and_then(Value::as_array);
    let controller = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
    let controller = controller.and_then(|owner| owner["uid"].as_str()).map(str::to_owned);
    controller.is_some() && used.contains(&Use { name: name.to_owned(), controller })
}

/// Removes finalizers until the storage is closed.
pub(super) async fn run(server: Arc<Server>, protected: Protected) {
    let (prefix, user_prefixes) = (protected.prefix(), protected.users(&None));
    let mut task = Task::new(&server, protected, &prefix);
    let mut own = storage::follow(&*server.storage, protected.task(), &prefix);
    let mut users: Option<SelectAll<Follow<'_>>> = None;
    loop {
        while let Some(followed) = own.next().now_or_never() {
            let Some(followed) = followed else { return };
            task.changed(followed);
        }
        while let Some(followed) = users.as_mut().and_then(|users| users.next().now_or_never()) {
            let Some(followed) = followed else { return };
            task.user_changed(&followed);
        }
        if task.waiting.is_empty() {
            users = None;
            task.due.clear();
            task.failed.clear();
        } else if users.is_none() {
            // From before they are read, so that nothing is missed.
            let revision = server.storage.stats().revision;
            let follow = user_prefixes.iter().map(|prefix| {
                storage::follow(&*server.storage, protected.task(), prefix).after(Some(revision))
            });
            users = Some(select_all(follow));
            task.all_due();
        }
        if let Some(scope) = task.due.pop_first() {
            task.release(scope).await;
            continue;
        }
        tokio::select! {
            followed = own.next() => match followed {
                Some(followed) => task.changed(followed),
                None => return,
            },
            followed = next(&mut users) => match followed {
                Some(followed) => task.user_changed(&followed),
                None => return,
            },
            () = tokio::time::sleep(RETRY_DELAY), if !task.failed.is_empty() => {
                task.due.append(&mut task.failed);
            }
        }
    }
}

/// The objects of one resource that are being deleted.
struct Task<'a> {
    server: &'a Server,
    protected: Protected,
    /// What the keys of its objects begin with.
    prefix: &'a str,
    /// The keys of what waits to be unused.
    waiting: BTreeSet<Box<str>>,
    /// Where what waits may have become unused.
    due: BTreeSet<Scope>,
    /// Where something failed.
    failed: BTreeSet<Scope>,
}

impl<'a> Task<'a> {
    fn new(server: &'a Server, protected: Protected, prefix: &'a str) -> Self {
        let (waiting, due, failed) = <_>::default();
        Self { server, protected, prefix, waiting, due, failed }
    }

    fn all_due(&mut self) {
        self.due = self.waiting.iter().map(|key| self.scope(key)).collect();
    }

    fn scope(&self, key: &str) -> Scope {
        let rest = key.strip_prefix(self.prefix).unwrap_or(key);
        rest.split_once('/').map(|(namespace, _)| namespace.to_owned())
    }

    /// Reads an object; `None` if that is not possible.
    fn read(&self, entry: &Entry) -> Option<Value> {
        let resource = self.server.registry().of_key(&entry.key)?;
        self.server.supervisor.caught(self.protected.task(), &entry.key, || resource.read(entry))?.ok()
    }

    fn changed(&mut self, followed: Followed) {
        match followed {
            Followed::Snapshot(page) => {
                *self = Self::new(self.server, self.protected, self.prefix);
                page.entries.iter().for_each(|entry| self.see(entry));
            }
            Followed::Event(event) => match event.entry() {
                Some(entry) => self.see(entry),
                None => drop(self.waiting.remove(event.key())),
            },
            Followed::Progress(_) => {}
        }
    }

    /// Takes in an object that may be waiting.
    fn see(&mut self, entry: &Entry) {
        if self.read(entry).is_some_and(|object| self.is_candidate(&object)) {
            self.due.insert(self.scope(&entry.key));
            self.waiting.insert(entry.key.clone());
        } else {
            self.waiting.remove(&entry.key);
        }
    }

    fn is_candidate(&self, object: &Value) -> bool {
        meta::is_deleting(object) && meta::finalizers(object).contains(&self.protected.finalizer())
    }

    fn user_changed(&mut self, followed: &Followed) {
        match followed {
            // Changes were missed.
            Followed::Snapshot(_) => self.all_due(),
            Followed::Event(event) => self.due.extend(self.released(event)),
            Followed::Progress(_) => {}
        }
    }

    /// Where an object has stopped using something that waits.
    fn released(&self, event: &Event) -> Option<Scope> {
        let uses = |entry: Option<&Arc<Entry>>| {
            let user = entry.and_then(|entry| self.read(entry));
            user.map(|user| self.protected.used_by(&user)).unwrap_or_default()
        };
        let resource = self.server.registry().of_key(event.key())?;
        // Claims are in the namespace of their pods; the others are in none.
        let scope = match self.protected {
            Protected::Claims => resource.split_key(event.key()).0.map(str::to_owned),
            Protected::Volumes | Protected::AttributeClasses => None,
        };
        let folder = scope.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let folder = format!("{}{folder}", self.prefix);
        let waits = |used: &Use| self.waiting.contains(format!("{folder}{}", used.name).as_str());
        let before: Vec<Use> = uses(event.previous()).into_iter().filter(waits).collect();
        if before.is_empty() {
            return None;
        }
        let now = uses(event.entry());
        before.iter().any(|used| !now.contains(used)).then_some(scope)
    }

    /// Removes the finalizer of what waits in a scope and is not used.
    async fn release(&mut self, scope: Scope) {
        if let Err(failure) = self.try_release(&scope).await {
            let (task, failure) = (self.protected.task(), &failure.message);
            tracing::warn!(task, namespace = ?scope, failure, "object that is deleted could not be released; it is retried");
            self.failed.insert(scope);
        }
    }

    async fn try_release(&self, scope: &Scope) -> Result<(), StatusError> {
        let used = self.used_in(scope).await?;
        let mut releases = Vec::new();
        for key in &self.waiting {
            if self.scope(key) == *scope {
                releases.push(self.release_caught(key, &used));
            }
        }
        // One that fails is in the way of no other.
        let outcomes: Vec<_> = stream::iter(releases).buffered(TOGETHER).collect().await;
        outcomes.into_iter().collect()
    }

    async fn release_caught(&self, key: &str, used: &HashSet<Use>) -> Result<(), StatusError> {
        let release = self.release_one(key, used);
        let released = self.server.supervisor.caught_async(self.protected.task(), &key, release).await;
        released.unwrap_or_else(|| Err(StatusError::internal(format!("releasing {key} panicked"))))
    }

    /// What is used in a scope. A user that cannot be read may use anything, so that nothing is released then.
    async fn used_in(&self, scope: &Scope) -> Result<HashSet<Use>, StatusError> {
        let mut used = HashSet::new();
        for prefix in self.protected.users(scope) {
            for entry in &self.server.storage.range(Range::prefix(&prefix)).await?.entries {
                let Some(user) = self.read(entry) else {
                    return Err(StatusError::internal(format!("{} cannot be read", entry.key)));
                };
                used.extend(self.protected.used_by(&user));
            }
        }
        Ok(used)
    }

    async fn release_one(&self, key: &str, used: &HashSet<Use>) -> Result<(), StatusError> {
        let Some(entry) = self.server.storage.get(key, None).await?.entry else { return Ok(()) };
        let Some(resource) = self.server.registry().of_key(key) else { return Ok(()) };
        let object = resource.read(&entry)?;
        if !self.is_candidate(&object) || is_used(&object, used) {
            return Ok(());
        }
        let (uid, finalizer) = (meta::uid(&object), self.protected.finalizer());
        let change = |object: &mut Value| {
            // Another one may have taken its name.
            if meta::uid(object) == uid {
                let left = meta::finalizers(object).into_iter().filter(|name| *name != finalizer);
                let left = left.map(str::to_owned).collect();
                meta::set_finalizers(object, left);
            }
        };
        let target = ObjectRef::of(&resource, key);
        self.server.writer.modify(&target, Subresource::Main, change).await
    }
}

/// The next change to those who use something, for as long as they are followed.
async fn next(users: &mut Option<SelectAll<Follow<'_>>>) -> Option<Followed> {
    match users {
        Some(users) => users.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(node: &str, volumes: Value) -> Value {
        json!({"metadata": {"name": "p", "uid": "1"}, "spec": {"nodeName": node, "volumes": volumes}})
    }

    #[test]
    fn a_pod_uses_its_claims_as_soon_as_it_has_a_node() {
        let volumes = json!([
            {"name": "a", "persistentVolumeClaim": {"claimName": "named"}},
            {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}},
            {"name": "c", "emptyDir": {}},
        ]);
        assert_eq!(claims_of(&pod("", volumes.clone())), []);
        let ephemeral = Use { name: "p-b".into(), controller: Some("1".into()) };
        assert_eq!(claims_of(&pod("n", volumes.clone())), [Use::named("named"), ephemeral]);
        let mut ended = pod("n", volumes);
        ended["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        ended["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        assert_eq!(claims_of(&ended), [Use::named("named")]);
    }

    #[test]
    fn the_claim_of_an_ephemeral_volume_is_that_of_its_own_pod() {
        let used = HashSet::from_iter(claims_of(&pod("n", json!([{"name": "b", "ephemeral": {}}]))));
        let claim = |owner: Value| json!({"metadata": {"name": "p-b", "ownerReferences": [owner]}});
        assert!(is_used(&claim(json!({"uid": "1", "controller": true})), &used));
        assert!(!is_used(&claim(json!({"uid": "1"})), &used));
        assert!(!is_used(&claim(json!({"uid": "2", "controller": true})), &used));
    }
}
