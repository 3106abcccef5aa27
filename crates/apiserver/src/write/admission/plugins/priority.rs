//! Pods have a priority. PriorityClasses are not looked up: it is 0, and lower ones are preempted.

use serde_json::{Value, json};

use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done};
use crate::write::Draft;

pub(in crate::write::admission) const PLUGIN: (&str, Make) = ("Priority", |_| Box::new(Priority));

struct Priority;

impl Plugin for Priority {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        matches!(scope.verb, Verb::Create | Verb::Update) && scope.is_of("", "pods")
    }

    fn mutate<'a>(&'a self, attributes: &'a Attributes<'a>, draft: &'a mut Draft) -> Admitted<'a> {
        set(&mut draft.object, attributes.old);
        done(Ok(()))
    }
}

/// Sets the priority of a new Pod; a changed one keeps its own, even if the request does not mention it.
fn set(pod: &mut Value, old: Option<&Value>) {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    let fields = [("priority", json!(0)), ("preemptionPolicy", json!("PreemptLowerPriority"))];
    for (field, usual) in fields {
        let value = match old {
            Some(old) => old["spec"].get(field).cloned(),
            None => Some(usual),
        };
        if let Some(value) = value {
            spec.entry(field).or_insert(value);
        }
    }
}
