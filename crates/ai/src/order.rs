use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The order in which the objects of a document have their fields.
///
/// [`Value`] sorts fields by name. To a model the order of a schema's properties means something, and to a cache of prompts the order of everything. What
/// is translated is made of objects of the document it is made of: an object that has the same names as one of those is written in its order.
/// Of two objects of a document with the same names in different orders, the first counts.
#[derive(Debug, Default)]
pub struct Order(HashMap<Vec<String>, Vec<String>>);

impl Order {
    /// The order of a document; that of names if it is not JSON.
    pub fn of(document: &[u8]) -> Self {
        let mut order = Self::default();
        if let Ok(Learned(objects)) = serde_json::from_slice(document) {
            for names in objects {
                let mut sorted = names.clone();
                sorted.sort_unstable();
                order.0.entry(sorted).or_insert(names);
            }
        }
        order
    }

    /// Writes a value with the fields of its objects in this order.
    pub fn write(&self, value: &Value) -> Vec<u8> {
        let mut out = String::new();
        self.put(value, &mut out);
        out.into_bytes()
    }

    fn put(&self, value: &Value, out: &mut String) {
        match value {
            Value::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    self.put(item, out);
                }
                out.push(']');
            }
            Value::Object(fields) => {
                let sorted: Vec<String> = fields.keys().cloned().collect();
                let names = self.0.get(&sorted).unwrap_or(&sorted);
                out.push('{');
                for (at, (name, field)) in
                    names.iter().filter_map(|name| Some((name, fields.get(name)?))).enumerate()
                {
                    if at > 0 {
                        out.push(',');
                    }
                    out.push_str(&Value::from(name.as_str()).to_string());
                    out.push(':');
                    self.put(field, out);
                }
                out.push('}');
            }
            simple => out.push_str(&simple.to_string()),
        }
    }
}

/// The names of the fields of all objects that are not sorted.
struct Learned(Vec<Vec<String>>);

impl<'de> Deserialize<'de> for Learned {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Learn)
    }
}

struct Learn;

impl<'de> Visitor<'de> for Learn {
    type Value = Learned;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Learned, A::Error> {
        let mut all = Vec::new();
        while let Some(Learned(more)) = list.next_element()? {
            all.extend(more);
        }
        Ok(Learned(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Learned, A::Error> {
        let (mut names, mut all) = (Vec::<String>::new(), Vec::new());
        while let Some((name, Learned(more))) = fields.next_entry::<String, Learned>()? {
            names.push(name);
            all.extend(more);
        }
        // A name that is there twice has no order; one that is sorted needs none.
        let is_sorted = names.is_sorted();
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        if !is_sorted && unique.len() == names.len() {
            all.push(names);
        }
        Ok(Learned(all))
    }

    fn visit_str<E>(self, _: &str) -> Result<Learned, E> {
        Ok(Learned(Vec::new()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Learned, E> {
        Ok(Learned(Vec::new()))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Learned, E> {
        Ok(Learned(Vec::new()))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Learned, E> {
        Ok(Learned(Vec::new()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Learned, E> {
        Ok(Learned(Vec::new()))
    }

    fn visit_unit<E>(self) -> Result<Learned, E> {
        Ok(Learned(Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_written_in_the_order_of_the_document() {
        let document = r#"{"z":{"reasoning":1,"answer":[{"b":1,"a":"\u00e9\n"}]},"n":1.5}"#;
        let value: Value = serde_json::from_str(document).unwrap();
        let written = String::from_utf8(
            Order::of(document.as_bytes()).write(&json!({"other": value["z"], "a": value["n"]})),
        )
        .unwrap();
        assert_eq!(written, "{\"a\":1.5,\"other\":{\"reasoning\":1,\"answer\":[{\"b\":1,\"a\":\"é\\n\"}]}}");
        assert_eq!(Order::of(b"no").write(&json!({"b": 1, "a": 2})), br#"{"a":2,"b":1}"#);
        assert_eq!(Order::of(br#"{"b":1,"a":2,"b":3}"#).write(&json!({"b": 1, "a": 2})), br#"{"a":2,"b":1}"#);
    }

    proptest! {
        #[test]
        fn nothing_but_the_order_changes(names in prop::collection::vec(".*", 0..6), text in ".*", number in any::<i64>()) {
            let fields: Vec<String> = names.iter().map(|name| format!("{}:[{},{number}]", json!(name), json!(text))).collect();
            let document = format!("{{{}}}", fields.join(","));
            let value: Value = serde_json::from_str(&document).unwrap();
            let written = Order::of(document.as_bytes()).write(&value);
            prop_assert_eq!(&serde_json::from_slice::<Value>(&written).unwrap(), &value);
            if value.as_object().is_some_and(|fields| fields.len() == names.len()) {
                prop_assert_eq!(String::from_utf8(written).unwrap(), document);
            }
        }
    }
}
