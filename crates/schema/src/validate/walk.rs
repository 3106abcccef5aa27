use super::number;
use super::old::Old;
use super::type_name::type_name;
use crate::FieldError;
use crate::Path;
use crate::bounded::Bounded;
use crate::format::Format;
use crate::schema::{Additional, Node, Type};
use crate::trail::Trail;
use serde_json::{Map, Value};
use std::collections::HashSet;
use watchkeeper_go as go;

/// A walk over a value along a schema.
///
/// Every step says how many checks were passed on the way; of the failed branches of `anyOf` and `oneOf` the one that
/// passed most is the one whose errors are shown. A branch is first walked silently, so that only errors which will be
/// seen are put into words.
pub(super) struct Walk<'a> {
    pub(super) base: &'a Path,
    errors: Bounded<FieldError>,
    /// Failures so far, shown or not.
    pub(super) failures: usize,
    pub(super) silent: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(base: &'a Path) -> Self {
        Self { base, errors: Bounded::new(), failures: 0, silent: false }
    }

    /// A walk that only counts.
    pub(super) fn silent(base: &'a Path) -> Self {
        Self { silent: true, ..Self::new(base) }
    }

    /// The errors found, each once.
    pub(super) fn finish(self) -> Vec<FieldError> {
        let mut errors = self.errors.into_vec();
        if errors.len() > 1 {
            let mut seen = HashSet::new();
            errors.retain(|error| seen.insert((error.reason, error.to_string())));
        }
        errors
    }

    /// One value. Its errors are dropped if it was there before and has not changed.
    pub(super) fn node(&mut self, node: &Node, value: &Value, at: &Trail<'_>, old: Option<Old<'_>>) -> usize {
        let (failures, errors) = (self.failures, self.errors.len());
        let passed = self.checks(node, value, at, old);
        if self.failures > failures && old.is_some_and(|old| old.is_unchanged()) {
            self.failures = failures;
            self.errors.truncate(errors);
        }
        passed
    }

    pub(super) fn checks(
        &mut self,
        node: &Node,
        value: &Value,
        at: &Trail<'_>,
        old: Option<Old<'_>>,
    ) -> usize {
        if value.is_null() {
            let passed = self.null(node, at);
            self.enumeration(node, value, at);
            return passed;
        }
        let mut passed = 2;
        if node.kind.is_some() || node.int_or_string || node.checks.format.is_some() {
            passed += 1 + self.kind(node, value, at);
        }
        passed += 1 + self.branches(node, value, at);
        match value {
            Value::String(text) => passed += self.text(node, text, at),
            Value::Number(number) => {
                passed += 2;
                for failure in number::check(node, number) {
                    self.fail(|base| failure.into_error(&at.name(), base));
                }
            }
            Value::Array(items) => passed += 2 + self.array(node, items, at, old),
            _ => {}
        }
        self.enumeration(node, value, at);
        if let Value::Object(fields) = value {
            passed += 1 + self.object(node, fields, at, old);
        }
        passed
    }

    fn null(&mut self, node: &Node, at: &Trail<'_>) -> usize {
        if (node.kind.is_some() || node.int_or_string) && node.refuses_null() {
            self.wrong_type(&expected_type(node), "null", at);
            return 0;
        }
        1
    }

    /// The declared type. Quirks kept from the original: an integral float is an integer, and an array passes for a
    /// text that has a format.
    fn kind(&mut self, node: &Node, value: &Value, at: &Trail<'_>) -> usize {
        let accepts = |kind: Type| match &node.kind {
            _ if node.int_or_string => matches!(kind, Type::Integer | Type::String),
            Some(declared) => *declared == kind,
            None => false,
        };
        let actual = type_name(value);
        let fits = match value {
            Value::Number(number) if number.as_i64().is_some() => {
                accepts(Type::Integer) || accepts(Type::Number)
            }
            Value::Number(number) => {
                accepts(Type::Number) || (accepts(Type::Integer) && number::is_integral(number.as_f64()))
            }
            Value::Bool(_) => accepts(Type::Boolean),
            Value::String(_) => accepts(Type::String),
            Value::Array(_) => accepts(Type::Array),
            Value::Object(_) => accepts(Type::Object),
            Value::Null => false,
        };
        let is_numeric = accepts(Type::Integer) || accepts(Type::Number);
        match value {
            Value::String(_) | Value::Array(_) if node.checks.format.is_some() && !is_numeric => 1,
            _ if fits => 1,
            Value::String(_) | Value::Array(_) => {
                self.wrong_type(&expected_type(node), actual, at);
                0
            }
            _ if node.checks.format.is_some() => {
                let actual = match value {
                    Value::Number(number) if number.as_i64().is_some() => "int64",
                    Value::Number(_) => "float64",
                    _ => "",
                };
                self.wrong_type(&node.checks.format_name, actual, at);
                0
            }
            _ => {
                self.wrong_type(&expected_type(node), actual, at);
                0
            }
        }
    }

    fn wrong_type(&mut self, expected: &str, actual: &str, at: &Trail<'_>) {
        self.fail(|base| {
            let name = at.name();
            let detail = format!("{name} in body must be of type {expected}: {}", go::quote(actual));
            FieldError::type_invalid(&place(&name, base), actual, detail)
        });
    }

    fn text(&mut self, node: &Node, text: &str, at: &Trail<'_>) -> usize {
        let checks = &node.checks;
        let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(limit) = checks.max_length.filter(|limit| length() > *limit) {
            self.fail(|base| FieldError::too_long(&place(&at.name(), base), limit));
        } else if let Some(limit) = checks.min_length.filter(|limit| length() < *limit) {
            self.invalid(at, text, |name| format!("{name} in body should be at least {limit} chars long"));
        } else if let Some(pattern) = &checks.pattern {
            match pattern.matches(text) {
                Ok(true) => {}
                Ok(false) => self
                    .invalid(at, text, |name| format!("{name} in body should match '{}'", pattern.source())),
                Err(reason) => self.invalid(at, text, |name| {
                    let pattern = pattern.source();
                    format!("{name} in body should match '{pattern}, but pattern is invalid: {reason}'")
                }),
            }
        }
        let Some(Format::Text(check)) = checks.format else {
            return 1;
        };
        if !check(text) {
            self.wrong_type(&checks.format_name, text, at);
        }
        2
    }

    fn array(&mut self, node: &Node, items: &[Value], at: &Trail<'_>, old: Option<Old<'_>>) -> usize {
        let mut passed = 0;
        if let Some(item) = &node.items {
            let elements = old.and_then(|old| old.elements());
            for (index, value) in items.iter().enumerate() {
                let before = elements.as_ref().and_then(|elements| elements.at(index));
                passed += self.node(item, value, &Trail::Item(at, index), before);
            }
        }
        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(limit) = node.checks.min_items.filter(|limit| count < *limit) {
            self.invalid(at, count, |name| format!("{name} in body should have at least {limit} items"));
        }
        if let Some(limit) = node.checks.max_items.filter(|limit| count > *limit) {
            self.fail(|base| FieldError::too_many(&place(&at.name(), base), items.len(), limit));
        }
        if node.checks.unique_items {
            let mut seen = HashSet::new();
            if !items.iter().all(|item| seen.insert(go::json::encode(item))) {
                self.invalid(at, "", |name| format!("{name} in body shouldn't contain duplicates"));
            }
        }
        passed
    }

    fn object(
        &mut self,
        node: &Node,
        fields: &Map<String, Value>,
        at: &Trail<'_>,
        old: Option<Old<'_>>,
    ) -> usize {
        let mut passed = 0;
        let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
        if let Some(limit) = node.checks.min_properties.filter(|limit| count < *limit) {
            self.invalid(at, count, |name| format!("{name} in body should have at least {limit} properties"));
        }
        if let Some(limit) = node.checks.max_properties.filter(|limit| count > *limit) {
            self.fail(|base| FieldError::too_many(&place(&at.name(), base), fields.len(), limit));
        }
        match &node.additional {
            Some(Additional::Refused) => {
                for name in fields.keys().filter(|name| node.property(name).is_none()) {
                    self.invalid(at, name.as_str(), |parent| {
                        format!("{parent}.{name} in body is a forbidden property")
                    });
                }
            }
            Some(Additional::Schema(entry)) => {
                for (name, value) in fields.iter().filter(|(name, _)| node.property(name).is_none()) {
                    let before = self.before(old, name, at);
                    passed += self.node(entry, value, &Trail::Entry(at, name), before);
                }
            }
            _ => {}
        }
        passed += self.properties(node, fields, at, old);
        for name in node.checks.required.iter().filter(|name| !fields.contains_key(*name)) {
            self.fail(|base| FieldError::required(&place(&Trail::Entry(at, name).name(), base), ""));
        }
        passed
    }

    /// Both the schema's fields and the object's are sorted, so one pass over both finds the pairs.
    fn properties(
        &mut self,
        node: &Node,
        fields: &Map<String, Value>,
        at: &Trail<'_>,
        old: Option<Old<'_>>,
    ) -> usize {
        let mut passed = 0;
        let mut given = fields.iter().peekable();
        for (name, property) in node.properties.iter() {
            while given.next_if(|(field, _)| field.as_str() < name).is_some() {}
            if let Some((_, value)) = given.next_if(|(field, _)| field.as_str() == name) {
                let before = self.before(old, name, at);
                passed += self.node(property, value, &Trail::Property(at, name), before);
            }
        }
        passed
    }

    /// The old value of a field. The type of the whole object has none: a change of its version cannot be seen.
    fn before<'b>(&self, old: Option<Old<'b>>, name: &str, at: &Trail<'_>) -> Option<Old<'b>> {
        if matches!(at, Trail::Start) && self.base.is_root() && matches!(name, "kind" | "apiVersion") {
            return None;
        }
        old?.key(name)
    }

    fn enumeration(&mut self, node: &Node, value: &Value, at: &Trail<'_>) {
        let allowed = &node.checks.one_of_values;
        if allowed.is_empty() || allowed.iter().any(|allowed| number::equals_in_go(value, allowed)) {
            return;
        }
        self.fail(|base| {
            let texts: Vec<String> = allowed
                .iter()
                .map(|allowed| match allowed {
                    Value::String(text) => text.clone(),
                    other => go::json::encode(other),
                })
                .collect();
            FieldError::not_supported(
                &place(&at.name(), base),
                value.clone(),
                texts.iter().map(String::as_str),
            )
        });
    }

    fn invalid(&mut self, at: &Trail<'_>, value: impl Into<Value>, detail: impl FnOnce(&str) -> String) {
        self.fail(|base| {
            let name = at.name();
            FieldError::invalid(&place(&name, base), value, detail(&name))
        });
    }

    pub(super) fn fail(&mut self, error: impl FnOnce(&Path) -> FieldError) {
        self.failures += 1;
        if !self.silent {
            self.errors.add(|| error(self.base));
        }
    }
}

fn expected_type(node: &Node) -> String {
    if node.int_or_string { "integer,string".into() } else { node.type_name().into() }
}

/// The field an error is about, from the name its sentence uses.
pub(super) fn place(name: &str, base: &Path) -> Path {
    match name.strip_prefix('.').unwrap_or(name) {
        "" => base.clone(),
        name => base.child(name),
    }
}
