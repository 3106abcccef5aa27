use serde_json::Value;
use watchkeeper_go::Time;

static MISSING: Value = Value::Null;

/// Reads fields the way a Go struct has them: what is missing, null or of another type is the zero value.
///
/// A path is names with dots between; names that have dots themselves (labels, annotations) are read with [`Fields::entry`].
pub trait Fields {
    /// The field at `path`, or null.
    fn at(&self, path: &str) -> &Value;

    /// The entry `key` of the map at `path`, if it is a string.
    fn entry(&self, path: &str, key: &str) -> Option<&str>;

    /// A string, or "".
    fn text(&self, path: &str) -> &str {
        self.at(path).as_str().unwrap_or_default()
    }

    /// A string; if it is missing or empty, `fallback`.
    fn text_or<'a>(&'a self, path: &str, fallback: &'a str) -> &'a str {
        let text = self.text(path);
        if text.is_empty() { fallback } else { text }
    }

    /// A string that may be empty; if it is missing, `fallback`.
    fn set_text_or<'a>(&'a self, path: &str, fallback: &'a str) -> &'a str {
        self.at(path).as_str().unwrap_or(fallback)
    }

    /// A whole number, or 0.
    fn int(&self, path: &str) -> i64 {
        self.at(path).as_i64().unwrap_or_default()
    }

    /// A boolean, or false.
    fn flag(&self, path: &str) -> bool {
        self.at(path).as_bool().unwrap_or_default()
    }

    /// The elements of an array, or none.
    fn list(&self, path: &str) -> &[Value] {
        self.at(path).as_array().map_or(&[], Vec::as_slice)
    }

    /// How many elements or entries there are.
    fn len(&self, path: &str) -> usize {
        match self.at(path) {
            Value::Array(items) => items.len(),
            Value::Object(entries) => entries.len(),
            _ => 0,
        }
    }

    /// Whether something other than null is there.
    fn has(&self, path: &str) -> bool {
        !self.at(path).is_null()
    }

    /// A moment, if there is one that is not "no time".
    fn time(&self, path: &str) -> Option<Time> {
        Time::parse(self.at(path).as_str()?).ok().filter(|time| !time.is_zero())
    }

    /// Whether the condition `kind` in the list of conditions at `path` is true. The first of its kind counts.
    fn condition(&self, path: &str, kind: &str) -> bool {
        let found = self.list(path).iter().find(|condition| condition.text("type") == kind);
        found.is_some_and(|condition| condition.text("status") == "True")
    }
}

impl Fields for Value {
    fn at(&self, path: &str) -> &Value {
        let mut value = self;
        for name in path.split('.') {
            match value.as_object().and_then(|fields| fields.get(name)) {
                Some(field) => value = field,
                None => return &MISSING,
            }
        }
        value
    }

    fn entry(&self, path: &str, key: &str) -> Option<&str> {
        self.at(path).as_object()?.get(key)?.as_str()
    }
}
