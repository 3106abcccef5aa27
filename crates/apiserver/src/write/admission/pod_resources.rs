//! What a Pod asks for as a whole.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value;
use watchkeeper_kinds::Quantity;

/// Amounts by the names of resources.
pub(super) type ResourceList = BTreeMap<String, Quantity>;

/// Reads a list of resources. What is no quantity is left out: objects with such have been refused.
pub(super) fn read(list: &Value) -> ResourceList {
    let entries = list.as_object().into_iter().flatten();
    entries.filter_map(|(name, amount)| Some((name.clone(), quantity(amount)?))).collect()
}

/// Reads a quantity.
pub(super) fn quantity(amount: &Value) -> Option<Quantity> {
    match amount {
        Value::String(text) => Quantity::read(text),
        Value::Number(number) => Quantity::read(&number.to_string()),
        _ => None,
    }
}

/// Adds amounts to others. A sum that is too large to reckon with stays at what it was.
pub(super) fn add(to: &mut ResourceList, amounts: &ResourceList) {
    for (name, amount) in amounts {
        let sum = to.get(name).map_or(Some(*amount), |known| known.plus(amount));
        if let Some(sum) = sum {
            to.insert(name.clone(), sum);
        }
    }
}

/// The larger of two amounts, for every resource.
fn raise(to: &mut ResourceList, amounts: &ResourceList) {
    for (name, amount) in amounts {
        if to.get(name).is_none_or(|known| amount.compare(known) == Some(Ordering::Greater)) {
            to.insert(name.clone(), *amount);
        }
    }
}

/// The two lists of amounts that containers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amounts {
    Requests,
    Limits,
}

impl Amounts {
    fn field(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        }
    }
}

/// What the containers of a Pod ask for together. Init containers run one after the other, and beside those of them that go on.
/// What is said for the Pod as a whole has precedence, for resources with these names.
pub(super) fn of_spec(spec: &Value, amounts: Amounts, for_pod: fn(&str) -> bool) -> ResourceList {
    sum(spec, amounts, for_pod, &|container| read(&container["resources"][amounts.field()]))
}

/// What a Pod is charged for: what it asks for or what it has been given, whichever is more, and the overhead of its RuntimeClass.
pub(super) fn charged(pod: &Value, amounts: Amounts) -> ResourceList {
    let spec = &pod["spec"];
    let mut all = sum(spec, amounts, is_for_pod, &|container| {
        let mut asked = read(&container["resources"][amounts.field()]);
        if let Some(status) = status_of(pod, container) {
            raise(&mut asked, &read(&status["resources"][amounts.field()]));
            if amounts == Amounts::Requests {
                raise(&mut asked, &read(&status["allocatedResources"]));
            }
        }
        asked
    });
    let mut overhead = read(&spec["overhead"]);
    if amounts == Amounts::Limits {
        // What is not limited is not limited by its overhead.
        overhead.retain(|name, _| all.contains_key(name));
    }
    add(&mut all, &overhead);
    all
}

/// Whether something is said about a resource for the Pod as a whole.
pub(super) fn has_pod_level(spec: &Value) -> bool {
    let lists = [Amounts::Requests, Amounts::Limits].map(|amounts| &spec["resources"][amounts.field()]);
    lists.into_iter().filter_map(Value::as_object).flatten().any(|(name, _)| is_for_pod(name))
}

/// The resources that can be asked for for the Pod as a whole.
fn is_for_pod(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// The status of a container.
fn status_of<'a>(pod: &'a Value, container: &Value) -> Option<&'a Value> {
    let lists = ["containerStatuses", "initContainerStatuses"].map(|list| pod["status"][list].as_array());
    lists.into_iter().flatten().flatten().find(|status| status["name"] == container["name"])
}

fn sum(
    spec: &Value,
    amounts: Amounts,
    for_pod: fn(&str) -> bool,
    asked: &dyn Fn(&Value) -> ResourceList,
) -> ResourceList {
    let mut all = ResourceList::new();
    for container in spec["containers"].as_array().into_iter().flatten() {
        add(&mut all, &asked(container));
    }
    let (mut running, mut most) = (ResourceList::new(), ResourceList::new());
    for container in spec["initContainers"].as_array().into_iter().flatten() {
        let mut own = asked(container);
        if container["restartPolicy"] == "Always" {
            add(&mut all, &own);
            add(&mut running, &own);
            own = running.clone();
        } else {
            add(&mut own, &running);
        }
        raise(&mut most, &own);
    }
    raise(&mut all, &most);
    let own = read(&spec["resources"][amounts.field()]);
    all.extend(own.into_iter().filter(|(name, _)| for_pod(name)));
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cpu(list: &ResourceList) -> String {
        list["cpu"].to_string()
    }

    #[test]
    fn init_containers_run_one_after_the_other_and_beside_those_that_go_on() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let sidecar = json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": "200m"}}});
        let spec = json!({
            "containers": [container("100m"), container("300m")],
            "initContainers": [container("350m"), sidecar, container("500m")],
        });
        assert_eq!(cpu(&of_spec(&spec, Amounts::Requests, is_for_pod)), "700m");
        let spec = json!({"containers": [container("100m")], "initContainers": [container("350m")]});
        assert_eq!(cpu(&of_spec(&spec, Amounts::Requests, is_for_pod)), "350m");
    }

    #[test]
    fn a_pod_is_charged_for_its_overhead_and_for_what_it_still_has() {
        let pod = json!({
            "spec": {
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}}],
                "overhead": {"cpu": "250m", "memory": "64Mi"},
            },
            "status": {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
        });
        assert_eq!(cpu(&charged(&pod, Amounts::Requests)), "2250m");
        let limits = charged(&pod, Amounts::Limits);
        assert_eq!((limits["memory"].to_string().as_str(), limits.len()), ("1088Mi", 1));
    }

    #[test]
    fn what_is_said_for_the_pod_as_a_whole_has_precedence() {
        let spec = json!({
            "containers": [{"resources": {"requests": {"cpu": "1", "example.com/gpu": "1"}}}],
            "resources": {"requests": {"cpu": "3", "example.com/gpu": "7"}},
        });
        let asked = of_spec(&spec, Amounts::Requests, is_for_pod);
        assert_eq!((cpu(&asked).as_str(), asked["example.com/gpu"].to_string().as_str()), ("3", "1"));
        assert!(has_pod_level(&spec) && !has_pod_level(&json!({})));
    }
}
