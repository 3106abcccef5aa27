//! Objects on their way to a body: what JSON can say, and what it should not.

use serde_json::Value;

/// A value. Unlike [`Value`], it can have a key twice, numbers of any size, and text that is no text.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number, as its digits.
    Number(String),
    /// A text.
    Text(String),
    /// Bytes that are written as they are.
    Raw(Vec<u8>),
    /// A list.
    List(Vec<Tree>),
    /// A map in its order.
    Map(Vec<(String, Tree)>),
}

impl From<&Value> for Tree {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => Self::Number(number.to_string()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(fields) => {
                Self::Map(fields.iter().map(|(name, value)| (name.clone(), Self::from(value))).collect())
            }
        }
    }
}

impl Tree {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The field of a map.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Map(fields) => fields.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The field of a map, made if it is not there. What is no map becomes one.
    pub fn field(&mut self, name: &str) -> &mut Self {
        if !matches!(self, Self::Map(_)) {
            *self = Self::Map(Vec::new());
        }
        let Self::Map(fields) = self else { unreachable!("it was made one") };
        let at = fields.iter().position(|(key, _)| key == name).unwrap_or_else(|| {
            fields.push((name.to_owned(), Self::Null));
            fields.len() - 1
        });
        &mut fields[at].1
    }

    /// How many values there are, this one included.
    pub fn count(&self) -> usize {
        1 + match self {
            Self::List(items) => items.iter().map(Self::count).sum(),
            Self::Map(fields) => fields.iter().map(|(_, value)| value.count()).sum::<usize>(),
            _ => 0,
        }
    }

    /// The value at this place, counted from 0 for this one, with the name of the field it is in.
    pub fn at(&mut self, place: usize) -> Option<(&str, &mut Self)> {
        fn find<'a>(name: &'a str, tree: &'a mut Tree, place: &mut usize) -> Option<(&'a str, &'a mut Tree)> {
            if *place == 0 {
                return Some((name, tree));
            }
            *place -= 1;
            match tree {
                Tree::List(items) => items.iter_mut().find_map(|item| find(name, item, place)),
                Tree::Map(fields) => fields.iter_mut().find_map(|(name, value)| find(name, value, place)),
                _ => None,
            }
        }
        let mut place = place;
        find("", self, &mut place)
    }

    /// As JSON, or what comes near it.
    pub fn json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(flag) => out.extend_from_slice(flag.to_string().as_bytes()),
            Self::Number(digits) => out.extend_from_slice(digits.as_bytes()),
            Self::Text(text) => out.extend_from_slice(quoted(text).as_bytes()),
            Self::Raw(bytes) => out.extend_from_slice(bytes),
            Self::List(items) => {
                out.push(b'[');
                for (place, item) in items.iter().enumerate() {
                    if place > 0 {
                        out.push(b',');
                    }
                    item.write_json(out);
                }
                out.push(b']');
            }
            Self::Map(fields) => {
                out.push(b'{');
                for (place, (name, value)) in fields.iter().enumerate() {
                    if place > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(quoted(name).as_bytes());
                    out.push(b':');
                    value.write_json(out);
                }
                out.push(b'}');
            }
        }
    }

    /// As a value of JSON, if it is one that can be held.
    pub fn value(&self) -> Option<Value> {
        serde_json::from_slice(&self.json()).ok()
    }
}

/// A text as JSON writes it.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tree_is_written_as_the_value_it_was_made_of() {
        let value = json!({"a": [1, -2.5, null, true, "x\"y\n"], "b": {}, "c": {"d": [[]]}});
        let mut tree = Tree::from(&value);
        assert_eq!(tree.value(), Some(value));
        assert_eq!(tree.count(), 11);
        assert_eq!(tree.at(0).map(|(name, _)| name.to_owned()), Some(String::new()));
        assert_eq!(tree.at(10).map(|(name, _)| name.to_owned()), Some("d".to_owned()));
        assert_eq!(tree.at(11), None);
    }

    #[test]
    fn a_tree_can_say_what_a_value_cannot() {
        let twice =
            vec![("k".to_owned(), Tree::Number("1e400".into())), ("k".to_owned(), Tree::Raw(vec![0xff]))];
        assert_eq!(Tree::Map(twice).json(), b"{\"k\":1e400,\"k\":\xff}");
    }
}
