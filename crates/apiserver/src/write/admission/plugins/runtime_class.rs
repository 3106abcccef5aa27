//! A Pod with a RuntimeClass gets its overhead, and goes where the class can run.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done, pod_resources};
use crate::object::meta;
use crate::status_error::StatusError;
use crate::write::Draft;
use crate::write::admission::listers::Listers;

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("RuntimeClass", |handles| Box::new(RuntimeClass(Arc::clone(&handles.listers))));

const OTHER_OVERHEAD: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

struct RuntimeClass(Arc<Listers>);

impl Plugin for RuntimeClass {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        scope.verb == Verb::Create && scope.is_of("", "pods")
    }

    fn mutate<'a>(&'a self, attributes: &'a Attributes<'a>, draft: &'a mut Draft) -> Admitted<'a> {
        let pod = &mut draft.object;
        if pod["spec"]["runtimeClassName"] == "" {
            // What upstream's client says before it asks for a class without a name.
            return done(Err(StatusError::untyped("resource name may not be empty")));
        }
        let class = self.class(pod);
        let completed = class.and_then(|class| class.map_or(Ok(()), |class| complete(&class, pod)));
        done(completed.map_err(|why| attributes.forbidden_draft(&draft.object, &why)))
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: &'a Value,
        _: &'a mut Vec<String>,
    ) -> Admitted<'a> {
        done(self.check(object).map_err(|why| attributes.forbidden(&why)))
    }
}

impl RuntimeClass {
    /// The class of a Pod, if it asks for one.
    fn class(&self, pod: &Value) -> Result<Option<Arc<Value>>, String> {
        let Some(name) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(None) };
        let class = self.0.runtime_classes.get(name);
        class.map(Some).ok_or_else(|| format!("pod rejected: RuntimeClass {name:?} not found"))
    }

    /// Refuses a Pod whose overhead is not that of its class.
    fn check(&self, pod: &Value) -> Result<(), String> {
        let class = self.class(pod)?;
        let overhead =
            class.as_deref().and_then(|class| class.get("overhead")).filter(|overhead| overhead.is_object());
        match overhead {
            Some(overhead) if same(&overhead["podFixed"], &pod["spec"]["overhead"]) => Ok(()),
            Some(_) => Err(OTHER_OVERHEAD.to_owned()),
            None if pod["spec"]["overhead"].is_null() => Ok(()),
            None => Err("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
                .to_owned()),
        }
    }
}

/// Gives a Pod the overhead and the constraints of its class.
fn complete(class: &Value, pod: &mut Value) -> Result<(), String> {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return Ok(()) };
    if let Some(overhead) = class.get("overhead").filter(|overhead| overhead.is_object()) {
        let fixed = &overhead["podFixed"];
        let has_one = spec.get("overhead").and_then(Value::as_object).is_some_and(|own| !own.is_empty());
        if has_one && !same(fixed, &spec["overhead"]) {
            return Err(OTHER_OVERHEAD.to_owned());
        }
        if !fixed.is_null() {
            spec.insert("overhead".into(), fixed.clone());
        }
    }
    let Some(scheduling) = class.get("scheduling").filter(|scheduling| scheduling.is_object()) else {
        return Ok(());
    };
    if let Some(wanted) = scheduling["nodeSelector"].as_object() {
        let own = meta::fields(spec.entry("nodeSelector").or_insert_with(|| Map::new().into()));
        for (key, value) in wanted {
            if let Some(known) = own.get(key).filter(|known| *known != value) {
                let [known, value] = [known, value].map(|value| value.as_str().unwrap_or_default());
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {known}"
                ));
            }
            own.insert(key.clone(), value.clone());
        }
    }
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let (own, more) = (list(spec.get("tolerations")), list(scheduling.get("tolerations")));
    if !own.is_empty() || !more.is_empty() {
        spec.insert("tolerations".into(), merged(own, more).into());
    }
    Ok(())
}

/// Whether two lists have the same amounts.
fn same(one: &Value, other: &Value) -> bool {
    let (one, other) = (pod_resources::read(one), pod_resources::read(other));
    one.len() == other.len()
        && one.iter().all(|(name, amount)| {
            other.get(name).is_some_and(|other| amount.compare(other) == Some(std::cmp::Ordering::Equal))
        })
}

/// Both lists of tolerations, without those that others include.
fn merged(own: Vec<Value>, more: Vec<Value>) -> Vec<Value> {
    let all: Vec<Value> = own.into_iter().chain(more).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let is_known = merged.iter().any(|known| includes(known, toleration));
        let later = all.iter().skip(index.saturating_add(1));
        let follows = later.clone().any(|other| other != toleration && includes(other, toleration));
        if !is_known && !follows {
            merged.push(toleration.clone());
        }
    }
    merged
}

/// Whether a toleration tolerates everything that another one does.
fn includes(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let text = |toleration: &Value, field: &str| toleration[field].as_str().unwrap_or_default().to_owned();
    let same = |field: &str| text(wide, field) == text(narrow, field);
    let exists = text(wide, "operator") == "Exists";
    let is_any_key = exists && text(wide, "key").is_empty();
    if !(same("key") || is_any_key) {
        return false;
    }
    if !same("effect") && !text(wide, "effect").is_empty() {
        return false;
    }
    if text(wide, "effect") == "NoExecute"
        && let Some(seconds) = wide["tolerationSeconds"].as_i64()
        && narrow["tolerationSeconds"].as_i64().is_none_or(|narrow| narrow > seconds)
    {
        return false;
    }
    match text(wide, "operator").as_str() {
        "Equal" | "" => text(narrow, "operator") == "Equal" && same("value"),
        _ => exists,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tolerations_that_others_include_are_left_out() {
        let any = json!({"operator": "Exists"});
        let exact = json!({"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"});
        let key = json!({"key": "a", "operator": "Exists", "effect": "NoSchedule"});
        let short = json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
        let long = json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9});
        assert_eq!(merged(vec![exact.clone()], vec![key.clone()]), std::slice::from_ref(&key));
        assert_eq!(merged(vec![key.clone(), short.clone()], vec![key.clone()]), [key.clone(), short.clone()]);
        assert_eq!(merged(vec![short], vec![long.clone()]), std::slice::from_ref(&long));
        assert_eq!(merged(vec![exact, key, long], vec![any.clone()]), [any]);
    }
}
