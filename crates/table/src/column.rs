use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::{Value, json};

/// A column of a table: what a `TableColumnDefinition` says.
///
/// Columns of priority 0 are always shown, the others only by `kubectl get -o wide`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<Text = &'static str> {
    pub(crate) name: Text,
    pub(crate) kind: Text,
    pub(crate) format: Text,
    pub(crate) description: Text,
    pub(crate) priority: i64,
}

/// The columns of a printer: those of built-in kinds are constants, the others were read.
#[derive(Debug)]
pub(crate) enum Columns {
    Builtin(&'static [Column]),
    Custom(Vec<Column<String>>),
}

impl Columns {
    /// As a list of `TableColumnDefinition`s.
    pub(crate) fn definitions(&self) -> Vec<Value> {
        match self {
            Self::Builtin(columns) => columns.iter().map(Column::definition).collect(),
            Self::Custom(columns) => columns.iter().map(Column::definition).collect(),
        }
    }
}

impl Serialize for Columns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Builtin(columns) => columns.serialize(serializer),
            Self::Custom(columns) => columns.serialize(serializer),
        }
    }
}

/// The name of an object, first of nearly every table.
pub const NAME: Column =
    text("Name", "The name of the object, unique within its kind and namespace.").of_names();
/// The age of an object.
pub const AGE: Column = text("Age", "The time since the object was created.");
/// When an object was created, for kinds that have no table of their own.
pub(crate) const CREATED: Column = column("Created At", "date", "The time at which the object was created.");

/// A column of strings.
pub const fn text(name: &'static str, description: &'static str) -> Column {
    column(name, "string", description)
}

/// A column of whole numbers.
pub const fn integer(name: &'static str, description: &'static str) -> Column {
    column(name, "integer", description)
}

/// A column of booleans.
pub const fn boolean(name: &'static str, description: &'static str) -> Column {
    column(name, "boolean", description)
}

/// A column of strings that only the wide table shows.
pub const fn wide(name: &'static str, description: &'static str) -> Column {
    text(name, description).wide()
}

const fn column(name: &'static str, kind: &'static str, description: &'static str) -> Column {
    Column { name, kind, format: "", description, priority: 0 }
}

impl Column {
    /// Makes a column that only the wide table shows.
    pub const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    /// Makes a column whose cells are names of objects.
    pub const fn of_names(self) -> Self {
        Self { format: "name", ..self }
    }

    pub(crate) fn to_owned(self) -> Column<String> {
        Column {
            name: self.name.into(),
            kind: self.kind.into(),
            format: self.format.into(),
            description: self.description.into(),
            priority: self.priority,
        }
    }
}

impl<Text: Serialize> Column<Text> {
    fn definition(&self) -> Value {
        let Self { name, kind, format, description, priority } = self;
        json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
    }
}

impl<Text: Serialize> Serialize for Column<Text> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("TableColumnDefinition", 5)?;
        out.serialize_field("name", &self.name)?;
        out.serialize_field("type", &self.kind)?;
        out.serialize_field("format", &self.format)?;
        out.serialize_field("description", &self.description)?;
        out.serialize_field("priority", &self.priority)?;
        out.end()
    }
}
