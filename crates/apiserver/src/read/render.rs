//! In which form objects are sent.

use std::time::SystemTime;

use serde_json::{Value, json};
use watchkeeper_schema::{FieldError, Path};
use watchkeeper_table::layout::Layout;
use watchkeeper_table::{Include, Partial, Printer, Table};

use crate::request::media::{Accepted, Format, Transform};
use crate::request::query::Query;
use crate::resource::Resource;
use crate::status_error::StatusError;

/// In which form a client wants to have objects: what of them, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) shape: Shape,
    pub(crate) format: Format,
}

/// What is sent in place of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The object itself.
    #[default]
    Object,
    /// Its metadata.
    Partial,
    /// A table with a row for it.
    Table(Include),
}

impl Form {
    /// What a client asked for.
    pub(crate) fn new(accepted: &Accepted, query: &Query) -> Result<Self, StatusError> {
        Ok(Self { shape: Shape::new(accepted, query)?, format: accepted.format })
    }
}

impl Shape {
    fn new(accepted: &Accepted, query: &Query) -> Result<Self, StatusError> {
        match accepted.transform {
            Transform::Object => Ok(Self::Object),
            Transform::Partial => Ok(Self::Partial),
            Transform::Table => {
                let asked = query.get("includeObject").unwrap_or_default();
                Include::read(asked).map(Self::Table).ok_or_else(|| {
                    let at = Path::root().child("includeObject");
                    let error =
                        FieldError::invalid(&at, asked, "must be 'Metadata', 'Object', 'None', or empty");
                    StatusError::bad_request(format!("Unable to convert to Table as requested: {error}"))
                })
            }
        }
    }

    /// What is sent for one object.
    pub(crate) fn of_one(self, resource: &Resource, object: Value) -> Value {
        self.shown(resource.printer(), object)
    }

    /// What is sent for one object of many that are told of one by one: tables name their columns only once.
    pub(crate) fn of_next(self, resource: &Resource, object: Value) -> Value {
        let mut shown = self.of_one(resource, object);
        if let (Self::Table(_), Some(columns)) = (self, shown.get_mut("columnDefinitions")) {
            *columns = Value::Null;
        }
        shown
    }

    /// What is sent for the Scale of an object.
    pub(crate) fn of_scale(self, scale: Value) -> Value {
        let printer = watchkeeper_kinds::printer("autoscaling", "Scale");
        self.shown(&printer.unwrap_or_else(|| Printer::of(Layout::PLAIN)), scale)
    }

    fn shown(self, printer: &Printer, object: Value) -> Value {
        let made = match self {
            Self::Object => return object,
            Self::Partial => serde_json::to_value(Partial(&object)),
            Self::Table(include) => {
                let metadata = match crate::object::meta::text(&object, "resourceVersion") {
                    "" => json!({}),
                    version => json!({"resourceVersion": version}),
                };
                let (objects, now) = (std::slice::from_ref(&object), SystemTime::now());
                let table = Table { printer, objects, metadata: &metadata, include, headers: true, now };
                serde_json::to_value(table)
            }
        };
        // All keys are strings, so nothing can fail.
        made.unwrap_or_default()
    }

    /// What is sent for a bookmark.
    pub(crate) fn of_bookmark(self, mut object: Value) -> Value {
        match self {
            Self::Object => object,
            Self::Partial => {
                object["kind"] = "PartialObjectMetadata".into();
                object["apiVersion"] = "meta.k8s.io/v1".into();
                object
            }
            Self::Table(_) => {
                let version = crate::object::meta::text(&object, "resourceVersion");
                json!({
                    "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version},
                    "columnDefinitions": null, "rows": [{"cells": [], "object": object}],
                })
            }
        }
    }
}
