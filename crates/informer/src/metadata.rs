use std::collections::BTreeMap;

use serde::Deserialize;

/// The parts of an object's `metadata` that are not in its header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Metadata {
    /// Labels.
    #[serde(deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
    /// Finalizers, in order.
    #[serde(deserialize_with = "or_default")]
    pub finalizers: Vec<String>,
    /// Owners.
    #[serde(deserialize_with = "or_default")]
    pub owner_references: Vec<Owner>,
    /// The time of creation, as RFC 3339 text.
    pub creation_timestamp: Option<String>,
    /// The time at which the deletion was requested, as RFC 3339 text.
    pub deletion_timestamp: Option<String>,
}

/// A reference to an owner of an object, within the object's namespace or cluster-scoped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Owner {
    /// Group and version of the owner's kind.
    pub api_version: String,
    /// The owner's kind.
    pub kind: String,
    /// The owner's name.
    pub name: String,
    /// The owner's uid.
    pub uid: String,
    /// Whether this owner controls the object.
    #[serde(deserialize_with = "or_default")]
    pub controller: bool,
}

/// Kubernetes writes `null` where it means "none".
fn or_default<'de, T: Default + Deserialize<'de>, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
