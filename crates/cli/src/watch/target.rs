//! One kind to watch, and where.

use watchkeeper_connection::Connection;
use watchkeeper_sources::kubernetes::Kubernetes;

use super::catalogue::Kind;

/// One thing to watch: a kind, everywhere or in a namespace, all objects or one.
pub(super) struct Target {
    pub(super) kind: Kind,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    /// Nobody asked for this kind by name: it belongs to a category.
    pub(super) by_category: bool,
}

impl Target {
    pub(super) fn source(
        &self,
        connection: &Connection,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Kubernetes {
        let mut source = Kubernetes::resource(connection.clone(), &self.kind.resource).keep_managed_fields();
        if let Some(namespace) = &self.namespace {
            source = source.namespace(namespace);
        }
        if let Some(labels) = labels {
            source = source.labels(labels);
        }
        let name = self.name.as_ref().map(|name| format!("metadata.name={name}"));
        let selectors: Vec<&str> = name.as_deref().into_iter().chain(fields).collect();
        if selectors.is_empty() { source } else { source.fields(&selectors.join(",")) }
    }

    /// `pods`, `deployments/web`.
    pub(super) fn what(&self) -> String {
        let plural = &self.kind.resource.plural;
        self.name.as_ref().map_or_else(|| plural.clone(), |name| format!("{plural}/{name}"))
    }

    /// ` in namespace shop`, ` in all namespaces`, or nothing for a kind that is in none.
    pub(super) fn place(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!(" in namespace {namespace}"),
            None if self.kind.namespaced => " in all namespaces".to_owned(),
            None => String::new(),
        }
    }

    pub(super) fn is_secret(&self) -> bool {
        self.kind.resource.group.is_empty() && self.kind.resource.kind == "Secret"
    }

    pub(super) fn is_event(&self) -> bool {
        let resource = &self.kind.resource;
        resource.kind == "Event" && matches!(resource.group.as_str(), "" | "events.k8s.io")
    }
}
