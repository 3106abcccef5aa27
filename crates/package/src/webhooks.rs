//! What API servers know of webhooks.
//!
//! Configurations are shipped empty: nobody is asked before the program serves, which then writes the rest of them. They go with the chart or the
//! manifests that they came with, so that nobody waits for webhooks of a program that was uninstalled.

use serde_json::{Value, json};

use crate::operator::Operator;

/// The kinds of webhooks, with those of their configurations.
const CONFIGURATIONS: [(&str, &str); 2] =
    [("mutating", "MutatingWebhookConfiguration"), ("validating", "ValidatingWebhookConfiguration")];

/// The kinds of the configurations that the webhooks of a program need.
pub(crate) fn kinds(operator: &Operator<'_>) -> impl Iterator<Item = &'static str> {
    let webhooks = &operator.description.webhooks;
    let needed = CONFIGURATIONS.into_iter().filter(|(kind, _)| webhooks.iter().any(|one| one.kind == *kind));
    needed.map(|(_, configuration)| configuration)
}

/// The configurations, empty. The program looks for them under its own name.
pub(crate) fn objects(operator: &Operator<'_>) -> Vec<Value> {
    let object = |kind: &str| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": operator.name(), "labels": operator.labels()},
        })
    };
    kinds(operator).map(object).collect()
}
