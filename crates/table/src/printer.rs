use crate::Error;
use crate::builtin;
use crate::column::{Column, Columns};
use crate::custom::CustomCells;
use crate::fields::Fields;
use serde_json::Value;
use std::time::SystemTime;
use watchkeeper_go::Time;

/// The columns of a kind and how its objects fill them.
///
/// A printer is made once and prints any number of objects: paths are parsed when it is made. It makes every column, those
/// of `-o wide` too; the client leaves out what it does not show.
///
/// ```
/// use serde_json::json;
/// use std::time::{Duration, SystemTime};
/// use watchkeeper_table::Printer;
///
/// let columns = [json!({"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"})];
/// let printer = Printer::custom(&columns)?;
/// let shirt = json!({"metadata": {"name": "blue"}, "spec": {"replicas": 3}});
/// assert_eq!(printer.cells(&shirt, SystemTime::now()), [json!("blue"), json!(3)]);
///
/// let namespaces = Printer::builtin("", "v1", "Namespace").expect("namespaces are built in");
/// let namespace = json!({
///     "metadata": {"name": "default", "creationTimestamp": "1970-01-01T00:00:00Z"},
///     "status": {"phase": "Active"},
/// });
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(90);
/// assert_eq!(namespaces.cells(&namespace, now), [json!("default"), json!("Active"), json!("90s")]);
/// # Ok::<(), watchkeeper_table::Error>(())
/// ```
#[derive(Debug)]
pub struct Printer {
    pub(crate) columns: Columns,
    cells: Cells,
}

#[derive(Debug)]
enum Cells {
    Custom(CustomCells),
    Builtin(fn(&View<'_>) -> Vec<Value>),
}

/// An object to be printed, at a moment.
pub(crate) struct View<'a> {
    pub(crate) object: &'a Value,
    pub(crate) now: Time,
}

impl Printer {
    /// The printer of a kind that Kubernetes brings along, or `None` if the kind has none; [`Printer::plain`] then.
    ///
    /// All versions of a kind share one table, as they do in kube-apiserver.
    pub fn builtin(group: &str, _version: &str, kind: &str) -> Option<&'static Self> {
        builtin::find(group, kind)
    }

    /// Name and age, for a kind of which nothing else is known.
    pub fn plain() -> &'static Self {
        &builtin::PLAIN
    }

    /// The printer of a version of a CustomResourceDefinition, from its `additionalPrinterColumns`.
    ///
    /// The name comes first. Without columns there is the age.
    pub fn custom(columns: &[Value]) -> Result<Self, Error> {
        let (columns, cells) = CustomCells::read(columns)?;
        Ok(Self { columns: Columns::Custom(columns), cells: Cells::Custom(cells) })
    }

    pub(crate) const fn new(columns: &'static [Column], cells: fn(&View<'_>) -> Vec<Value>) -> Self {
        Self { columns: Columns::Builtin(columns), cells: Cells::Builtin(cells) }
    }

    /// The columns as `columnDefinitions` of a table.
    pub fn columns(&self) -> Vec<Value> {
        self.columns.definitions()
    }

    /// The cells of an object, one for each column. Ages are counted up to `now`.
    pub fn cells(&self, object: &Value, now: SystemTime) -> Vec<Value> {
        self.cells_at(object, now.into())
    }

    pub(crate) fn cells_at(&self, object: &Value, now: Time) -> Vec<Value> {
        match &self.cells {
            Cells::Custom(cells) => cells.of(object, now),
            Cells::Builtin(cells) => cells(&View { object, now }),
        }
    }

    /// Why the row of an object is complete, if it is: pods that are over are greyed out or hidden by some clients.
    pub(crate) fn completion(&self, object: &Value) -> Option<&'static str> {
        if !std::ptr::eq(self, &builtin::POD) {
            return None;
        }
        match object.text("status.phase") {
            "Succeeded" => Some("Succeeded"),
            "Failed" => Some("Failed"),
            _ => None,
        }
    }
}

impl View<'_> {
    /// The name of the object.
    pub(crate) fn name(&self) -> Value {
        self.object.text("metadata.name").into()
    }

    /// The time since the object was created.
    pub(crate) fn age(&self) -> Value {
        self.since("metadata.creationTimestamp").into()
    }

    /// The time since the moment at `path`.
    pub(crate) fn since(&self, path: &str) -> String {
        match self.object.time(path) {
            Some(time) => crate::duration::age(time, self.now),
            None => "<unknown>".into(),
        }
    }

    /// Whether the object is being deleted.
    pub(crate) fn is_terminating(&self) -> bool {
        self.object.has("metadata.deletionTimestamp")
    }
}
