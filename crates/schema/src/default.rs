//! Filling in defaults.

use crate::schema::{Node, Schema};
use serde_json::Value;

impl Schema {
    /// Sets every field that is missing, or null without being allowed to, to its default.
    ///
    /// Defaults are set inside objects and arrays that are there, and inside what a default has just created; an object is
    /// not created for the sake of a default inside it. Where null is neither allowed nor replaced it stays, for
    /// validation to complain about.
    ///
    /// ```
    /// use serde_json::json;
    /// use watchkeeper_schema::Schema;
    /// let schema = Schema::read(&json!({"properties": {"spec": {"properties": {"size": {"default": 1}}}}}))?;
    /// let mut object = json!({"spec": {}});
    /// schema.default(&mut object);
    /// assert_eq!(object, json!({"spec": {"size": 1}}));
    /// # Ok::<(), watchkeeper_schema::Error>(())
    /// ```
    pub fn default(&self, object: &mut Value) {
        fill(&self.root, object);
    }
}

fn fill(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in node.properties.iter() {
                let Some(default) = property.filling() else { continue };
                match fields.get_mut(name) {
                    Some(found) if found.is_null() && property.refuses_null() => *found = default.clone(),
                    Some(_) => {}
                    None => {
                        fields.insert(name.into(), default.clone());
                    }
                }
            }
            for (name, field) in fields.iter_mut() {
                if let Some(property) = node.property(name) {
                    fill(property, field);
                } else if let Some(entry) = node.additional_schema() {
                    replace_null(entry, field);
                    fill(entry, field);
                }
            }
        }
        Value::Array(items) => {
            let Some(node) = &node.items else { return };
            for item in items {
                replace_null(node, item);
                fill(node, item);
            }
        }
        _ => {}
    }
}

fn replace_null(node: &Node, value: &mut Value) {
    if let Some(default) = node.filling().filter(|_| value.is_null() && node.refuses_null()) {
        *value = default.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn defaulted(schema: Value, mut object: Value) -> Value {
        Schema::read(&schema).unwrap().default(&mut object);
        object
    }

    #[test]
    fn missing_fields_are_filled_and_given_ones_are_kept() {
        let schema =
            json!({"properties": {"a": {"default": "A"}, "b": {"default": "B"}, "c": {"default": 1}}});
        assert_eq!(
            defaulted(schema, json!({"a": "x", "b": "", "z": null})),
            json!({"a": "x", "b": "", "c": 1, "z": null})
        );
    }

    #[test]
    fn parents_are_not_created_unless_they_have_a_default() {
        let inner = json!({"properties": {"x": {"default": 1}}});
        assert_eq!(defaulted(json!({"properties": {"p": inner}}), json!({})), json!({}));
        let with_default = json!({"properties": {"p": {"default": {}, "properties": {"x": {"default": 1}}}}});
        assert_eq!(defaulted(with_default, json!({})), json!({"p": {"x": 1}}));
    }

    #[test]
    fn null_is_replaced_where_it_may_not_be() {
        let schema = json!({"properties": {
            "a": {"default": 1}, "b": {"default": 1, "nullable": true}, "c": {},
            "m": {"additionalProperties": {"default": 2}}, "l": {"items": {"default": 3}},
            "n": {"additionalProperties": {"default": 2, "nullable": true}},
        }});
        assert_eq!(
            defaulted(
                schema,
                json!({"a": null, "b": null, "c": null, "m": {"k": null}, "l": [null, 1], "n": {"k": null}})
            ),
            json!({"a": 1, "b": null, "c": null, "m": {"k": 2}, "l": [3, 1], "n": {"k": null}})
        );
    }

    #[test]
    fn defaults_reach_into_arrays_and_maps() {
        let item = json!({"properties": {"x": {"default": "d"}}});
        let schema = json!({"properties": {"l": {"items": item}, "m": {"additionalProperties": item}}});
        assert_eq!(
            defaulted(schema, json!({"l": [{}, {"x": "y"}, "s"], "m": {"k": {}}})),
            json!({"l": [{"x": "d"}, {"x": "y"}, "s"], "m": {"k": {"x": "d"}}})
        );
    }
}
