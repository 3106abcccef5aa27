//! One thing to watch, and where.

use std::sync::Arc;

use watchkeeper_connection::Connection;
use watchkeeper_core::Source;
use watchkeeper_sources::kubernetes::Kubernetes;

use super::catalogue::Kind;

/// One thing to watch: a kind, everywhere or in a namespace, all objects or one; or a source of another sort.
pub(super) struct Target {
    pub(super) subject: Subject,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    /// Nobody asked for this kind by name: it belongs to a category.
    pub(super) by_category: bool,
}

/// Whose objects are watched.
pub(super) enum Subject {
    /// Those of a kind of the cluster.
    Kind(Box<Kind>),
    /// Those of a directory, a service, a table.
    Source(Arc<dyn Source>),
}

impl Target {
    /// All objects of a source that is no cluster.
    pub(super) fn of(source: Arc<dyn Source>) -> Self {
        Self { subject: Subject::Source(source), namespace: None, name: None, by_category: false }
    }

    pub(super) fn kind(&self) -> Option<&Kind> {
        match &self.subject {
            Subject::Kind(kind) => Some(kind),
            Subject::Source(_) => None,
        }
    }

    /// What is followed. A kind needs the connection to its cluster.
    pub(super) fn source(
        &self,
        connection: Option<&Connection>,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Option<Arc<dyn Source>> {
        let kind = match &self.subject {
            Subject::Source(source) => return Some(Arc::clone(source)),
            Subject::Kind(kind) => kind,
        };
        let mut source = Kubernetes::resource(connection?.clone(), &kind.resource).keep_managed_fields();
        if let Some(namespace) = &self.namespace {
            source = source.namespace(namespace);
        }
        if let Some(labels) = labels {
            source = source.labels(labels);
        }
        let name = self.name.as_ref().map(|name| format!("metadata.name={name}"));
        let selectors: Vec<&str> = name.as_deref().into_iter().chain(fields).collect();
        Some(Arc::new(if selectors.is_empty() { source } else { source.fields(&selectors.join(",")) }))
    }

    /// What tells it from other targets.
    pub(super) fn identity(&self) -> String {
        match &self.subject {
            Subject::Kind(kind) => kind.full_name(),
            Subject::Source(source) => source.identity(),
        }
    }

    /// `pods`, `./config/`.
    pub(super) fn label(&self) -> &str {
        match &self.subject {
            Subject::Kind(kind) => &kind.resource.plural,
            Subject::Source(source) => source.name(),
        }
    }

    /// `pods`, `deployments/web`, `./config/`.
    pub(super) fn what(&self) -> String {
        let label = self.label();
        self.name.as_ref().map_or_else(|| label.to_owned(), |name| format!("{label}/{name}"))
    }

    /// ` in namespace shop`, ` in all namespaces`, or nothing for what is in none.
    pub(super) fn place(&self) -> String {
        match (&self.namespace, self.kind()) {
            (Some(namespace), _) => format!(" in namespace {namespace}"),
            (None, Some(kind)) if kind.namespaced => " in all namespaces".to_owned(),
            _ => String::new(),
        }
    }

    pub(super) fn is_secret(&self) -> bool {
        self.kind().is_some_and(|kind| kind.resource.group.is_empty() && kind.resource.kind == "Secret")
    }

    pub(super) fn is_event(&self) -> bool {
        self.kind().is_some_and(|kind| {
            kind.resource.kind == "Event" && matches!(kind.resource.group.as_str(), "" | "events.k8s.io")
        })
    }
}
