//! The action `apply`: objects in a cluster.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use watchkeeper_client::{Client, DynamicKind, DynamicObject, Error as ClientError, Propagation, key_of};
use watchkeeper_core::Key;

use super::{Again, Failure};
use crate::change::{Change, Event};
use crate::file::{ApplySpec, ObjectSpec};
use crate::print::Print;

/// The name under which fields are owned.
const MANAGER: &str = "watchkeeper-run";
/// The labels of a child: whose it is.
const REACTOR: &str = "run.watchkeeper.dev/reactor";
const REACTION: &str = "run.watchkeeper.dev/reaction";
const ORIGIN: &str = "run.watchkeeper.dev/origin";
/// The annotations of a child: of which object it is, readable.
const ORIGIN_SOURCE: &str = "run.watchkeeper.dev/origin-source";
const ORIGIN_NAMESPACE: &str = "run.watchkeeper.dev/origin-namespace";
const ORIGIN_NAME: &str = "run.watchkeeper.dev/origin-name";

/// Applies objects for each object of a source, and deletes them when it is gone, or when the templates say that others are wanted.
///
/// Children are known by their labels. An object that is there already and has other labels is left alone, unless it is to be adopted.
///
/// Kinds that were in the templates of earlier runs are pruned, too, until none of their objects is left.
pub(crate) struct Apply {
    spec: ApplySpec,
    /// The `apiVersion` and `kind` of what earlier runs applied and the templates no longer have.
    retired: Mutex<BTreeSet<(String, String)>>,
    client: Client,
    reactor: Arc<str>,
    reaction: Arc<str>,
    kinds: Mutex<HashMap<(String, String), DynamicKind>>,
    /// The versions that the children have since they were applied last, by [group and kind](group_kind).
    written: Mutex<HashMap<(String, Key), String>>,
    /// Retired kinds that may not be listed, of which it was told.
    denied: Mutex<BTreeSet<String>>,
}

/// A child that was seen in a state in which it may not have been left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stray {
    /// Its [group and kind](group_kind).
    pub(crate) kind: String,
    pub(crate) key: Key,
    /// `None` if it is not there.
    pub(crate) version: Option<String>,
}

impl Apply {
    /// `applied` are the kinds of objects that earlier runs have applied.
    pub(super) fn new(
        spec: ApplySpec,
        mut applied: BTreeSet<(String, String)>,
        client: Client,
        [reactor, reaction]: [Arc<str>; 2],
    ) -> Self {
        let client = client.manager(MANAGER);
        applied.retain(|(api_version, kind)| {
            let is_it = |spec: &ObjectSpec| {
                group_kind(&spec.api_version, &spec.kind) == group_kind(api_version, kind)
            };
            !spec.objects.iter().any(is_it)
        });
        Self {
            spec,
            retired: Mutex::new(applied),
            client,
            reactor,
            reaction,
            kinds: Mutex::default(),
            written: Mutex::default(),
            denied: Mutex::default(),
        }
    }

    /// A fingerprint that differs where other objects are applied for the same state.
    pub(super) fn with_templates(&self, print: Print) -> Print {
        Print::of_texts(&[&print.hex(), &self.spec.print.hex()])
    }

    pub(super) async fn run(&self, change: &Change) -> Result<(), Failure> {
        let wanted = self.wanted(change)?;
        let mut keys = BTreeSet::new();
        for (spec, value) in wanted {
            let kind = self.kind(spec).await?;
            let object = self.child(&kind, value, change)?;
            let key = key_of(&object);
            if !keys.insert((group_kind(&spec.api_version, &spec.kind), key.clone())) {
                return Err(Failure::never(format!("{} {key} is twice among the objects", spec.kind)));
            }
            self.apply(&kind, &object).await?;
        }
        let labels = format!("{},{ORIGIN}={}", self.labels(), self.origin(change));
        for (kind, children) in self.children(&labels).await? {
            for child in children {
                let id = (group_kind(&kind.api_version(), kind.kind()), key_of(&*child));
                if keys.contains(&id) || child.metadata.deletion_timestamp.is_some() {
                    continue;
                }
                let client = self.client.dynamic(&kind);
                self.written.lock().remove(&id);
                match client.delete(&*child).propagation(Propagation::Background).await {
                    Ok(_) => tracing::info!("{}: {} {} deleted", self.reaction, kind.kind(), key_of(&*child)),
                    // Gone already, or another object by now.
                    Err(ClientError::NotFound { .. } | ClientError::Conflict { .. }) => {}
                    Err(error) => return Err(failure(&error)),
                }
            }
        }
        Ok(())
    }

    pub(super) fn would(&self, change: &Change) -> Result<String, Failure> {
        let wanted = self.wanted(change)?;
        if wanted.is_empty() {
            return Ok("delete what was applied for it".to_owned());
        }
        let names = wanted.iter().map(|(spec, value)| {
            let metadata = &value["metadata"];
            let name = metadata["name"].as_str().unwrap_or_default();
            match metadata["namespace"].as_str() {
                Some(namespace) => format!("{} {namespace}/{name}", spec.kind),
                None => format!("{} {name}", spec.kind),
            }
        });
        Ok(format!("apply {}", names.collect::<Vec<_>>().join(", ")))
    }

    /// The objects that children are there for.
    pub(super) async fn origins(&self) -> Result<Vec<Key>, Failure> {
        let mut origins = BTreeSet::new();
        for (kind, children) in self.children(&self.labels()).await? {
            if children.is_empty() {
                self.retired.lock().remove(&(kind.api_version(), kind.kind().to_owned()));
            }
            for child in children {
                let annotations = child.metadata.annotations.clone().unwrap_or_default();
                if let Some(name) = annotations.get(ORIGIN_NAME) {
                    origins.insert(Key::new(annotations.get(ORIGIN_NAMESPACE).map(String::as_str), name));
                }
            }
        }
        Ok(origins.into_iter().collect())
    }

    fn wanted(&self, change: &Change) -> Result<Vec<(&ObjectSpec, Value)>, Failure> {
        if change.event == Event::Gone {
            return Ok(Vec::new());
        }
        let filled =
            self.spec.objects.iter().enumerate().map(|(at, spec)| match spec.template.fill(change) {
                Ok(value) => Ok((spec, value)),
                Err(unfilled) => Err(Failure::never(format!("objects[{at}]: {unfilled}"))),
            });
        filled.collect()
    }

    /// The object with the marks of a child.
    fn child(&self, kind: &DynamicKind, value: Value, change: &Change) -> Result<DynamicObject, Failure> {
        let mut object: DynamicObject = serde_json::from_value(value)
            .map_err(|error| Failure::never(format!("{}: is not an object: {error}", kind.kind())))?;
        let metadata = &mut object.metadata;
        if metadata.name.as_deref().unwrap_or_default().is_empty() {
            return Err(Failure::never(format!("{}: metadata.name is empty", kind.kind())));
        }
        if kind.is_namespaced() && metadata.namespace.is_none() {
            metadata.namespace = Some(self.client.connection().default_namespace().to_owned());
        }
        let labels = metadata.labels.get_or_insert_default();
        labels.extend([
            (REACTOR.to_owned(), self.reactor.to_string()),
            (REACTION.to_owned(), self.reaction.to_string()),
            (ORIGIN.to_owned(), self.origin(change)),
        ]);
        let annotations: &mut BTreeMap<String, String> = metadata.annotations.get_or_insert_default();
        annotations.insert(ORIGIN_SOURCE.to_owned(), change.source.to_string());
        annotations.insert(ORIGIN_NAME.to_owned(), change.key.name().to_owned());
        if let Some(namespace) = change.key.namespace() {
            annotations.insert(ORIGIN_NAMESPACE.to_owned(), namespace.to_owned());
        }
        Ok(object)
    }

    async fn apply(&self, kind: &DynamicKind, object: &DynamicObject) -> Result<(), Failure> {
        let (client, key) = (self.client.dynamic(kind), key_of(object));
        let there = client.live().get::<DynamicObject>(&key).await.map_err(|error| failure(&error))?;
        if let Some(there) = there.filter(|_| !self.spec.adopt) {
            let label =
                |object: &DynamicObject, name: &str| object.metadata.labels.as_ref()?.get(name).cloned();
            if [REACTOR, REACTION, ORIGIN].iter().any(|name| label(&there, name) != label(object, name)) {
                let whose = match label(&there, REACTION) {
                    Some(reaction) => format!("a child of another object or of the reaction {reaction}"),
                    None => "not made by this reaction".to_owned(),
                };
                return Err(Failure::usual(format!(
                    "{} {key} is there already and {whose}: choose another name, or set adopt: true",
                    kind.kind()
                )));
            }
        }
        let written = client.apply(object).await.map_err(|error| failure(&error))?;
        let version = written.metadata.resource_version.clone().unwrap_or_default();
        self.written.lock().insert((group_kind(&kind.api_version(), kind.kind()), key), version);
        Ok(())
    }

    /// Whether this state of a child is the one that was applied last.
    pub(crate) fn wrote(&self, child: &Stray) -> bool {
        let Stray { kind, key, version } = child;
        let written = self.written.lock();
        version.is_some() && written.get(&(kind.clone(), key.clone())) == version.as_ref()
    }

    /// The object that a child was made for, by the annotations of the child.
    pub(crate) fn origin_of(&self, annotations: &Value) -> Option<Key> {
        let name = annotations[ORIGIN_NAME].as_str()?;
        Some(Key::new(annotations[ORIGIN_NAMESPACE].as_str(), name))
    }

    /// Each kind of children once: its `apiVersion` and `kind`.
    pub(crate) fn kinds(&self) -> BTreeSet<(String, String)> {
        self.spec.objects.iter().map(|spec| (spec.api_version.clone(), spec.kind.clone())).collect()
    }

    /// The same of all that may have children.
    pub(super) fn applied(&self) -> BTreeSet<(String, String)> {
        let retired = self.retired.lock().clone();
        self.kinds().into_iter().chain(retired).collect()
    }

    async fn list(&self, kind: &DynamicKind, labels: &str) -> Result<Vec<Arc<DynamicObject>>, ClientError> {
        self.client.dynamic(kind).live().list::<DynamicObject>().labels(labels).await
    }

    /// The children with these labels, of each kind that may have some. A kind that the cluster does not have has no objects.
    async fn children(&self, labels: &str) -> Result<Vec<(DynamicKind, Vec<Arc<DynamicObject>>)>, Failure> {
        let mut all = Vec::new();
        for (api_version, kind) in self.kinds() {
            match self.discover(&api_version, &kind).await {
                Ok(kind) => {
                    let children = self.list(&kind, labels).await.map_err(|error| failure(&error))?;
                    all.push((kind, children));
                }
                Err(ClientError::NotFound { .. }) => {}
                Err(error) => return Err(failure(&error)),
            }
        }
        let retired = self.retired.lock().clone();
        for (api_version, kind) in retired {
            let found = match self.discover(&api_version, &kind).await {
                Ok(kind) => self.list(&kind, labels).await.map(|children| all.push((kind, children))),
                Err(error) => Err(error),
            };
            match found {
                Ok(()) => {}
                Err(ClientError::NotFound { .. }) => drop(self.retired.lock().remove(&(api_version, kind))),
                // Whoever took the kind out of the templates may have taken its rights away, too.
                Err(ClientError::Denied { message, .. }) => {
                    if self.denied.lock().insert(group_kind(&api_version, &kind)) {
                        tracing::warn!(
                            "{}: {kind} objects that were applied before the templates changed stay: {message}",
                            self.reaction
                        );
                    }
                }
                Err(error) => return Err(failure(&error)),
            }
        }
        Ok(all)
    }

    async fn kind(&self, spec: &ObjectSpec) -> Result<DynamicKind, Failure> {
        self.discover(&spec.api_version, &spec.kind).await.map_err(|error| failure(&error))
    }

    async fn discover(&self, api_version: &str, kind: &str) -> Result<DynamicKind, ClientError> {
        let id = (api_version.to_owned(), kind.to_owned());
        if let Some(kind) = self.kinds.lock().get(&id) {
            return Ok(kind.clone());
        }
        let kind = self.client.discover(api_version, kind).await?;
        self.kinds.lock().insert(id, kind.clone());
        Ok(kind)
    }

    /// What selects all children.
    pub(crate) fn labels(&self) -> String {
        format!("{REACTOR}={},{REACTION}={}", self.reactor, self.reaction)
    }

    /// Stands for the origin in a label, in which its name may not fit.
    fn origin(&self, change: &Change) -> String {
        let key = json!([change.key.namespace(), change.key.name()]).to_string();
        Print::of_texts(&[&change.source, &key]).hex()
    }
}

/// `Widget.example.com`: kinds of several groups may have one name, and versions of a kind have the same objects.
pub(crate) fn group_kind(api_version: &str, kind: &str) -> String {
    match api_version.split_once('/') {
        Some((group, _)) => format!("{kind}.{group}"),
        None => kind.to_owned(),
    }
}

fn failure(error: &ClientError) -> Failure {
    let again = error.retry_after().map_or(Again::Usual, Again::After);
    Failure { message: error.to_string(), again }
}
