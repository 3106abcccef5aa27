use crate::Printer;
use crate::fields::Fields;
use crate::layout::Completion;
use crate::partial::{Each, ListMetadata, Partial};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::{Value, json};
use std::time::SystemTime;

/// The part of an object that a row of a table carries beside its cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// The metadata of the object, as a [`Partial`].
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

impl Include {
    /// Reads the query parameter `includeObject`; `None` if it is no such value.
    pub fn read(text: &str) -> Option<Self> {
        match text {
            "" | "Metadata" => Some(Self::Metadata),
            "None" => Some(Self::None),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

/// Objects as a `meta.k8s.io/v1` Table.
///
/// A table borrows its objects and makes each row when it is written, so a large list costs no second copy of itself:
/// `serde_json::to_vec` writes the response, `serde_json::to_value` makes a value of it.
///
/// ```
/// use serde_json::json;
/// use std::time::SystemTime;
/// use watchkeeper_table::{Include, Printer, Table};
///
/// let objects = [json!({"metadata": {"name": "blue"}})];
/// let table = Table {
///     printer: Printer::plain(),
///     objects: &objects,
///     metadata: &json!({"resourceVersion": "7"}),
///     include: Include::None,
///     headers: false,
///     now: SystemTime::now(),
/// };
/// let expected = json!({
///     "kind": "Table",
///     "apiVersion": "meta.k8s.io/v1",
///     "metadata": {"resourceVersion": "7"},
///     "columnDefinitions": null,
///     "rows": [{"cells": ["blue", "<unknown>"], "object": null}],
/// });
/// assert_eq!(serde_json::to_value(&table).unwrap(), expected);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// Makes columns and cells.
    pub printer: &'a Printer,
    /// The objects, one for each row.
    pub objects: &'a [Value],
    /// The `metadata` of the list, or of the object if there is only one.
    pub metadata: &'a Value,
    /// The part of the object in each row.
    pub include: Include,
    /// Whether the columns are described. Always, but for the events of a watch after the first.
    pub headers: bool,
    /// The moment up to which ages are counted.
    pub now: SystemTime,
}

impl Serialize for Table<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = |object| Row { printer: self.printer, include: self.include, object, now: self.now };
        let mut out = serializer.serialize_struct("Table", 5)?;
        out.serialize_field("kind", "Table")?;
        out.serialize_field("apiVersion", "meta.k8s.io/v1")?;
        out.serialize_field("metadata", &ListMetadata(self.metadata))?;
        out.serialize_field("columnDefinitions", &self.headers.then_some(&self.printer.columns))?;
        out.serialize_field("rows", &Each(self.objects, row))?;
        out.end()
    }
}

/// One row of a [`Table`], for those who write a table row by row. A table without objects ends in `]}`, and the rows go
/// before that.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Makes the cells.
    pub printer: &'a Printer,
    /// The part of the object in the row.
    pub include: Include,
    /// The object.
    pub object: &'a Value,
    /// The moment up to which ages are counted.
    pub now: SystemTime,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("TableRow", 3)?;
        out.serialize_field("cells", &self.printer.cells_at(self.object, self.now.into()))?;
        if let Some(Completion { reason, message }) = self.printer.completion(self.object) {
            let condition =
                json!({"type": "Completed", "status": "True", "reason": reason, "message": message});
            out.serialize_field("conditions", &[condition])?;
        }
        match self.include {
            Include::None if ends_initial_events(self.object) => {
                out.serialize_field("object", &Partial(self.object))?;
            }
            Include::None => out.serialize_field("object", &())?,
            Include::Metadata => out.serialize_field("object", &Partial(self.object))?,
            Include::Object => out.serialize_field("object", self.object)?,
        }
        out.end()
    }
}

/// Whether this is the bookmark after the first events of a streamed list, which the client must be able to tell from
/// others.
fn ends_initial_events(object: &Value) -> bool {
    object.entry("metadata.annotations", "k8s.io/initial-events-end") == Some("true")
}
