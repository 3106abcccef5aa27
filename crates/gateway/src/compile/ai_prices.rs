//! Models without prices, under limits of cost.

use super::Compiler;
use crate::ai::limits_cost;
use crate::object::{InputKind, ObjectId, Problem};

/// How many models a message names.
const NAMED: usize = 5;

impl Compiler {
    /// Policies and tenants that limit cost say which models have no prices.
    pub(super) fn touch_cost_limits(&mut self, namespace: Option<&str>) {
        let policies = self.table.ai.policies();
        let policies = policies
            .filter(|policy| policy.key.namespace() == namespace && policy.limits_cost())
            .map(|policy| ObjectId { kind: InputKind::LlmPolicy, key: policy.key.clone() });
        let policies: Vec<ObjectId> = policies.collect();
        self.touched.extend(policies);
        let tenants = self.own_tenants(namespace).filter(|tenant| limits_cost(&tenant.limits));
        let tenants = tenants.map(|tenant| ObjectId { kind: InputKind::Tenant, key: tenant.key.clone() });
        let tenants: Vec<ObjectId> = tenants.collect();
        self.touched.extend(tenants);
    }

    /// What is to be said of models whose calls are refused because an object limits cost, and they have no prices.
    pub(super) fn unpriced(&self, id: &ObjectId) -> Vec<Problem> {
        let key = &id.key;
        let namespace = key.namespace().unwrap_or_default();
        let policy = self.table.ai.policy(key).filter(|_| id.kind == InputKind::LlmPolicy);
        let is_limited = match id.kind {
            InputKind::LlmPolicy => policy.is_some_and(|policy| policy.limits_cost()),
            InputKind::Tenant => self
                .own_tenants(key.namespace())
                .any(|tenant| tenant.key == *key && limits_cost(&tenant.limits)),
            _ => false,
        };
        if !is_limited {
            return Vec::new();
        }
        let models = self.table.ai.models(namespace).filter(|model| {
            model.prices.is_none() && policy.is_none_or(|policy| policy.may_call(&model.name))
        });
        let names: Vec<&str> = models.map(|model| model.key.name()).collect();
        if names.is_empty() {
            return Vec::new();
        }
        let more = match names.len().checked_sub(NAMED) {
            Some(more) if more > 0 => format!(" and {more} more"),
            _ => String::new(),
        };
        let message = format!(
            "have a cost, and calls are refused of models without spec.prices: ModelContextMapping {}{more}",
            names[..names.len().min(NAMED)].join(", ")
        );
        vec![Problem::new("spec.limits", message)]
    }
}
