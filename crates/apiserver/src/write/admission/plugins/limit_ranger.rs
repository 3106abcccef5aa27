//! LimitRanges give containers what they do not ask for, and refuse what asks for too little or too much.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use watchkeeper_kinds::Quantity;

use super::pod_resources::{self, Amounts, ResourceList};
use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done};
use crate::object::meta;
use crate::status_error::StatusError;
use crate::write::Draft;
use crate::write::admission::listers::Listers;

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("LimitRanger", |handles| Box::new(LimitRanger(Arc::clone(&handles.listers))));

/// Where a Pod says what it was given.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

struct LimitRanger(Arc<Listers>);

impl Plugin for LimitRanger {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        let is_pod = scope.is_below("", "pods");
        match (scope.verb, scope.subresource) {
            (Verb::Create, "") => is_pod || scope.is_of("", "persistentvolumeclaims"),
            // The resources of a Pod do not change but by a resize.
            (Verb::Update, "") => scope.is_of("", "persistentvolumeclaims"),
            (Verb::Update, "resize") => is_pod,
            _ => false,
        }
    }

    fn mutate<'a>(&'a self, attributes: &'a Attributes<'a>, draft: &'a mut Draft) -> Admitted<'a> {
        if attributes.target.resource.is_core("pods") {
            for range in self.ranges(attributes) {
                give_defaults(&range, &mut draft.object);
            }
        }
        done(Ok(()))
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: &'a Value,
        _: &'a mut Vec<String>,
    ) -> Admitted<'a> {
        let is_pod = attributes.target.resource.is_core("pods");
        let check = || -> Result<(), StatusError> {
            for range in self.ranges(attributes) {
                let problems =
                    if is_pod { pod_problems(&range, object) } else { claim_problems(&range, object) };
                if let Some(problem) = aggregated(problems) {
                    return Err(attributes.forbidden(&problem));
                }
            }
            Ok(())
        };
        done(check())
    }
}

impl LimitRanger {
    /// The LimitRanges that concern a write: those of its namespace, unless the object is on its way out.
    fn ranges(&self, attributes: &Attributes<'_>) -> Vec<Arc<Value>> {
        if attributes.old.is_some_and(meta::is_deleting) {
            return Vec::new();
        }
        let listed = self.0.limit_ranges.all_in(attributes.namespace_name());
        listed.into_iter().map(|listed| listed.object).collect()
    }
}

fn limits(range: &Value) -> impl Iterator<Item = &Value> {
    range["spec"]["limits"].as_array().into_iter().flatten()
}

/// Gives the containers of a Pod what they do not ask for, and says so in an annotation.
fn give_defaults(range: &Value, pod: &mut Value) {
    let (mut requests, mut most) = (BTreeMap::new(), BTreeMap::new());
    for limit in limits(range).filter(|limit| limit["type"] == "Container") {
        let all = |field: &str| limit[field].as_object().cloned().into_iter().flatten();
        requests.extend(all("defaultRequest"));
        most.extend(all("default"));
    }
    let mut given = Vec::new();
    for (list, word) in [("containers", "container"), ("initContainers", "init container")] {
        let containers =
            pod.get_mut("spec").and_then(|spec| spec.get_mut(list)).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default().to_owned();
            for (field, what, defaults) in [("requests", "request", &requests), ("limits", "limit", &most)] {
                let names = fill(container, field, defaults);
                if !names.is_empty() {
                    given.push(format!("{} {what} for {word} {name}", names.join(", ")));
                }
            }
        }
    }
    if given.is_empty() {
        return;
    }
    let annotations = meta::metadata(pod).entry("annotations").or_insert_with(|| Map::new().into());
    meta::fields(annotations)
        .insert(ANNOTATION.into(), format!("LimitRanger plugin set: {}", given.join("; ")).into());
}

/// Puts amounts into a list of a container that has none of these. Gives their names.
fn fill(container: &mut Value, field: &str, defaults: &BTreeMap<String, Value>) -> Vec<String> {
    if defaults.is_empty() {
        return Vec::new();
    }
    let resources = meta::fields(container).entry("resources").or_insert_with(|| Map::new().into());
    let list = meta::fields(resources).entry(field).or_insert_with(|| Map::new().into());
    let list = meta::fields(list);
    let missing: Vec<_> = defaults.iter().filter(|(name, _)| !list.contains_key(*name)).collect();
    for (name, amount) in &missing {
        list.insert((*name).clone(), (*amount).clone());
    }
    missing.into_iter().map(|(name, _)| name.clone()).collect()
}

/// What is wrong with a claim.
fn claim_problems(range: &Value, claim: &Value) -> Vec<String> {
    let asked =
        Asked { requests: pod_resources::read(&claim["spec"]["resources"]["requests"]), ..Asked::default() };
    let mut problems = Vec::new();
    for limit in limits(range).filter(|limit| limit["type"] == "PersistentVolumeClaim") {
        let rule = |name: &str, bound: &Quantity| asked.below(limit, name, bound);
        problems.extend(bounds(limit, "min", &rule));
        let rule = |name: &str, bound: &Quantity| asked.request_above(limit, name, bound);
        problems.extend(bounds(limit, "max", &rule));
    }
    problems
}

/// What is wrong with a Pod.
fn pod_problems(range: &Value, pod: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for limit in limits(range) {
        let asked: Vec<Asked> = match limit["type"].as_str().unwrap_or_default() {
            "Container" => containers(pod).map(Asked::by_container).collect(),
            "Pod" => vec![Asked::by_pod(pod)],
            _ => continue,
        };
        for asked in asked {
            problems.extend(bounds(limit, "min", &|name, bound| asked.below(limit, name, bound)));
            problems.extend(bounds(limit, "max", &|name, bound| asked.above(limit, name, bound)));
            let ratio = |name: &str, bound: &Quantity| asked.over_ratio(limit, name, bound);
            problems.extend(bounds(limit, "maxLimitRequestRatio", &ratio));
        }
    }
    problems
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| pod["spec"][list].as_array().into_iter().flatten())
}

/// What a rule says about each bound of a list.
fn bounds(limit: &Value, field: &str, rule: &dyn Fn(&str, &Quantity) -> Option<String>) -> Vec<String> {
    pod_resources::read(&limit[field]).iter().filter_map(|(name, bound)| rule(name, bound)).collect()
}

/// What somebody asks for.
#[derive(Default)]
struct Asked {
    requests: ResourceList,
    limits: ResourceList,
}

impl Asked {
    fn by_container(container: &Value) -> Self {
        let resources = &container["resources"];
        Self {
            requests: pod_resources::read(&resources["requests"]),
            limits: pod_resources::read(&resources["limits"]),
        }
    }

    fn by_pod(pod: &Value) -> Self {
        let of =
            |amounts| pod_resources::of_spec(&pod["spec"], amounts, |name| matches!(name, "cpu" | "memory"));
        Self { requests: of(Amounts::Requests), limits: of(Amounts::Limits) }
    }

    fn below(&self, limit: &Value, name: &str, bound: &Quantity) -> Option<String> {
        let begin = format!("minimum {name} usage per {} is {bound}", kind(limit));
        let Some(request) = self.requests.get(name) else {
            return Some(format!("{begin}.  No request is specified"));
        };
        if order(request, bound) == Ordering::Less {
            return Some(format!("{begin}, but request is {request}"));
        }
        let low = self.limits.get(name).filter(|most| order(most, bound) == Ordering::Less)?;
        Some(format!("{begin}, but limit is {low}"))
    }

    fn above(&self, limit: &Value, name: &str, bound: &Quantity) -> Option<String> {
        let begin = format!("maximum {name} usage per {} is {bound}", kind(limit));
        let Some(most) = self.limits.get(name) else {
            return Some(format!("{begin}.  No limit is specified"));
        };
        if order(most, bound) == Ordering::Greater {
            return Some(format!("{begin}, but limit is {most}"));
        }
        let high = self.requests.get(name).filter(|request| order(request, bound) == Ordering::Greater)?;
        Some(format!("{begin}, but request is {high}"))
    }

    fn request_above(&self, limit: &Value, name: &str, bound: &Quantity) -> Option<String> {
        let begin = format!("maximum {name} usage per {} is {bound}", kind(limit));
        let Some(request) = self.requests.get(name) else {
            return Some(format!("{begin}.  No request is specified"));
        };
        (order(request, bound) == Ordering::Greater).then(|| format!("{begin}, but request is {request}"))
    }

    fn over_ratio(&self, limit: &Value, name: &str, bound: &Quantity) -> Option<String> {
        let begin = format!("{name} max limit to request ratio per {} is {bound}", kind(limit));
        let above_zero =
            |list: &ResourceList| list.get(name).filter(|amount| !amount.is_zero()).map(thousandths);
        let Some(request) = above_zero(&self.requests) else {
            return Some(format!("{begin}, but no request is specified or request is 0"));
        };
        let Some(most) = above_zero(&self.limits) else {
            return Some(format!("{begin}, but no limit is specified or limit is 0"));
        };
        let ratio = most / request;
        (ratio * 1000.0 > thousandths(bound)).then(|| format!("{begin}, but provided ratio is {ratio:.6}"))
    }
}

fn kind(limit: &Value) -> &str {
    limit["type"].as_str().unwrap_or_default()
}

/// Compares amounts in thousandths, as upstream.
fn order(one: &Quantity, other: &Quantity) -> Ordering {
    match (one.thousandths(), other.thousandths()) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => one.compare(other).unwrap_or(Ordering::Equal),
    }
}

fn thousandths(amount: &Quantity) -> f64 {
    amount.thousandths().map_or(f64::INFINITY, |number| number as f64)
}

/// Several problems as one, as Go's errors are; the same is said once.
fn aggregated(problems: Vec<String>) -> Option<String> {
    let mut different: Vec<String> = Vec::new();
    for problem in problems {
        if !different.contains(&problem) {
            different.push(problem);
        }
    }
    match different.len() {
        0 => None,
        1 => different.pop(),
        _ => Some(format!("[{}]", different.join(", "))),
    }
}
