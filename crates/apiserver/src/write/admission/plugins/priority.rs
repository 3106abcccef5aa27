//! Pods have the priority of their PriorityClass, or of the class that is the default. There is one default at most.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Admitted, Attributes, Lister, Make, Plugin, Scope, Verb, done};
use crate::object::meta;
use crate::status_error::StatusError;
use crate::write::Draft;
use crate::write::admission::listers::Listers;

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("Priority", |handles| Box::new(Priority(Arc::clone(&handles.listers))));

/// What a Pod may preempt unless its class says otherwise.
const PREEMPTS_LOWER: &str = "PreemptLowerPriority";

struct Priority(Arc<Listers>);

impl Plugin for Priority {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        matches!(scope.verb, Verb::Create | Verb::Update)
            && (scope.is_of("", "pods") || scope.is_of("scheduling.k8s.io", "priorityclasses"))
    }

    fn mutate<'a>(&'a self, attributes: &'a Attributes<'a>, draft: &'a mut Draft) -> Admitted<'a> {
        if !attributes.target.resource.is_core("pods") {
            return done(Ok(()));
        }
        done(match attributes.old {
            Some(old) => {
                keep(&mut draft.object, old);
                Ok(())
            }
            None => prioritize(&self.0.priority_classes, attributes, &mut draft.object),
        })
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: &'a Value,
        _: &'a mut Vec<String>,
    ) -> Admitted<'a> {
        if attributes.target.resource.is_core("pods") || object["globalDefault"] != true {
            return done(Ok(()));
        }
        done(match default_class(&self.0.priority_classes) {
            Some(known) if attributes.verb == Verb::Create || meta::name(&known) != meta::name(object) => {
                let why = format!(
                    "PriorityClass {} is already marked as default. Only one default can exist",
                    meta::name(&known)
                );
                Err(attributes.forbidden(&why))
            }
            _ => Ok(()),
        })
    }
}

/// A Pod that is changed keeps its own priority, even if the request does not mention it.
fn keep(pod: &mut Value, old: &Value) {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    for field in ["priority", "preemptionPolicy"] {
        if let Some(value) = old["spec"].get(field) {
            spec.entry(field).or_insert_with(|| value.clone());
        }
    }
}

/// Sets the priority of a new Pod.
fn prioritize(classes: &Lister, attributes: &Attributes<'_>, pod: &mut Value) -> Result<(), StatusError> {
    let name = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let class = match name.as_str() {
        "" => default_class(classes),
        name => Some(classes.get(name).ok_or_else(|| {
            attributes.forbidden_draft(pod, &format!("no PriorityClass with name {name} was found"))
        })?),
    };
    let class = class.as_deref();
    let priority = class.map_or(json!(0), |class| class.get("value").cloned().unwrap_or(json!(0)));
    let policy = match class {
        Some(class) => class.get("preemptionPolicy").cloned(),
        None => Some(json!(PREEMPTS_LOWER)),
    };
    let said = &pod["spec"]["priority"];
    if !said.is_null() && *said != priority {
        return Err(attributes.forbidden_draft(pod, &format!(
            "the integer value of priority ({said}) must not be provided in pod spec; priority admission controller computed {priority} from the given PriorityClass name"
        )));
    }
    let said = pod["spec"]["preemptionPolicy"].as_str();
    if let (Some(said), Some(policy)) = (said, policy.as_ref().and_then(Value::as_str))
        && said != policy
    {
        return Err(attributes.forbidden_draft(pod, &format!(
            "the string value of PreemptionPolicy ({said}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        )));
    }
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return Ok(()) };
    if let Some(class) = class {
        spec.insert("priorityClassName".into(), meta::name(class).into());
    }
    spec.insert("priority".into(), priority);
    if let Some(policy) = policy {
        spec.insert("preemptionPolicy".into(), policy);
    }
    Ok(())
}

/// The class that is the default; of several, the one with the lowest priority.
fn default_class(classes: &Lister) -> Option<Arc<Value>> {
    let defaults = classes.all().into_iter().filter(|class| class["globalDefault"] == true);
    defaults.min_by_key(|class| class["value"].as_i64())
}
