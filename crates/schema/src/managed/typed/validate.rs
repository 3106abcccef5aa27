use super::Typed;
use crate::managed::element::PathElement;
use crate::shape::{Form, Identity, List, Map, Scalar, TypeId};
use serde_json::{Map as Fields, Value};
use std::collections::BTreeSet;
use std::fmt::Write;
use watchkeeper_go as go;

/// How many findings are reported.
const MAX_FINDINGS: usize = 100;

/// A place, written down only when there is something to say about it.
#[derive(Clone, Copy)]
enum At<'a> {
    Root,
    Field(&'a At<'a>, &'a str),
    Element(&'a At<'a>, &'a PathElement),
    Index(&'a At<'a>, usize),
}

impl At<'_> {
    fn write(&self, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Root => Ok(()),
            Self::Field(at, name) => {
                at.write(out);
                write!(out, ".{name}")
            }
            Self::Element(at, element) => {
                at.write(out);
                write!(out, "{element}")
            }
            Self::Index(at, index) => {
                at.write(out);
                write!(out, "[{index}]")
            }
        };
    }
}

struct Validation<'s> {
    typed: Typed<'s>,
    allow_duplicates: bool,
    findings: Vec<String>,
}

impl Typed<'_> {
    /// Whether an object fits the shape: its types, its fields, the identities of its list elements.
    pub(in crate::managed) fn validate(self, object: &Value, allow_duplicates: bool) -> Result<(), String> {
        let mut validation = Validation { typed: self, allow_duplicates, findings: Vec::new() };
        validation.value(self.shape.root(), object, &At::Root);
        match validation.findings.as_slice() {
            [] => Ok(()),
            [one] => Err(one.clone()),
            many => Err(format!("errors:\n  {}", many.join("\n  "))),
        }
    }
}

impl Validation<'_> {
    fn report(&mut self, at: &At<'_>, message: impl FnOnce() -> String) {
        if self.findings.len() < MAX_FINDINGS {
            let mut text = String::new();
            at.write(&mut text);
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&message());
            self.findings.push(text);
        }
    }

    fn value(&mut self, kind: TypeId, value: &Value, at: &At<'_>) {
        let typed = self.typed;
        match (typed.shape.get(kind).form(value), value) {
            (Form::Nothing, _) => self.report(at, || "schema error: invalid atom: inlined".into()),
            (_, Value::Null) => {}
            (Form::Scalar(scalar), value) => self.scalar(scalar, value, at),
            (Form::Map(map), Value::Object(fields)) => self.fields(map, fields, at),
            (Form::List(list), Value::Array(items)) => self.items(list, items, at),
            (Form::Map(_), other) => {
                self.report(at, || format!("expected map, got &{{{}}}", go::fmt::value(other)));
            }
            (Form::List(_), other) => {
                self.report(at, || format!("expected list, got &{{{}}}", go::fmt::value(other)));
            }
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value, at: &At<'_>) {
        let is_scalar = !value.is_object() && !value.is_array();
        match scalar {
            Scalar::Numeric if !value.is_number() => self.report(at, || {
                format!("expected numeric (int or float), got {}", go::fmt::reflected_type(value))
            }),
            Scalar::String if !value.is_string() => self.report(at, || {
                format!("expected string, got &value.valueUnstructured{{Value:{}}}", go::fmt::syntax(value))
            }),
            Scalar::Boolean if !value.is_boolean() => {
                self.report(at, || format!("expected boolean, got &{{{}}}", go::fmt::value(value)));
            }
            Scalar::Untyped if !is_scalar => {
                self.report(at, || format!("expected any scalar, got &{{{}}}", go::fmt::value(value)));
            }
            _ => {}
        }
    }

    fn fields(&mut self, map: &Map, fields: &Fields<String, Value>, at: &At<'_>) {
        for (name, value) in fields {
            let at = At::Field(at, name);
            match map.kind(name) {
                Some(kind) => self.value(kind, value, &at),
                None => {
                    self.report(&at, || "field not declared in schema".into());
                    return;
                }
            }
        }
    }

    fn items(&mut self, list: &List, items: &[Value], at: &At<'_>) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            if list.identity == Identity::Whole {
                self.value(list.items, item, &At::Index(at, index));
                continue;
            }
            match self.typed.element(list, item) {
                Ok(element) => {
                    if !self.allow_duplicates && seen.contains(&element) {
                        self.report(at, || format!("duplicate entries for key {element}"));
                    }
                    self.value(list.items, item, &At::Element(at, &element));
                    if !self.allow_duplicates {
                        seen.insert(element);
                    }
                }
                Err(error) => {
                    self.report(at, || format!("element {index}: {error}"));
                    return;
                }
            }
        }
    }
}
