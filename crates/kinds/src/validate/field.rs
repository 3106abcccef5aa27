use crate::decimal::{self, Quantity};
use serde_json::Value;
use watchkeeper_schema::metadata::{
    dns_label_problems, dns_subdomain_problems, label_key_problems, label_value_problems,
};
use watchkeeper_schema::{FieldError, Path};

static NULL: Value = Value::Null;

pub(crate) type Errors = Vec<FieldError>;

/// A value and where it is; null if there is none.
#[derive(Clone)]
pub(crate) struct Field<'a> {
    pub(crate) value: &'a Value,
    pub(crate) at: Path,
}

impl<'a> Field<'a> {
    pub(crate) fn root(object: &'a Value) -> Self {
        Self { value: object, at: Path::root() }
    }

    pub(crate) fn get(&self, name: &str) -> Self {
        Self { value: self.value.get(name).unwrap_or(&NULL), at: self.at.child(name) }
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = Field<'a>> {
        let items = self.value.as_array().into_iter().flatten().enumerate();
        items.map(|(index, value)| Self { value, at: self.at.index(index) })
    }

    /// The entries of a map, each with its key.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, Field<'a>)> {
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(|(key, value)| (key.as_str(), Self { value, at: self.at.key(key) }))
    }

    pub(crate) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    pub(crate) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// An amount, if it is one.
    pub(crate) fn quantity(&self) -> Option<Quantity> {
        decimal::parse(self.text()).ok().flatten()
    }

    /// Nothing, or nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    pub(crate) fn invalid(&self, detail: impl Into<String>, errors: &mut Errors) {
        errors.push(FieldError::invalid(&self.at, self.value.clone(), detail));
    }

    /// Whether there is something; if not, it is required.
    pub(crate) fn required(&self, errors: &mut Errors) -> bool {
        self.required_as("", errors)
    }

    pub(crate) fn required_as(&self, detail: &str, errors: &mut Errors) -> bool {
        if self.is_empty() {
            errors.push(FieldError::required(&self.at, detail));
        }
        !self.is_empty()
    }

    /// A number, if there is one, is not below zero.
    pub(crate) fn not_negative(&self, errors: &mut Errors) {
        if self.number().is_some_and(|number| number < 0) {
            self.invalid("must be greater than or equal to 0", errors);
        }
    }

    /// A text, if there is one, is one of these.
    pub(crate) fn one_of(&self, supported: &[&str], errors: &mut Errors) {
        if self.is_set() && !supported.contains(&self.text()) {
            errors.push(FieldError::not_supported(&self.at, self.text(), supported.iter().copied()));
        }
    }

    pub(crate) fn forbidden_if_set(&self, detail: &str, errors: &mut Errors) {
        if self.is_set() {
            errors.push(FieldError::forbidden(&self.at, detail));
        }
    }

    /// A text, if there is one, is a DNS label.
    pub(crate) fn dns_label(&self, errors: &mut Errors) {
        self.each(dns_label_problems, errors);
    }

    /// A text, if there is one, is a DNS subdomain.
    pub(crate) fn dns_subdomain(&self, errors: &mut Errors) {
        self.each(dns_subdomain_problems, errors);
    }

    fn each(&self, problems: fn(&str) -> Vec<String>, errors: &mut Errors) {
        if !self.is_empty() {
            problems(self.text()).into_iter().for_each(|problem| self.invalid(problem, errors));
        }
    }

    /// A number of a port.
    pub(crate) fn port(&self, errors: &mut Errors) {
        if !(1..=65535).contains(&self.number().unwrap_or_default()) {
            let value = self.number().unwrap_or_default();
            errors.push(FieldError::invalid(&self.at, value, "must be between 1 and 65535, inclusive"));
        }
    }

    /// A number of a port, or a name of one.
    pub(crate) fn port_or_name(&self, errors: &mut Errors) {
        match self.value {
            Value::String(name) => {
                port_name_problems(name).into_iter().for_each(|problem| self.invalid(problem, errors));
            }
            _ => self.port(errors),
        }
    }

    /// Keys and values of labels.
    pub(crate) fn labels(&self, errors: &mut Errors) {
        for (key, value) in self.entries() {
            for problem in label_key_problems(key) {
                errors.push(FieldError::invalid(&self.at, key, problem));
            }
            for problem in label_value_problems(value.text()) {
                errors.push(FieldError::invalid(&self.at, value.text(), problem));
            }
        }
    }

    /// An address.
    pub(crate) fn ip(&self, errors: &mut Errors) {
        if let Some(problem) = crate::address::legacy_problem(self.text()) {
            errors.push(FieldError::invalid(&self.at, self.text(), problem));
        }
    }

    /// A text, if there is one and be it empty, keeps a rule.
    pub(crate) fn if_set(&self, problems: fn(&str) -> Vec<String>, errors: &mut Errors) {
        if self.is_set() {
            problems(self.text()).into_iter().for_each(|problem| self.invalid(problem, errors));
        }
    }

    /// A list has at most this many items; if it has more, nothing else is said about it.
    pub(crate) fn at_most(&self, limit: usize, errors: &mut Errors) -> bool {
        let count = self.items().count();
        if count > limit {
            errors.push(FieldError::too_many(&self.at, count, limit as i64));
        }
        count <= limit
    }
}

/// What is wrong with the name of a port.
pub(crate) fn port_name_problems(name: &str) -> Vec<&'static str> {
    let mut problems = Vec::new();
    if name.len() > 15 {
        problems.push("must be no more than 15 characters");
    }
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if !name.bytes().all(|byte| plain(byte) || byte == b'-') || name.is_empty() {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        problems.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        problems.push("must not begin or end with a hyphen");
    }
    problems
}
