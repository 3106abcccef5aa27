//! The types the built-in kinds are made of. They lie in the program as text and are read when they are needed.

use crate::default;
use crate::kind::strategy::Fill;
use serde_json::Value;
use std::ops::Range;
use std::sync::OnceLock;

/// The name of each definition and the lengths of its two forms, sorted by name. `generator` makes this and the two texts.
const LENGTHS: &[(&str, usize, usize)] = &include!("generated/index.rs");
static SCHEMAS: &str = include_str!("generated/schemas.jsonl");
static RECORD_TEXTS: &str = include_str!("generated/records.txt");

static INDEX: [Entry; LENGTHS.len()] = index();
static RECORDS: [OnceLock<Record>; INDEX.len()] = [const { OnceLock::new() }; INDEX.len()];

/// Where the two forms of a definition are. The entries are sorted by name.
struct Entry {
    name: &'static str,
    schema: Range<usize>,
    record: Range<usize>,
}

/// Adds up the lengths, while this is compiled. What is checked in are lengths, since an offset would differ as soon as a
/// definition before it does.
const fn index() -> [Entry; LENGTHS.len()] {
    let mut index = [const { Entry { name: "", schema: 0..0, record: 0..0 } }; LENGTHS.len()];
    let (mut at, mut schemas, mut records) = (0, 0, 0);
    while at < index.len() {
        let (name, schema, record) = LENGTHS[at];
        index[at] = Entry { name, schema: schemas..schemas + schema, record: records..records + record };
        schemas += schema + "\n".len();
        records += record;
        at += 1;
    }
    index
}

/// A type with fields, as Go sees it.
#[derive(Debug)]
pub(crate) struct Record {
    /// The name of the definition.
    pub(crate) name: &'static str,
    /// Sorted by name.
    pub(crate) fields: Vec<Field>,
    /// Sets the defaults that depend on other fields.
    pub(crate) default: Option<Fill>,
}

/// A field of a type.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// The name of its Go type, where the shape does not tell.
    go_type: Option<&'static str>,
    /// Zero is a value; only absence is absence.
    pub(crate) is_pointer: bool,
    pub(crate) when_absent: WhenAbsent,
    /// What an absent field becomes, as JSON.
    pub(crate) default: Option<&'static str>,
}

/// What is written for a field that has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenAbsent {
    Nothing,
    Zero,
    Null,
    /// An empty object.
    Empty,
}

/// The type of a value.
#[derive(Debug)]
pub(crate) enum Shape {
    Text,
    Int32,
    Int64,
    Flag,
    Float,
    Bytes,
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    Anything,
    List(Box<Shape>),
    Map(Box<Shape>),
    /// The index of a definition.
    Record(usize),
}

/// The name of the definition of a kind.
pub(crate) fn name(group: &str, version: &str, kind: &str) -> String {
    match group {
        "" => format!("io.k8s.api.core.{version}.{kind}"),
        "apiextensions.k8s.io" => {
            format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}")
        }
        "apiregistration.k8s.io" => {
            format!("io.k8s.kube-aggregator.pkg.apis.apiregistration.{version}.{kind}")
        }
        _ => {
            let short = group.split('.').next().unwrap_or_default();
            format!("io.k8s.api.{short}.{version}.{kind}")
        }
    }
}

/// The place of a definition.
pub(crate) fn find(name: &str) -> Option<usize> {
    INDEX.binary_search_by(|entry| entry.name.cmp(name)).ok()
}

/// The names of all definitions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    INDEX.iter().map(|entry| entry.name)
}

/// The schema of a definition as JSON text, references as in Swagger.
pub(crate) fn schema_text(index: usize) -> &'static str {
    &SCHEMAS[INDEX[index].schema.clone()]
}

/// The schema of a definition.
pub(crate) fn schema(index: usize) -> Value {
    serde_json::from_str(schema_text(index)).unwrap_or_default()
}

/// A type, read on first use.
pub(crate) fn record(index: usize) -> &'static Record {
    RECORDS[index].get_or_init(|| {
        let entry = &INDEX[index];
        let fields = RECORD_TEXTS[entry.record.clone()].lines().filter_map(read_field).collect();
        Record { name: entry.name, fields, default: default::depending(entry.name) }
    })
}

fn read_field(line: &'static str) -> Option<Field> {
    let mut words = line.splitn(5, ' ');
    let (name, shape, go_type, flags) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let when_absent = match flags {
        flags if flags.contains('a') => WhenAbsent::Zero,
        flags if flags.contains('n') => WhenAbsent::Null,
        flags if flags.contains('v') => WhenAbsent::Empty,
        _ => WhenAbsent::Nothing,
    };
    Some(Field {
        name,
        shape: read_shape(shape),
        go_type: Some(go_type).filter(|name| *name != "-"),
        is_pointer: flags.contains('p'),
        when_absent,
        default: words.next().and_then(|word| word.strip_prefix('=')),
    })
}

fn read_shape(text: &str) -> Shape {
    match text.as_bytes().first() {
        Some(b's') => Shape::Text,
        Some(b'i') => Shape::Int32,
        Some(b'l') => Shape::Int64,
        Some(b'b') => Shape::Flag,
        Some(b'f') => Shape::Float,
        Some(b'y') => Shape::Bytes,
        Some(b'q') => Shape::Quantity,
        Some(b'x') => Shape::IntOrString,
        Some(b't') => Shape::Time,
        Some(b'm') => Shape::MicroTime,
        Some(b'[') => Shape::List(Box::new(read_shape(&text[1..]))),
        Some(b'{') => Shape::Map(Box::new(read_shape(&text[1..]))),
        Some(b'#') => text[1..].trim_end_matches(';').parse().map_or(Shape::Anything, Shape::Record),
        _ => Shape::Anything,
    }
}

impl Record {
    /// The name of the Go type without its package.
    pub(crate) fn go_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.binary_search_by(|field| field.name.cmp(name)).ok().map(|at| &self.fields[at])
    }
}

impl Field {
    /// The name of the Go type of the field.
    pub(crate) fn go_type(&self) -> String {
        self.go_type.map_or_else(|| self.shape.go_type(), str::to_owned)
    }

    /// The name of the Go type of one element of the list or map that the field is.
    pub(crate) fn go_element_type(&self, element: &Shape) -> String {
        let own = self.go_type.map(|name| match name.strip_prefix("[]") {
            Some(element) => element,
            None => name.split_once(']').map_or(name, |(_, element)| element),
        });
        own.filter(|name| Some(*name) != self.go_type).map_or_else(|| element.go_type(), str::to_owned)
    }
}

impl Shape {
    /// The name of the Go type, as far as the shape tells.
    pub(crate) fn go_type(&self) -> String {
        match self {
            Self::Text => "string".into(),
            Self::Int32 => "int32".into(),
            Self::Int64 => "int64".into(),
            Self::Flag => "bool".into(),
            Self::Float => "float64".into(),
            Self::Bytes => "[]uint8".into(),
            Self::Quantity => "resource.Quantity".into(),
            Self::IntOrString => "intstr.IntOrString".into(),
            Self::Time => "v1.Time".into(),
            Self::MicroTime => "v1.MicroTime".into(),
            Self::Anything => "interface {}".into(),
            Self::List(inner) => format!("[]{}", inner.go_type()),
            Self::Map(inner) => format!("map[string]{}", inner.go_type()),
            Self::Record(index) => {
                let mut parts = INDEX[*index].name.rsplitn(3, '.');
                let (kind, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                format!("{package}.{kind}")
            }
        }
    }
}
