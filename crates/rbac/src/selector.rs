use std::collections::BTreeMap;

use serde_json::{Value, json};
use watchkeeper_wire::LabelSelector;

/// Selects roles by their labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    object: Value,
    selector: LabelSelector,
}

impl Selector {
    /// Selects what has a label with this value.
    pub fn label(name: &str, value: &str) -> Self {
        Self::read(&json!({"matchLabels": {name: value}}))
    }

    /// Reads a label selector, as objects have it. One that is not valid selects nothing.
    pub fn read(selector: &Value) -> Self {
        let read = LabelSelector::from_object(Some(selector)).unwrap_or_else(|_| LabelSelector::nothing());
        Self { object: selector.clone(), selector: read }
    }

    /// The label selector, as objects have it.
    pub fn value(&self) -> Value {
        self.object.clone()
    }

    /// Whether it selects something with these labels. An empty selector selects everything.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.matches_pairs(|key| labels.get(key).map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_select_as_labels_say() {
        let labels = [("a".to_owned(), "1".to_owned())].into();
        for (selector, selects) in [
            (json!({}), true),
            (json!({"matchLabels": {"a": "1"}}), true),
            (json!({"matchLabels": {"a": "2"}}), false),
            (json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["2"]}]}), true),
            (json!({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["2"]}]}), true),
            (json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}), true),
            (json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}), false),
            (json!({"matchExpressions": [{"key": "b", "operator": "Like"}]}), false),
        ] {
            assert_eq!(Selector::read(&selector).selects(&labels), selects, "{selector}");
        }
    }
}
