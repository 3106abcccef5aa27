//! Volumes, claims and their attribute classes get a finalizer, so that none is deleted while it is in use.

use serde_json::Value;

use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done};
use crate::object::meta;
use crate::resource::Resource;
use crate::write::Draft;

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("StorageObjectInUseProtection", |_| Box::new(StorageObjectInUseProtection));

struct StorageObjectInUseProtection;

impl Plugin for StorageObjectInUseProtection {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        scope.verb == Verb::Create && scope.subresource.is_empty() && finalizer(scope.resource).is_some()
    }

    fn mutate<'a>(&'a self, attributes: &'a Attributes<'a>, draft: &'a mut Draft) -> Admitted<'a> {
        if let Some(finalizer) = finalizer(&attributes.target.resource) {
            protect(&mut draft.object, finalizer);
        }
        done(Ok(()))
    }
}

fn finalizer(resource: &Resource) -> Option<&'static str> {
    resource.builtin_kind()?;
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "persistentvolumeclaims") => Some("kubernetes.io/pvc-protection"),
        ("", "persistentvolumes") => Some("kubernetes.io/pv-protection"),
        ("storage.k8s.io", "volumeattributesclasses") => Some("kubernetes.io/vac-protection"),
        _ => None,
    }
}

fn protect(object: &mut Value, finalizer: &str) {
    let mut finalizers: Vec<String> = meta::finalizers(object).into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|known| known == finalizer) {
        finalizers.push(finalizer.to_owned());
        meta::set_finalizers(object, finalizers);
    }
}
