use crate::Error;
use serde_json::{Map, Value};

/// A plain path of field names, `.spec.replicas`: what the scale subresource and selectable fields are declared with.
///
/// Names are what stands between the dots, whatever they are; there are no brackets and no escapes.
///
/// ```
/// use serde_json::json;
/// use watchkeeper_table::FieldPath;
///
/// let replicas = FieldPath::parse(".spec.replicas")?;
/// let mut web = json!({"kind": "Web"});
/// assert_eq!(replicas.get(&web), None);
/// assert!(replicas.set(&mut web, json!(3)));
/// assert_eq!(web, json!({"kind": "Web", "spec": {"replicas": 3}}));
/// assert_eq!(replicas.get(&web), Some(&json!(3)));
/// # Ok::<(), watchkeeper_table::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    names: Vec<Box<str>>,
}

impl FieldPath {
    /// Reads a path. It begins with a dot.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::FieldPath("must not be empty"));
        }
        let Some(names) = text.strip_prefix('.') else {
            return Err(Error::FieldPath("must be a simple json path starting with ."));
        };
        Ok(Self { names: names.split('.').map(Box::from).collect() })
    }

    /// The names of the fields, outermost first; at least one.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(AsRef::as_ref)
    }

    /// The value there, if all fields on the way are.
    pub fn get<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.names().try_fold(object, |value, name| value.as_object()?.get(name))
    }

    /// Puts a value there, and objects around it where there is nothing yet. Whether it could: not if something other than an
    /// object is in the way, and then nothing has changed.
    pub fn set(&self, object: &mut Value, new: Value) -> bool {
        let Some((last, outer)) = self.names.split_last() else {
            return false;
        };
        // Where the way is free, it is free to the end: fields that are missing can all be made.
        let mut fields = object.as_object_mut();
        for name in outer {
            fields = match fields {
                Some(fields) => {
                    let field = fields.entry(name.as_ref()).or_insert_with(|| Value::Object(Map::new()));
                    field.as_object_mut()
                }
                None => return false,
            };
        }
        fields.map(|fields| fields.insert(last.as_ref().into(), new)).is_some()
    }
}
