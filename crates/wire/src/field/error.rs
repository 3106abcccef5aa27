use super::Path;
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;
use watchkeeper_go as go;

/// The reason of a field error, in the words of a `StatusCause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The field is missing.
    Required,
    /// The value breaks a rule.
    Invalid,
    /// The value has another type than the schema says.
    TypeInvalid,
    /// The value is not one of the allowed ones.
    NotSupported,
    /// The value is there already.
    Duplicate,
    /// The field may not be set.
    Forbidden,
    /// The object that the value names does not exist.
    NotFound,
    /// The text is too long.
    TooLong,
    /// There are too many elements.
    TooMany,
}

impl Reason {
    /// The `reason` of a `StatusCause`.
    pub fn cause(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotFound => "FieldValueNotFound",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "Not found",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }

    fn shows_value(self) -> bool {
        !matches!(self, Self::Required | Self::Forbidden | Self::TooLong)
    }
}

/// One thing wrong with one field.
///
/// Prints exactly as kube-apiserver prints it: `spec.replicas: Invalid value: 11: spec.replicas in body should be less
/// than or equal to 10`. In a `Status`, [`field`](Self::field) is the cause's field, [`body`](Self::body) its message and
/// [`Reason::cause`] its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The reason.
    pub reason: Reason,
    /// The field, as a printed [`Path`].
    pub field: String,
    /// The value at fault; `None` where the text shows none.
    pub value: Option<Value>,
    /// The rule, or empty.
    pub detail: String,
    /// The text of the value, if it is not its JSON: kube-apiserver prints some of its own structures.
    pub shown: Option<String>,
}

impl FieldError {
    /// A value that breaks a rule.
    pub fn invalid(at: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(Reason::Invalid, at, Some(value.into()), detail)
    }

    /// A value of the wrong type.
    pub fn type_invalid(at: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(Reason::TypeInvalid, at, Some(value.into()), detail)
    }

    /// A missing field.
    pub fn required(at: &Path, detail: impl Into<String>) -> Self {
        Self::new(Reason::Required, at, None, detail)
    }

    /// A field that may not be set.
    pub fn forbidden(at: &Path, detail: impl Into<String>) -> Self {
        Self::new(Reason::Forbidden, at, None, detail)
    }

    /// A value that is there already.
    pub fn duplicate(at: &Path, value: impl Into<Value>) -> Self {
        Self::new(Reason::Duplicate, at, Some(value.into()), "")
    }

    /// A value that names something that is not there.
    pub fn not_found(at: &Path, value: impl Into<Value>) -> Self {
        Self::new(Reason::NotFound, at, Some(value.into()), "")
    }

    /// A rule that is broken by the whole, so that no value is shown.
    pub fn broken(at: &Path, detail: impl Into<String>) -> Self {
        Self::new(Reason::Invalid, at, None, detail)
    }

    /// A value that is none of `supported`.
    pub fn not_supported<'a>(
        at: &Path,
        value: impl Into<Value>,
        supported: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let supported: Vec<String> = supported.into_iter().map(go::quote).collect();
        let detail = if supported.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", supported.join(", "))
        };
        Self::new(Reason::NotSupported, at, Some(value.into()), detail)
    }

    /// A text longer than `limit`. The unit is called bytes, whatever it is, as in kube-apiserver.
    pub fn too_long(at: &Path, limit: i64) -> Self {
        let detail = match limit {
            1 => "may not be more than 1 byte".into(),
            0.. => format!("may not be more than {limit} bytes"),
            _ => "value is too long".into(),
        };
        Self::new(Reason::TooLong, at, None, detail)
    }

    /// More elements than `limit`.
    pub fn too_many(at: &Path, count: usize, limit: i64) -> Self {
        let detail = match limit {
            1 => "must have at most 1 item".into(),
            0.. => format!("must have at most {limit} items"),
            _ => "has too many items".into(),
        };
        Self::new(Reason::TooMany, at, Some(count.into()), detail)
    }

    fn new(reason: Reason, at: &Path, value: Option<Value>, detail: impl Into<String>) -> Self {
        Self { reason, field: at.to_string(), value, detail: detail.into(), shown: None }
    }

    /// Sets another text for the value: that of a Go structure, whose fields have an order of their own
    /// and other names than in JSON.
    ///
    /// ```
    /// use serde_json::json;
    /// use watchkeeper_wire::field::{FieldError, Path};
    /// let error = FieldError::invalid(&Path::root().child("spec"), json!({"type": "x"}), "no").structure(&[("Type", json!("x")), ("Rolling", json!(null))]);
    /// assert_eq!(error.to_string(), r#"spec: Invalid value: {"Type":"x","Rolling":null}: no"#);
    /// ```
    #[must_use]
    pub fn structure(mut self, fields: &[(&str, Value)]) -> Self {
        self.shown = Some(structure(fields));
        self
    }

    /// Sets another text for the value: that of a list of Go structures.
    #[must_use]
    pub fn structures<'a>(mut self, items: impl IntoIterator<Item = Vec<(&'a str, Value)>>) -> Self {
        let items: Vec<String> = items.into_iter().map(|fields| structure(&fields)).collect();
        self.shown = Some(format!("[{}]", items.join(",")));
        self
    }

    /// The text without the field: the message of a `StatusCause`.
    pub fn body(&self) -> String {
        let mut text = String::from(self.reason.sentence());
        if let Some(value) = self.value.as_ref().filter(|_| self.reason.shows_value()) {
            text.push_str(": ");
            text.push_str(&match value {
                _ if self.shown.is_some() => self.shown.clone().unwrap_or_default(),
                Value::String(string) => go::quote(string),
                Value::Number(number) => go::fmt::number(number),
                other => go::json::encode(other),
            });
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

/// A Go structure in JSON.
fn structure(fields: &[(&str, Value)]) -> String {
    let text = |(name, value): &(&str, Value)| format!("{}:{}", go::quote(name), go::json::encode(value));
    format!("{{{}}}", fields.iter().map(text).collect::<Vec<_>>().join(","))
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// The message of a `Status` with reason `Invalid`: `Widget.example.com "a" is invalid: ...`, the errors in brackets if
/// there are several, equal ones once.
///
/// ```
/// use watchkeeper_wire::field::{FieldError, Path, invalid_message};
/// let missing = FieldError::required(&Path::root().child("spec").child("image"), "");
/// assert_eq!(
///     invalid_message("example.com", "Widget", "a", &[missing]),
///     r#"Widget.example.com "a" is invalid: spec.image: Required value"#,
/// );
/// ```
pub fn invalid_message(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    let mut message = format!("{kind}{dot}{group} {} is invalid", go::quote(name));
    if let Some(text) = aggregate(errors) {
        message.push_str(": ");
        message.push_str(&text);
    }
    message
}

/// Several errors as one text, equal ones once; `None` if there is no error.
pub fn aggregate(errors: &[FieldError]) -> Option<String> {
    let mut seen = HashSet::new();
    let texts: Vec<String> =
        errors.iter().map(FieldError::to_string).filter(|text| seen.insert(text.clone())).collect();
    match texts.as_slice() {
        [] => None,
        [text] => Some(text.clone()),
        texts => Some(format!("[{}]", texts.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(name: &str) -> Path {
        Path::root().child("spec").child(name)
    }

    #[test]
    fn prints_as_kube_apiserver_prints() {
        for (error, text) in [
            (FieldError::required(&at("image"), ""), "spec.image: Required value"),
            (FieldError::invalid(&at("n"), 11, "too big"), "spec.n: Invalid value: 11: too big"),
            (FieldError::invalid(&at("n"), 1e21, "x"), "spec.n: Invalid value: 1e+21: x"),
            (
                FieldError::invalid(&at("o"), json!({"a": "<"}), ""),
                r#"spec.o: Invalid value: {"a":"\u003c"}"#,
            ),
            (
                FieldError::not_supported(&at("mode"), "x", ["a", "b"]),
                r#"spec.mode: Unsupported value: "x": supported values: "a", "b""#,
            ),
            (FieldError::too_long(&at("s"), 1), "spec.s: Too long: may not be more than 1 byte"),
            (FieldError::too_many(&at("l"), 3, 2), "spec.l: Too many: 3: must have at most 2 items"),
            (
                FieldError::duplicate(&at("l").index(1), json!({"k": 1})),
                r#"spec.l[1]: Duplicate value: {"k":1}"#,
            ),
            (FieldError::forbidden(&at("f"), "no"), "spec.f: Forbidden: no"),
            (FieldError::invalid(&at("z"), Value::Null, "no"), "spec.z: Invalid value: null: no"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn several_errors_stand_in_brackets_and_equal_ones_are_said_once() {
        let one = FieldError::required(&at("a"), "");
        let two = FieldError::required(&at("b"), "");
        assert_eq!(
            invalid_message("", "Pod", "p", &[one.clone(), two, one.clone()]),
            r#"Pod "p" is invalid: [spec.a: Required value, spec.b: Required value]"#
        );
        assert_eq!(
            invalid_message("g", "K", "", &[one.clone(), one]),
            r#"K.g "" is invalid: spec.a: Required value"#
        );
    }
}
