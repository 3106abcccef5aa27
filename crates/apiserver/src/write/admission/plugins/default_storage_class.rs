//! A claim without a StorageClass gets the one that is the default.

use std::sync::Arc;

use serde_json::Value;

use super::{Admitted, Attributes, Lister, Make, Plugin, Scope, Verb, done};
use crate::object::meta;
use crate::write::Draft;
use crate::write::admission::listers::Listers;

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("DefaultStorageClass", |handles| Box::new(DefaultStorageClass(Arc::clone(&handles.listers))));

/// What marks a class as the default. The second is what it was called before.
const DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// Where claims named their class before there was a field for it.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

struct DefaultStorageClass(Arc<Listers>);

impl Plugin for DefaultStorageClass {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        scope.verb == Verb::Create && scope.is_of("", "persistentvolumeclaims")
    }

    fn mutate<'a>(&'a self, _: &'a Attributes<'a>, draft: &'a mut Draft) -> Admitted<'a> {
        let claim = &mut draft.object;
        let has_class = claim["spec"].get("storageClassName").is_some_and(|class| !class.is_null())
            || meta::get(claim, "annotations")
                .is_some_and(|annotations| annotations.get(OLD_CLASS).is_some());
        if !has_class
            && let Some(class) = newest(&self.0.storage_classes, &DEFAULT)
            && let Some(Value::Object(spec)) = claim.get_mut("spec")
        {
            spec.insert("storageClassName".into(), meta::name(&class).into());
        }
        done(Ok(()))
    }
}

/// The class that is marked as the default by one of these annotations; of several, the newest, then the first by name.
pub(super) fn newest(classes: &Lister, marks: &[&str]) -> Option<Arc<Value>> {
    let is_default = |class: &Arc<Value>| {
        marks.iter().any(|mark| meta::get(class, "annotations").is_some_and(|all| all[*mark] == "true"))
    };
    let created = |class: &Arc<Value>| meta::text(class, "creationTimestamp").to_owned();
    // They come by name, and the last of several that are equal is taken.
    classes.all().into_iter().filter(is_default).rev().max_by_key(created)
}
