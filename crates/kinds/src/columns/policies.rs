//! Policies of admission and webhooks.

use serde_json::Value;
use watchkeeper_table::layout::{AGE, Column, Fields, Layout, NAME, View, integer, text};

pub(crate) const PARAMETERS: Column = text("ParamKind", "The kind of objects that configure the policy.");

/// The configurations of validating and of mutating webhooks.
pub(crate) const WEBHOOKS: Layout =
    Layout::new(&[NAME, integer("Webhooks", "How many webhooks there are."), AGE], |view| {
        vec![view.name(), view.object.len("webhooks").into(), view.age()]
    });

/// The bindings of validating and of mutating policies.
pub(crate) const BINDING: Layout = Layout::new(
    &[
        NAME,
        text("PolicyName", "The policy that is bound."),
        text("ParamRef", "The object that configures the policy here."),
        AGE,
    ],
    |view| {
        let binding = view.object;
        vec![
            view.name(),
            binding.text("spec.policyName").into(),
            parameter(binding.at("spec.paramRef")).into(),
            view.age(),
        ]
    },
);

/// The row of a policy, whose rules are at a path.
pub(crate) fn policy(view: &View<'_>, rules: &str) -> Vec<Value> {
    let kind = match view.object.at("spec.paramKind") {
        Value::Null => "<unset>".into(),
        kind => format!("{}/{}", kind.text("apiVersion"), kind.text("kind")),
    };
    vec![view.name(), view.object.len(rules).into(), kind.into(), view.age()]
}

fn parameter(reference: &Value) -> String {
    match reference.text("name") {
        "" if reference.has("selector") => debug(reference.at("selector")),
        "" => "<unset>".into(),
        // Without a namespace it may be that of the object admitted, whichever that is.
        name => format!("{}/{name}", reference.text_or("namespace", "*")),
    }
}

/// A label selector as Go prints the struct; here, other than elsewhere, that is what is shown.
fn debug(selector: &Value) -> String {
    let labels = selector.at("matchLabels").as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()));
    let expressions = selector.list("matchExpressions").iter().map(|expression| {
        let values: Vec<&str> = expression.list("values").iter().filter_map(Value::as_str).collect();
        let (key, operator) = (expression.text("key"), expression.text("operator"));
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},", values.join(" "))
    });
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
        String::from_iter(labels),
        String::from_iter(expressions)
    )
}
