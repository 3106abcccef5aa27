/// A permission for objects of other namespaces to refer to objects of this namespace.
#[watchkeeper::kind(
    group = "gateway.networking.k8s.io",
    version = "v1",
    kind = "ReferenceGrant",
    plural = "referencegrants",
    shortname = "refgrant",
    category = "gateway-api",
    namespaced,
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct ReferenceGrantSpec {
    /// The objects that may refer.
    #[schemars(length(max = 16))]
    pub from: Vec<ReferenceGrantFrom>,
    /// The objects that may be referred to.
    #[schemars(length(max = 16))]
    pub to: Vec<ReferenceGrantTo>,
}

/// All objects of a kind in a namespace.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct ReferenceGrantFrom {
    /// The API group; empty for the core.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace.
    pub namespace: String,
}

/// An object, or all objects of a kind.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct ReferenceGrantTo {
    /// The API group; empty for the core.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The name. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
