//! The path language of printer columns, as `k8s.io/client-go/util/jsonpath` has it.
//!
//! | written | finds |
//! |---|---|
//! | `.spec.replicas` | a field of an object |
//! | `.metadata.labels['app\.kubernetes\.io/name']`, `.a\.b` | a field whose name has dots; unescaped dots part names even here |
//! | `.items[0]`, `[-1]`, `[1:3]`, `[0:6:2]`, `[:]` | elements of an array |
//! | `.items[*]`, `.*` | all elements, all fields |
//! | `..name` | a field at any depth |
//! | `[0,2]`, `['a','b']` | several, in this order |
//! | `[?(@.type=="Ready")]`, `[?(@.name)]` | elements that compare so (`==`, `!=`, `<`, `<=`, `>`, `>=`), or have that field |
//!
//! It differs from the JSONPath of RFC 9535 in many ways, and here it follows Kubernetes in all that its users can see.

mod eval;
mod parse;

use crate::Error;
use eval::walk;
use serde_json::Value;

/// A path, parsed once and followed often.
///
/// A field that is missing is no error, it finds nothing; so do an index out of range, a comparison of things that do
/// not compare, and all else that goes wrong on the way.
///
/// ```
/// use serde_json::json;
/// use watchkeeper_table::JsonPath;
///
/// let ready = JsonPath::parse(r#".status.conditions[?(@.type=="Ready")].status"#)?;
/// let object = json!({"status": {"conditions": [
///     {"type": "Synced", "status": "False"},
///     {"type": "Ready", "status": "True"},
/// ]}});
/// assert_eq!(ready.find(&object), [&json!("True")]);
/// assert!(ready.find(&json!({})).is_empty());
/// # Ok::<(), watchkeeper_table::Error>(())
/// ```
///
/// In Go the order of `.*` over an object is random; here fields come in the order of their names. Go's `.*` also takes
/// strings apart into bytes; here a string has no elements.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    nodes: Vec<Node>,
}

/// A step of a path: turns the values found so far into the next.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Field(Box<str>),
    Slice(Slice),
    Wildcard,
    Recursive,
    Union(Vec<Vec<Node>>),
    Filter(Filter),
    /// A text or number in the path: finds itself, once.
    Text(Value),
    /// As `Text`, but once for every value found so far.
    Literal(Value),
    /// A word that only templates know, like `range`: nothing can be found with it.
    Word,
}

/// An index or a range. Missing ends are those of the array.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    /// There was no colon: `end` is the index after `start`.
    single: bool,
    step: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Vec<Node>,
    /// What to compare with and how, unless it is enough that `left` finds something.
    right: Option<(Operator, Vec<Node>)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Less,
    Greater,
    Equal,
    NotEqual,
    LessEqual,
    GreaterEqual,
    /// Parses, but compares nothing.
    Unknown,
}

impl JsonPath {
    /// Reads a path, which may stand in braces.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let braced = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        Self::parse_inside(braced.unwrap_or(text))
    }

    /// Reads a path without braces, as it stands in a CustomResourceDefinition.
    pub(crate) fn parse_inside(text: &str) -> Result<Self, Error> {
        parse::action(text).map(|nodes| Self { nodes }).map_err(Error::Path)
    }

    /// All values the path leads to.
    pub fn find<'a>(&'a self, root: &'a Value) -> Vec<&'a Value> {
        walk(&self.nodes, vec![root]).unwrap_or_default()
    }

    /// The first value the path leads to.
    pub fn first<'a>(&'a self, root: &'a Value) -> Option<&'a Value> {
        // Nearly all paths in use begin with plain fields, and those need no list of values.
        let mut value = root;
        for (done, node) in self.nodes.iter().enumerate() {
            match node {
                Node::Field(name) => match value.as_object().and_then(|fields| fields.get(&**name)) {
                    Some(found) => value = found,
                    // A text in the path is there, whatever leads to it.
                    None if self.nodes[done..].iter().all(|node| matches!(node, Node::Field(_))) => {
                        return None;
                    }
                    None => return self.find(root).first().copied(),
                },
                _ => return walk(&self.nodes[done..], vec![value]).ok()?.first().copied(),
            }
        }
        Some(value)
    }
}
