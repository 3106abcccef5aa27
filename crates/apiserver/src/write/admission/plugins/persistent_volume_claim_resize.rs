//! A claim grows once it is bound, and if its StorageClass allows that.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value;

use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done, pod_resources};
use crate::object::meta;
use crate::status_error::StatusError;
use crate::write::admission::listers::Listers;

pub(in crate::write::admission) const PLUGIN: (&str, Make) = ("PersistentVolumeClaimResize", |handles| {
    Box::new(PersistentVolumeClaimResize(Arc::clone(&handles.listers)))
});

struct PersistentVolumeClaimResize(Arc<Listers>);

impl Plugin for PersistentVolumeClaimResize {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        scope.verb == Verb::Update && scope.is_of("", "persistentvolumeclaims")
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: &'a Value,
        _: &'a mut Vec<String>,
    ) -> Admitted<'a> {
        done(self.check(attributes, object))
    }
}

impl PersistentVolumeClaimResize {
    fn check(&self, attributes: &Attributes<'_>, claim: &Value) -> Result<(), StatusError> {
        let Some(old) = attributes.old else { return Ok(()) };
        let size =
            |claim: &Value| pod_resources::quantity(&claim["spec"]["resources"]["requests"]["storage"]);
        let grows = match (size(old), size(claim)) {
            (Some(old), Some(new)) => new.compare(&old) == Some(Ordering::Greater),
            (old, new) => old.is_none() && new.is_some(),
        };
        if !grows {
            return Ok(());
        }
        if old["status"]["phase"] != "Bound" {
            return Err(attributes.forbidden("Only bound persistent volume claims can be expanded"));
        }
        let class = class(claim);
        let allows =
            || self.0.storage_classes.get(class).is_some_and(|class| class["allowVolumeExpansion"] == true);
        if class.is_empty() || class != self::class(old) || !allows() {
            return Err(attributes.forbidden(
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
            ));
        }
        Ok(())
    }
}

/// The StorageClass of a claim, wherever it says it; empty if there is none.
pub(super) fn class(claim: &Value) -> &str {
    let old = meta::get(claim, "annotations")
        .and_then(|all| all["volume.beta.kubernetes.io/storage-class"].as_str());
    old.or(claim["spec"]["storageClassName"].as_str()).unwrap_or_default()
}
