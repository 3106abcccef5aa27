//! Objects by name.

use std::sync::Arc;

use super::Resource;
use crate::status_error::StatusError;

/// A reference to an object, which need not exist: its resource in one version, its namespace and its name.
#[derive(Clone)]
pub(crate) struct ObjectRef {
    pub(crate) resource: Arc<Resource>,
    /// `None` for cluster-scoped resources.
    pub(crate) namespace: Option<String>,
    /// Empty if the name is yet to be generated.
    pub(crate) name: String,
}

impl ObjectRef {
    /// The object stored under a key.
    pub(crate) fn of(resource: &Arc<Resource>, key: &str) -> Self {
        let (namespace, name) = resource.split_key(key);
        Self {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            resource: Arc::clone(resource),
        }
    }

    /// The key under which the object is stored.
    pub(crate) fn key(&self) -> String {
        self.resource.key(self.namespace.as_deref(), &self.name)
    }

    /// The key under which kube-apiserver stores the object, as its messages show it.
    pub(crate) fn upstream_key(&self) -> String {
        let key = self.key();
        let Some(kind) = self.resource.builtin_kind() else { return key };
        let rest = key.strip_prefix(self.resource.prefix.as_str()).unwrap_or(&key);
        format!("/registry/{}/{rest}", kind.upstream_folder)
    }

    /// The answer to a request for an object that does not exist.
    pub(crate) fn not_found(&self) -> StatusError {
        StatusError::not_found(self.resource.subject(), &self.name)
    }
}
