use std::fmt;
use std::sync::Arc;

use watchkeeper_core::Key;

/// The object to reconcile: its key and its cluster.
///
/// A request names an object, it does not describe what happened to it: several changes are one request, and what is
/// right is decided by the newest state.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    cluster: Option<Arc<str>>,
    key: Key,
}

impl Request {
    /// An object of the manager's own cluster.
    pub fn new(key: Key) -> Self {
        Self { cluster: None, key }
    }

    /// Sets another cluster, by its name in the manager.
    #[must_use]
    pub fn in_cluster(mut self, name: impl Into<Arc<str>>) -> Self {
        self.cluster = Some(name.into());
        self
    }

    pub(crate) fn at(cluster: Option<&Arc<str>>, key: Key) -> Self {
        Self { cluster: cluster.cloned(), key }
    }

    /// The name of the cluster; `None` for the manager's own.
    pub fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    pub(crate) fn cluster_name(&self) -> Option<&Arc<str>> {
        self.cluster.as_ref()
    }

    /// The key of the object.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The namespace of the object, if it has one.
    pub fn namespace(&self) -> Option<&str> {
        self.key.namespace()
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        self.key.name()
    }
}

impl From<Key> for Request {
    fn from(key: Key) -> Self {
        Self::new(key)
    }
}

/// `namespace/name`, after the cluster's name and a colon if it has one.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cluster) = &self.cluster {
            write!(f, "{cluster}:")?;
        }
        self.key.fmt(f)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({self})")
    }
}

/// A key of a controller's queue: it names a piece of work.
///
/// [`Request`] does. A controller whose work is not one object, but for instance all objects with some label, has keys
/// of its own.
pub trait WorkKey: std::hash::Hash + Eq + Clone + fmt::Display + Send + Sync + 'static {}

impl<T: std::hash::Hash + Eq + Clone + fmt::Display + Send + Sync + 'static> WorkKey for T {}
