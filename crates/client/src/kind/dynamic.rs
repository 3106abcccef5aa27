//! Kinds that are known at run time only.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::{ApiResource, DynamicResourceScope, Resource};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use watchkeeper_sources::kubernetes::{Connection, Kubernetes};

use crate::kind::Scope;

/// A kind that is known at run time only: from a flag, from the discovery of a server, from another object.
///
/// ```
/// use watchkeeper_client::DynamicKind;
/// let certificates = DynamicKind::namespaced("cert-manager.io", "v1", "Certificate", "certificates");
/// let nodes = DynamicKind::cluster_wide("", "v1", "Node", "nodes");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DynamicKind {
    group: String,
    version: String,
    kind: String,
    plural: String,
    namespaced: bool,
}

impl DynamicKind {
    /// A namespaced kind. The group of the core kinds is empty; the plural is that of paths.
    pub fn namespaced(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
        plural: impl Into<String>,
    ) -> Self {
        let (group, version, kind, plural) = (group.into(), version.into(), kind.into(), plural.into());
        Self { group, version, kind, plural, namespaced: true }
    }

    /// A cluster-scoped kind.
    pub fn cluster_wide(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
        plural: impl Into<String>,
    ) -> Self {
        Self { namespaced: false, ..Self::namespaced(group, version, kind, plural) }
    }

    /// The group; empty for the core kinds.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The version within the group.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The plural, as in paths.
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// The kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether the kind is namespaced.
    pub fn is_namespaced(&self) -> bool {
        self.namespaced
    }

    /// An object of this kind, without anything but a name.
    pub fn object(&self, namespace: Option<&str>, name: &str) -> DynamicObject {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: namespace.map(str::to_owned),
            ..ObjectMeta::default()
        };
        let (api_version, kind) = (self.api_version(), self.kind.clone());
        DynamicObject { api_version, kind, metadata, fields: Map::new() }
    }

    /// A source of all objects of this kind, for an informer of its own.
    ///
    /// ```no_run
    /// use watchkeeper_client::{Connection, DynamicKind, DynamicObject, Informer};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let certificates = DynamicKind::namespaced("cert-manager.io", "v1", "Certificate", "certificates");
    /// let source = certificates.source(Connection::infer().await?).namespace("shop");
    /// let informer = Informer::<DynamicObject>::builder().start(source);
    /// informer.synced().await?;
    /// println!("{} certificates", informer.store().len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn source(&self, connection: impl Into<Connection>) -> Kubernetes {
        Kubernetes::resource(connection, &self.resource())
    }

    pub(crate) fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version: self.api_version(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
        }
    }

    pub(crate) fn scope(&self) -> Scope {
        if self.namespaced { Scope::Namespaced } else { Scope::Cluster }
    }
}

/// An object of a [kind that is known at run time only](DynamicKind): its metadata, and the rest as JSON.
///
/// It can be used wherever an object of a Rust type can, with a client that [knows which kind is meant](crate::Client::dynamic).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DynamicObject {
    /// `v1`, `apps/v1`.
    #[serde(default)]
    pub api_version: String,
    /// The kind.
    #[serde(default)]
    pub kind: String,
    /// The metadata: name, labels and so on.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// All other fields: `spec`, `status`, `data`.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl DynamicObject {
    /// A value within the object, by a JSON pointer: `/spec/replicas`.
    pub fn get(&self, pointer: &str) -> Option<&Value> {
        let mut parts = pointer.strip_prefix('/')?.splitn(2, '/');
        let field = self.fields.get(parts.next()?)?;
        match parts.next() {
            Some(rest) => field.pointer(&format!("/{rest}")),
            None => Some(field),
        }
    }
}

/// What the type alone can say, which is nothing: its kind is the object's own.
impl Resource for DynamicObject {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        "DynamicObject".into()
    }

    fn group(_: &()) -> Cow<'_, str> {
        "".into()
    }

    fn version(_: &()) -> Cow<'_, str> {
        "".into()
    }

    fn plural(_: &()) -> Cow<'_, str> {
        "".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
