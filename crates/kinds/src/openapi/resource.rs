//! Built-in and custom kinds seen alike, as far as paths go.

use super::{CustomKind, custom};
use crate::kind::{Kind, SubresourceInfo, Verbs};
use crate::{all, definition};
use serde_json::{Value, json};

/// A resource with its paths.
pub(super) struct Resource {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: String,
    pub(super) namespaced: bool,
    pub(super) verbs: Verbs,
    /// The name of the definition of an object.
    pub(super) object: String,
    /// The name of the definition of a list.
    pub(super) list: String,
    pub(super) subresources: Vec<SubPath>,
    pub(super) is_custom: bool,
}

/// A subresource with what it speaks.
pub(super) struct SubPath {
    pub(super) name: String,
    pub(super) gvk: Value,
    pub(super) definition: String,
    pub(super) verbs: Vec<&'static str>,
}

/// Every resource, the built-in ones first.
pub(super) fn resources(custom: &[CustomKind<'_>]) -> Vec<Resource> {
    all().iter().map(built_in).chain(custom.iter().map(custom_one)).collect()
}

impl Resource {
    /// `/api/v1`, `/apis/apps/v1`.
    pub(super) fn root(&self) -> String {
        watchkeeper_wire::ResourcePath::version(&self.group, &self.version)
    }

    pub(super) fn gvk(&self) -> Value {
        gvk(&self.group, &self.version, &self.kind)
    }

    /// `core_v1`, which tags and names of operations are made of.
    pub(super) fn tag(&self) -> String {
        let group = self.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
        format!("{group}_{}", self.version)
    }
}

pub(super) fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

fn built_in(kind: &Kind) -> Resource {
    let object = kind.definition_name();
    Resource {
        group: kind.group.into(),
        version: kind.version.into(),
        kind: kind.kind.into(),
        plural: kind.plural.into(),
        namespaced: kind.namespaced,
        verbs: kind.verbs,
        list: format!("{object}List"),
        subresources: kind
            .subresources
            .iter()
            .map(|subresource| sub_path(kind, &object, subresource))
            .collect(),
        object,
        is_custom: false,
    }
}

fn sub_path(kind: &Kind, object: &str, subresource: &SubresourceInfo) -> SubPath {
    let (gvk, definition) = match subresource.speaks {
        None => (gvk(kind.group, kind.version, kind.kind), object.to_owned()),
        Some(other) => (
            gvk(other.group, other.version, other.kind),
            definition::name(other.group, other.version, other.kind),
        ),
    };
    SubPath { name: subresource.name.into(), gvk, definition, verbs: subresource.verbs.to_vec() }
}

fn custom_one(kind: &CustomKind<'_>) -> Resource {
    let verbs = vec!["get", "patch", "update"];
    let object = custom::definition_name(kind, kind.kind);
    let mut subresources = Vec::new();
    if kind.status {
        let gvk = gvk(kind.group, kind.version, kind.kind);
        subresources.push(SubPath {
            name: "status".into(),
            gvk,
            definition: object.clone(),
            verbs: verbs.clone(),
        });
    }
    if kind.scale {
        let definition = definition::name("autoscaling", "v1", "Scale");
        subresources.push(SubPath {
            name: "scale".into(),
            gvk: gvk("autoscaling", "v1", "Scale"),
            definition,
            verbs,
        });
    }
    Resource {
        group: kind.group.into(),
        version: kind.version.into(),
        kind: kind.kind.into(),
        plural: kind.plural.into(),
        namespaced: kind.namespaced,
        verbs: Verbs::All,
        object,
        list: custom::definition_name(kind, kind.list_kind),
        subresources,
        is_custom: true,
    }
}
