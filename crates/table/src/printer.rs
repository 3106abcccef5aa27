use crate::Error;
use crate::column::Columns;
use crate::custom::CustomCells;
use crate::layout::{Completion, Layout, View};
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
/// use std::time::SystemTime;
/// use watchkeeper_table::Printer;
///
/// let columns = [json!({"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"})];
/// let printer = Printer::custom(&columns)?;
/// let shirt = json!({"metadata": {"name": "blue"}, "spec": {"replicas": 3}});
/// assert_eq!(printer.cells(&shirt, SystemTime::now()), [json!("blue"), json!(3)]);
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
    Builtin(Layout),
}

static PLAIN: Printer = Printer::of(Layout::PLAIN);

impl Printer {
    /// The printer of a built-in kind.
    pub const fn of(layout: Layout) -> Self {
        Self { columns: Columns::Builtin(layout.columns), cells: Cells::Builtin(layout) }
    }

    /// Name and age, for a kind of which nothing else is known.
    pub fn plain() -> &'static Self {
        &PLAIN
    }

    /// The printer of a version of a CustomResourceDefinition, from its `additionalPrinterColumns`.
    ///
    /// The name comes first. Without columns there is the age.
    pub fn custom(columns: &[Value]) -> Result<Self, Error> {
        let (columns, cells) = CustomCells::read(columns)?;
        Ok(Self { columns: Columns::Custom(columns), cells: Cells::Custom(cells) })
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
            Cells::Builtin(layout) => (layout.cells)(&View { object, now }),
        }
    }

    /// Why the row of an object is complete, if it is.
    pub(crate) fn completion(&self, object: &Value) -> Option<Completion> {
        match &self.cells {
            Cells::Custom(_) => None,
            Cells::Builtin(layout) => layout.completion.and_then(|completion| completion(object)),
        }
    }
}
