//! The messages: which field of an object has which number and type.

use std::sync::OnceLock;

static TEXT: &str = include_str!("../../data/messages.txt");
const META: &str = "meta.k8s.io/v1";

/// A message type, its fields sorted by number.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) fields: Vec<Field>,
}

#[derive(Debug)]
pub(super) struct Field {
    /// The name in JSON. Empty if the fields of this message appear there as fields of the one around it.
    pub(super) name: &'static str,
    pub(super) number: u32,
    pub(super) shape: Shape,
    /// Zero is a value; only absence is absence.
    pub(super) is_pointer: bool,
    /// Written in JSON even when it is empty.
    pub(super) is_kept: bool,
}

/// The type of a value.
#[derive(Debug)]
pub(super) enum Shape {
    Text,
    Flag,
    Int32,
    Int64,
    Double,
    Bytes,
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    /// JSON as it is, in a message.
    Json,
    List(Box<Shape>),
    Map(Box<Shape>),
    /// A list in a message of its own, so that it can be a value of a map.
    Wrapped(Box<Shape>),
    Message(Place),
    /// A message whose fields are the forms that the value can have. The last one that is there counts.
    Union(Place),
}

/// Where a message stands in the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(usize);

struct Row {
    name: &'static str,
    is_kind: bool,
    fields: &'static str,
    message: OnceLock<Message>,
}

/// The lines of the table; their fields are read when they are needed.
fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
        let row = |line: &'static str| {
            let (name, rest) = line.split_once(' ')?;
            let (mark, fields) = rest.split_at_checked(1)?;
            Some(Row { name, is_kind: mark == "*", fields, message: OnceLock::new() })
        };
        lines.filter_map(row).collect()
    })
}

fn find(name: &str) -> Option<usize> {
    rows().binary_search_by(|row| row.name.cmp(name)).ok()
}

/// The message of a kind. The kinds that every version has, such as `Status`, are found in all built-in versions, and
/// where no version is said, as discovery does.
pub(super) fn of_kind(api_version: &str, kind: &str) -> Option<Place> {
    let of_version =
        |version: &str| find(&format!("{version}.{kind}")).filter(|index| rows()[*index].is_kind);
    let is_built_in =
        || api_version.is_empty() || crate::all().iter().any(|known| known.api_version() == api_version);
    let found = of_version(api_version).or_else(|| of_version(META).filter(|_| is_built_in()));
    found.map(Place)
}

impl Place {
    /// The message, read on first use.
    pub(super) fn message(self) -> &'static Message {
        let row = &rows()[self.0];
        row.message.get_or_init(|| {
            let version = row.name.rsplit_once('.').map_or("", |(version, _)| version);
            let words = row.fields.split_ascii_whitespace();
            let mut fields: Vec<_> = words.filter_map(|word| read_field(word, version)).collect();
            fields.sort_unstable_by_key(|field| field.number);
            Message { fields }
        })
    }
}

fn read_field(word: &'static str, version: &str) -> Option<Field> {
    let (name, rest) = word.split_once('=')?;
    let (number, rest) = rest.split_once(':')?;
    let (rest, is_kept) = rest.strip_suffix('!').map_or((rest, false), |rest| (rest, true));
    let (rest, is_pointer) = rest.strip_suffix('?').map_or((rest, false), |rest| (rest, true));
    Some(Field { name, number: number.parse().ok()?, shape: read_shape(rest, version)?, is_pointer, is_kept })
}

fn read_shape(text: &str, version: &str) -> Option<Shape> {
    let (mark, rest) = text.split_at_checked(1)?;
    let inner = || read_shape(rest, version).map(Box::new);
    let place = || find(rest).or_else(|| find(&format!("{version}.{rest}"))).map(Place);
    Some(match mark {
        "s" => Shape::Text,
        "b" => Shape::Flag,
        "i" => Shape::Int32,
        "l" => Shape::Int64,
        "d" => Shape::Double,
        "y" => Shape::Bytes,
        "q" => Shape::Quantity,
        "x" => Shape::IntOrString,
        "t" => Shape::Time,
        "m" => Shape::MicroTime,
        "r" => Shape::Json,
        "[" => Shape::List(inner()?),
        "{" => Shape::Map(inner()?),
        "w" => match read_shape(rest, version)? {
            Shape::List(element) => Shape::Wrapped(element),
            _ => return None,
        },
        "#" => Shape::Message(place()?),
        "|" => Shape::Union(place()?),
        _ => return None,
    })
}

impl Message {
    /// The place among the fields of the one with this number.
    pub(super) fn field(&self, number: u32) -> Option<usize> {
        self.fields.binary_search_by_key(&number, |field| field.number).ok()
    }

    pub(super) fn field_named(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_can_be_read() {
        assert!(rows().is_sorted_by_key(|row| row.name));
        for (index, row) in rows().iter().enumerate() {
            let fields = &Place(index).message().fields;
            assert_eq!(fields.len(), row.fields.split_ascii_whitespace().count(), "{}", row.name);
            assert!(fields.windows(2).all(|pair| pair[0].number < pair[1].number), "{}", row.name);
        }
    }

    #[test]
    fn every_kind_has_a_message_and_so_have_its_lists() {
        for kind in crate::all() {
            let version = kind.api_version();
            assert!(of_kind(&version, kind.kind).is_some(), "{version} {}", kind.kind);
            let is_listed = kind.verbs.names().contains(&"list");
            assert_eq!(of_kind(&version, &kind.list_kind()).is_some(), is_listed, "{version} {}", kind.kind);
        }
    }

    #[test]
    fn what_is_no_kind_of_a_built_in_version_is_not_found() {
        for (version, kind) in [
            ("v1", "PodSpec"),
            ("apps.example.com/v1", "Deployment"),
            ("example.com/v1", "Status"),
            ("meta.k8s.io/v1", "ObjectMeta"),
            ("", "v1.Pod"),
        ] {
            assert!(of_kind(version, kind).is_none(), "{version} {kind}");
        }
        assert!(of_kind("apps/v1", "DeleteOptions").is_some());
    }
}
