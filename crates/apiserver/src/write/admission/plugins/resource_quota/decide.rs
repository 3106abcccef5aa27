//! What a write does to quotas, and whether there is enough left for it.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::Listed;
use super::evaluator::{Enforcement, Evaluator};
use super::pod_resources::{self, ResourceList};
use super::scope::Selector;
use crate::object::meta;
use crate::write::admission::Verb;

/// A write of an object that is counted.
pub(crate) struct Change<'a> {
    pub(crate) evaluator: Evaluator,
    pub(crate) verb: Verb,
    pub(crate) subresource: &'a str,
    /// The stored object; `None` if it is new.
    pub(crate) old: Option<&'a Value>,
    /// The next state of the object; `None` if it is removed.
    pub(crate) new: Option<&'a Value>,
}

/// What becomes of a quota.
pub(crate) struct Charge {
    pub(crate) quota: Listed,
    /// Its `status.used`.
    pub(crate) used: Value,
}

impl Change<'_> {
    /// What becomes of quotas; those that stay as they are are left out. If `replenishes`, what is not used any more is given
    /// back. Refuses a write for which there is not enough left.
    pub(super) fn charges(&self, quotas: &[Listed], replenishes: bool) -> Result<Vec<Charge>, String> {
        let (old, new) = (self.old.unwrap_or(&Value::Null), self.new.unwrap_or(&Value::Null));
        let enforcement = self.evaluator.enforcement(self.verb, self.subresource, [old, new]);
        if enforcement == Enforcement::Ignore && !replenishes {
            return Ok(Vec::new());
        }
        let mut charges = Vec::new();
        for quota in quotas {
            let limits = Limits::of(&quota.object, &self.evaluator);
            if limits.hard.is_empty() {
                continue;
            }
            let [before, after] =
                [self.old, self.new].map(|object| object.filter(|object| limits.include(object)));
            if enforcement == Enforcement::Refuse
                && let Some(object) = after
            {
                limits.check(object)?;
            }
            let usage = |object: Option<&Value>| {
                object.map(|object| self.evaluator.usage(object)).unwrap_or_default()
            };
            let mut delta = difference(&usage(after), &usage(before));
            delta.retain(|name, amount| {
                limits.hard.contains_key(name) && !amount.is_zero() && (replenishes || !amount.is_negative())
            });
            if delta.is_empty() || limits.lacks_usage() {
                continue;
            }
            if enforcement == Enforcement::Refuse {
                limits.check_enough(&delta)?;
            }
            charges.push(Charge { used: limits.used_with(&delta), quota: quota.clone() });
        }
        Ok(charges)
    }
}

/// What a quota says about the objects of one evaluator.
struct Limits<'a> {
    quota: &'a Value,
    evaluator: &'a Evaluator,
    hard: ResourceList,
    used: ResourceList,
    scopes: Vec<Selector<'a>>,
}

impl<'a> Limits<'a> {
    fn of(quota: &'a Value, evaluator: &'a Evaluator) -> Self {
        let mut hard = pod_resources::read(&quota["status"]["hard"]);
        hard.retain(|name, _| evaluator.counts(name));
        let used = pod_resources::read(&quota["status"]["used"]);
        Self { quota, evaluator, hard, used, scopes: Selector::of(quota) }
    }

    /// Whether the quota is about an object.
    fn include(&self, object: &Value) -> bool {
        self.scopes.iter().all(|selector| self.evaluator.is_in_scope(object, selector))
    }

    fn name(&self) -> &str {
        meta::name(self.quota)
    }

    /// Whether nobody knows yet how much is used.
    fn lacks_usage(&self) -> bool {
        self.hard.keys().any(|name| !self.used.contains_key(name))
    }

    /// Refuses an object that does not say what it needs, and any while nobody knows how much is used.
    fn check(&self, object: &Value) -> Result<(), String> {
        let names: Vec<&String> = self.hard.keys().collect();
        self.evaluator
            .check(&names, object)
            .map_err(|why| format!("failed quota: {}: {why}", self.name()))?;
        if self.lacks_usage() {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            return Err(format!("status unknown for quota: {}, resources: {}", self.name(), names.join(",")));
        }
        Ok(())
    }

    /// Refuses to use more than there is.
    fn check_enough(&self, delta: &ResourceList) -> Result<(), String> {
        let exceeded = |name: &String| {
            let (Some(used), Some(hard), Some(more)) =
                (self.used.get(name), self.hard.get(name), delta.get(name))
            else {
                return false;
            };
            // What is too large to reckon with is too much.
            !more.is_negative()
                && used
                    .plus(more)
                    .and_then(|sum| sum.compare(hard))
                    .is_none_or(|order| order == Ordering::Greater)
        };
        let names: Vec<&String> = delta.keys().filter(|name| exceeded(name)).collect();
        if names.is_empty() {
            return Ok(());
        }
        let show = |list: &ResourceList| {
            let all = names.iter().filter_map(|name| Some(format!("{name}={}", list.get(*name)?)));
            all.collect::<Vec<_>>().join(",")
        };
        Err(format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            self.name(),
            show(delta),
            show(&self.used),
            show(&self.hard)
        ))
    }

    /// `status.used` after a change.
    fn used_with(&self, delta: &ResourceList) -> Value {
        let mut used = self.quota["status"]["used"].as_object().cloned().unwrap_or_default();
        for (name, amount) in delta {
            let known = self.used.get(name).copied().unwrap_or(watchkeeper_kinds::Quantity::ZERO);
            // What is too large to reckon with changes nothing.
            let sum = known.plus(amount).unwrap_or(known);
            let sum = if sum.is_negative() { watchkeeper_kinds::Quantity::ZERO } else { sum };
            used.insert(name.clone(), sum.to_string().into());
        }
        Value::Object(used)
    }
}

/// What is more or less in the first list than in the second.
fn difference(one: &ResourceList, other: &ResourceList) -> ResourceList {
    let zero = watchkeeper_kinds::Quantity::ZERO;
    let names = one.keys().chain(other.keys());
    names
        .filter_map(|name| {
            let (one, other) = (one.get(name).unwrap_or(&zero), other.get(name).unwrap_or(&zero));
            Some((name.clone(), one.minus(other)?))
        })
        .collect()
}

/// Adds up what objects use of what a quota limits.
pub(crate) struct Sum<'a> {
    quota: &'a Value,
    used: ResourceList,
}

impl<'a> Sum<'a> {
    /// Nothing of anything.
    pub(crate) fn new(quota: &'a Value) -> Self {
        let hard = pod_resources::read(&quota["spec"]["hard"]);
        let used = hard.into_keys().map(|name| (name, watchkeeper_kinds::Quantity::ZERO)).collect();
        Self { quota, used }
    }

    /// The names of what is limited.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.used.keys().map(String::as_str)
    }

    /// Adds an object.
    pub(crate) fn add(&mut self, evaluator: &Evaluator, object: &Value) {
        if Selector::of(self.quota).iter().all(|selector| evaluator.is_in_scope(object, selector)) {
            let mut usage = evaluator.usage(object);
            usage.retain(|name, _| self.used.contains_key(name));
            pod_resources::add(&mut self.used, &usage);
        }
    }

    /// The `status` of the quota.
    pub(crate) fn status(&self) -> Value {
        let used: Map<String, Value> =
            self.used.iter().map(|(name, amount)| (name.clone(), amount.to_string().into())).collect();
        let mut status = Map::new();
        if let Some(hard) = self.quota["spec"].get("hard") {
            status.insert("hard".into(), hard.clone());
            status.insert("used".into(), used.into());
        }
        status.into()
    }
}
