use std::collections::BTreeSet;
use std::marker::PhantomData;

use watchkeeper_core::Projection;
use watchkeeper_informer::{InformerMetrics, Policy};
use watchkeeper_sources::kubernetes::{Connection, Kubernetes};

use crate::Informer;
use crate::kind::{Kind, KindInfo};
use crate::selector::{Selector, SelectorError};

/// The options of the cache of a kind: the objects that are watched, and how they are held.
///
/// ```
/// use k8s_openapi::api::core::v1::Secret;
/// use watchkeeper_client::{Cache, Policy};
/// let mine = Cache::of::<Secret>().namespaces(["shop", "bank"]).labels("app=web").policy(Policy::Typed);
/// ```
///
/// A read of the kind sees what matches, as if the rest did not exist. Namespaces are the exception: asking for one that is
/// not watched is an error.
pub struct Cache<K> {
    /// None: all.
    namespaces: Option<BTreeSet<String>>,
    labels: Option<String>,
    fields: Option<String>,
    policy: Policy,
    managed_fields: bool,
    dropped: BTreeSet<String>,
    kind: PhantomData<fn() -> K>,
}

impl Cache<()> {
    /// All objects of the kind in all namespaces, [packed](Policy::Packed), without `managedFields`.
    pub fn of<K: Kind>() -> Cache<K> {
        Cache {
            namespaces: None,
            labels: None,
            fields: None,
            policy: Policy::default(),
            managed_fields: false,
            dropped: BTreeSet::new(),
            kind: PhantomData,
        }
    }
}

impl<K: Kind> Cache<K> {
    /// Limits the cache to these namespaces, with a watch for each. An empty list means all.
    #[must_use]
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        let names: BTreeSet<String> = namespaces.into_iter().map(Into::into).collect();
        self.namespaces = (!names.is_empty()).then_some(names);
        self
    }

    /// Limits the cache to objects with these labels: `app=web,tier!=cache`.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Limits the cache to objects with these fields: `metadata.name=a`.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// Sets how objects are held. Default: [`Policy::Packed`].
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Keeps `metadata.managedFields`. It lets [`apply`](crate::Client::apply) know after a restart, without a request,
    /// that nothing would change; and it makes up a third of a typical object.
    #[must_use]
    pub fn keep_managed_fields(mut self) -> Self {
        self.managed_fields = true;
        self
    }

    /// Drops a field, named by a JSON pointer, while objects are read; lists on the way are passed through.
    #[must_use]
    pub fn drop(mut self, pointer: impl Into<String>) -> Self {
        self.dropped.insert(pointer.into());
        self
    }

    /// Everything that decides what is cached, as text.
    pub(crate) fn identity(&self) -> String {
        let Self { namespaces, labels, fields, policy, managed_fields, dropped, .. } = self;
        let mut text = match namespaces {
            Some(names) => format!("namespaces {}", names.iter().cloned().collect::<Vec<_>>().join(", ")),
            None => "all namespaces".to_owned(),
        };
        for (name, selector) in [("labels", labels), ("fields", fields)] {
            if let Some(selector) = selector {
                text.push_str(&format!("; {name} {selector}"));
            }
        }
        text.push_str(&format!("; {policy:?}"));
        if *managed_fields {
            text.push_str("; with managedFields");
        }
        for pointer in dropped {
            text.push_str(&format!("; without {pointer}"));
        }
        text
    }

    /// The namespaces that are watched; empty means all.
    pub fn watched_namespaces(&self) -> Vec<String> {
        self.namespace_list().unwrap_or_default()
    }

    pub(crate) fn namespace_list(&self) -> Option<Vec<String>> {
        self.namespaces.as_ref().map(|names| names.iter().cloned().collect())
    }

    pub(crate) fn selectors(&self) -> (Option<String>, Option<String>) {
        (self.labels.clone(), self.fields.clone())
    }

    pub(crate) fn is_partial(&self) -> bool {
        self.policy == Policy::Metadata || !self.dropped.is_empty()
    }

    pub(crate) fn held(&self) -> Policy {
        self.policy
    }

    pub(crate) fn selector(&self) -> Result<Option<Selector>, SelectorError> {
        self.labels.as_deref().map(Selector::parse).transpose()
    }

    /// What is kept of an object: the same of one that was watched as of one that a write answered.
    pub(crate) fn projection(&self, kind: &KindInfo) -> Projection {
        let all = if self.managed_fields { Projection::everything() } else { Projection::default() };
        let projection = self.dropped.iter().fold(all, |projection, pointer| projection.drop(pointer));
        let projection = projection.complete_kind(&kind.api_version, &kind.kind);
        if self.policy == Policy::Metadata { projection.metadata_only() } else { projection }
    }

    /// Starts to watch. The sources are added in the order of [`namespace_list`](Self::namespace_list).
    pub(crate) fn start(
        &self,
        kind: &KindInfo,
        connection: &Connection,
        metrics: &InformerMetrics,
    ) -> Informer {
        let builder = Informer::<K>::builder().policy(self.policy).metrics(metrics);
        let builder = if self.namespaces.is_some() { builder.name(&kind.resource) } else { builder };
        let builder = builder.untyped();
        match &self.namespaces {
            None => builder.start(self.source(kind, connection)),
            Some(names) => {
                let mut sources = names.iter().map(|name| self.source(kind, connection).namespace(name));
                // There is at least one: an empty list means all namespaces.
                let first = sources.next().unwrap_or_else(|| self.source(kind, connection));
                let informer = builder.start(first);
                for source in sources {
                    informer.add_source(source);
                }
                informer
            }
        }
    }

    fn source(&self, kind: &KindInfo, connection: &Connection) -> Kubernetes {
        let mut source = Kubernetes::resource(connection.clone(), &kind.api);
        if let Some(labels) = &self.labels {
            source = source.labels(labels);
        }
        if let Some(fields) = &self.fields {
            source = source.fields(fields);
        }
        if self.managed_fields {
            source = source.keep_managed_fields();
        }
        if self.policy == Policy::Metadata {
            source = source.metadata_only();
        }
        self.dropped.iter().fold(source, |source, pointer| source.drop(pointer))
    }
}
