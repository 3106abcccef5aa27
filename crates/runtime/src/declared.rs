//! What controllers say about themselves while they are put together, when their kinds are still known.

use std::any::TypeId;

use k8s_openapi::ClusterResourceScope;
use watchkeeper_client::{DynamicKind, Kind};
use watchkeeper_description::{Controller, Resource, Right, Verbs};

/// What a controller says about itself.
pub(crate) struct Declared {
    pub(crate) description: Controller,
    /// Why it needs a right is said without its name, which may still change.
    pub(crate) rights: Vec<Right>,
}

impl Declared {
    /// Its rights, with its name in the reasons.
    pub(crate) fn rights(&self) -> impl Iterator<Item = Right> {
        self.rights.iter().cloned().map(|mut right| {
            for reason in &mut right.because {
                *reason = format!("controller {} {reason}", self.description.name);
            }
            right
        })
    }
}

/// The resource of a kind.
pub(crate) fn resource<K: Kind>() -> Resource {
    Resource {
        group: K::group(&()).into_owned(),
        version: K::version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        plural: K::plural(&()).into_owned(),
        namespaced: TypeId::of::<K::Scope>() != TypeId::of::<ClusterResourceScope>(),
    }
}

/// The resource of a kind that is known at run time only.
pub(crate) fn dynamic_resource(kind: &DynamicKind) -> Resource {
    Resource {
        group: kind.group().to_owned(),
        version: kind.version().to_owned(),
        kind: kind.kind().to_owned(),
        plural: kind.plural().to_owned(),
        namespaced: kind.is_namespaced(),
    }
}

/// What it takes to write the status of objects: conflicts are answered by reading them again.
pub(crate) fn status_of(resource: Resource, because: &str) -> [Right; 2] {
    [
        Right::of(resource.clone(), Verbs::PATCH, because).on("status"),
        Right::of(resource, Verbs::GET, because),
    ]
}
