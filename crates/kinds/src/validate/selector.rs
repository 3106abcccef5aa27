//! Label selectors.

use super::field::{Errors, Field};
use serde_json::Value;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{label_key_problems, label_value_problems};
use watchkeeper_wire::LabelSelector;

/// The rules of a label selector.
pub(crate) fn selector(selector: &Field<'_>, errors: &mut Errors) {
    selector.get("matchLabels").labels(errors);
    for requirement in selector.get("matchExpressions").items() {
        let (key, operator, values) =
            (requirement.get("key"), requirement.get("operator"), requirement.get("values"));
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                errors.push(FieldError::required(
                    &values.at,
                    "must be specified when `operator` is 'In' or 'NotIn'",
                ));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
                &values.at,
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => operator.invalid("not a valid selector operator", errors),
        }
        for problem in label_key_problems(key.text()) {
            errors.push(FieldError::invalid(&key.at, key.text(), problem));
        }
        for value in values.items() {
            label_value_problems(value.text()).into_iter().for_each(|problem| value.invalid(problem, errors));
        }
    }
}

/// Whether there is a selector that selects something.
pub(crate) fn is_empty(selector: &Value) -> bool {
    ["matchLabels", "matchExpressions"].into_iter().all(|part| match &selector[part] {
        Value::Object(labels) => labels.is_empty(),
        Value::Array(requirements) => requirements.is_empty(),
        _ => true,
    })
}

/// Whether a selector selects what has these labels; one that selects nothing in particular selects everything, none at
/// all selects nothing.
pub(crate) fn matches(selector: &Value, labels: &Value) -> bool {
    LabelSelector::from_object(Some(selector)).is_ok_and(|selector| selector.matches(labels.as_object()))
}
