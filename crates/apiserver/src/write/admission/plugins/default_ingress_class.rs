//! An Ingress without an IngressClass gets the one that is the default.

use std::sync::Arc;

use serde_json::Value;

use super::default_storage_class::newest;
use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done};
use crate::object::meta;
use crate::write::Draft;
use crate::write::admission::listers::Listers;

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("DefaultIngressClass", |handles| Box::new(DefaultIngressClass(Arc::clone(&handles.listers))));

/// What marks a class as the default.
const DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

/// Where an Ingress named its class before there was a field for it.
const OLD_CLASS: &str = "kubernetes.io/ingress.class";

struct DefaultIngressClass(Arc<Listers>);

impl Plugin for DefaultIngressClass {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        scope.verb == Verb::Create && scope.is_of("networking.k8s.io", "ingresses")
    }

    fn mutate<'a>(&'a self, _: &'a Attributes<'a>, draft: &'a mut Draft) -> Admitted<'a> {
        let ingress = &mut draft.object;
        let has_class = ingress["spec"].get("ingressClassName").is_some_and(|class| !class.is_null())
            || meta::get(ingress, "annotations")
                .is_some_and(|annotations| annotations.get(OLD_CLASS).is_some());
        if !has_class
            && let Some(class) = newest(&self.0.ingress_classes, &[DEFAULT])
            && let Some(Value::Object(spec)) = ingress.get_mut("spec")
        {
            spec.insert("ingressClassName".into(), meta::name(&class).into());
        }
        done(Ok(()))
    }
}
