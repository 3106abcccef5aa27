//! A new Node is tainted as not ready, until its controller finds it ready.

use serde_json::{Value, json};

use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done};
use crate::object::meta;
use crate::write::Draft;

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("TaintNodesByCondition", |_| Box::new(TaintNodesByCondition));

struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        scope.verb == Verb::Create && scope.is_of("", "nodes")
    }

    fn mutate<'a>(&'a self, _: &'a Attributes<'a>, draft: &'a mut Draft) -> Admitted<'a> {
        taint(&mut draft.object);
        done(Ok(()))
    }
}

fn taint(node: &mut Value) {
    let spec = meta::fields(node).entry("spec").or_insert(json!({}));
    let taints = meta::fields(spec).entry("taints").or_insert(json!([]));
    let not_ready = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let is_same = |taint: &Value| taint["key"] == not_ready["key"] && taint["effect"] == not_ready["effect"];
    if let Value::Array(taints) = taints
        && !taints.iter().any(is_same)
    {
        taints.push(not_ready);
    }
}
