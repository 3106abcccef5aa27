//! The `metadata` every object has, at the root and in embedded objects.

mod rules;
mod shape;

pub use rules::validate;
pub use watchkeeper_wire::names::{
    dns_1035_label_problems, dns_label_problems, dns_subdomain_problems, label_key_problems,
    label_value_problems,
};

use crate::Error;
use crate::Path;
use serde_json::Value;

pub(crate) use rules::check;
pub(crate) use shape::coerce as read;

/// `metadata` as a typed reader sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Coerced {
    /// The fields that are known and not empty.
    pub value: Value,
    /// The fields that are unknown, below the metadata: `bogus`, `ownerReferences[0].x`. By name, as sorted JSON reads.
    pub unknown: Vec<String>,
}

/// Reads `metadata` as kube-apiserver reads it: unknown fields are dropped, empty fields are dropped, times are UTC.
///
/// A known field of the wrong type is an error, in the words of Go's decoder. `at` is where the metadata stands and is
/// only repeated in the error.
///
/// ```
/// use serde_json::json;
/// use watchkeeper_schema::{Path, metadata};
/// let read = metadata::coerce(&json!({"name": "a", "labels": {}, "bogus": 1}), &Path::root())?;
/// assert_eq!(read.value, json!({"name": "a"}));
/// assert_eq!(read.unknown, ["bogus"]);
/// # Ok::<(), watchkeeper_schema::Error>(())
/// ```
pub fn coerce(metadata: &Value, at: &Path) -> Result<Coerced, Error> {
    shape::coerce(metadata).map_err(|message| Error::Metadata { at: at.to_string(), message })
}
