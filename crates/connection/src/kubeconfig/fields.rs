use serde_json::{Map, Value};
use watchkeeper_go::base64;

/// The fields of one object, read with errors that name them and nothing of their content.
pub(super) struct Fields<'a> {
    /// None if it is not there.
    fields: Option<&'a Map<String, Value>>,
    /// What the object is.
    of: String,
}

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value, of: &str) -> Result<Self, String> {
        match value {
            Value::Object(fields) => Ok(Self { fields: Some(fields), of: of.to_owned() }),
            _ => Err(format!("{of}: expected fields")),
        }
    }

    /// A text; `None` if it is empty or not there.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, String> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.expected(name, "a text")),
        }
    }

    /// What a text encodes in base64.
    pub(super) fn data(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let data = base64::decode(text.trim()).map_err(|_| self.expected(name, "base64"))?;
        Ok(Some(data).filter(|data| !data.is_empty()))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.expected(name, "true or false")),
        }
    }

    pub(super) fn list(&self, name: &str) -> Result<&'a [Value], String> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.expected(name, "a list")),
        }
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let text = |item: &Value| item.as_str().map(str::to_owned);
        let texts: Option<Vec<_>> = self.list(name)?.iter().map(text).collect();
        texts.ok_or_else(|| self.expected(name, "a list of texts"))
    }

    /// The fields of a field; none if it is not there.
    pub(super) fn object(&self, name: &str, of: &str) -> Result<Self, String> {
        let fields = match self.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::Object(fields)) => Some(fields),
            Some(_) => return Err(self.expected(name, "fields")),
        };
        Ok(Fields { fields, of: of.to_owned() })
    }

    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'a String> + use<'a> {
        self.fields.into_iter().flat_map(Map::keys)
    }

    /// What this is, for errors.
    pub(super) fn what(&self) -> &str {
        &self.of
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.fields?.get(name)
    }

    fn expected(&self, name: &str, what: &str) -> String {
        format!("{}: {name}: expected {what}", self.of)
    }
}
