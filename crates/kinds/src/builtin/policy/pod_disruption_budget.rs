use crate::Kind;
use crate::kind::row::{STATUS, kind};
use crate::validate::field::{Errors, Field};
use crate::validate::selector;
use crate::validate::workloads::{amount_or_percent, not_above_all};
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind =
    kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget")
        .short(&["pdb"])
        .with(&[STATUS])
        .generation()
        .conditional()
        .validate_with(validate)
        .metadata_checks(0, 0)
        .no_metadata_checks_of_subresources()
        .table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if least.is_set() && most.is_set() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        let field = |name: &str| spec.get(name).value.clone();
        errors.push(FieldError::invalid(&spec.at, spec.value.clone(), detail).structure(&[
            ("MinAvailable", field("minAvailable")),
            ("Selector", field("selector")),
            ("MaxUnavailable", field("maxUnavailable")),
            ("UnhealthyPodEvictionPolicy", field("unhealthyPodEvictionPolicy")),
        ]));
    }
    for amount in [least, most] {
        amount_or_percent(&amount, errors);
        not_above_all(&amount, errors);
    }
    selector::selector(&spec.get("selector"), errors);
    spec.get("unhealthyPodEvictionPolicy").one_of(&["AlwaysAllow", "IfHealthyBudget"], errors);
}

mod table {
    use serde_json::Value;
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, integer, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[
            NAME,
            text("Min Available", "How many pods must stay."),
            text("Max Unavailable", "How many pods may go."),
            integer("Allowed Disruptions", "How many pods may be evicted now."),
            AGE,
        ],
        |view| {
            let budget = view.object;
            let bound = |path| match budget.at(path) {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => "N/A".into(),
            };
            vec![
                view.name(),
                bound("spec.minAvailable").into(),
                bound("spec.maxUnavailable").into(),
                budget.int("status.disruptionsAllowed").into(),
                view.age(),
            ]
        },
    );
}
