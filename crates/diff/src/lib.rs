//! What differs between two states of an object, field by field, in the words of the people who look at it.
//!
//! ```
//! use serde_json::json;
//! use watchkeeper_diff::{Wording, compare};
//! let old = json!({"spec": {"containers": [{"name": "web", "image": "web:1"}]}});
//! let new = json!({"spec": {"containers": [{"name": "web", "image": "web:2"}], "paused": true}});
//! let lines: Vec<String> = compare(&old, &new).iter().map(|it| Wording::of(it, 60).to_string()).collect();
//! assert_eq!(lines, ["spec.containers[name=web].image: web:1 -> web:2", "+ spec.paused: true"]);
//! ```
//!
//! - [`compare`] makes [`Difference`]s of two JSON values; items of lists are paired by the key that tells them apart.
//! - [`Path`] names a field as people write it, and can be read back.
//! - [`is_bookkeeping`] knows which fields move whenever anything moves.
//! - [`managers`] reads from `managedFields` who made a change.
//! - [`Wording`] puts a difference into words that fit a line, and [`visible`] keeps a terminal from obeying them.
//!
//! The crate does no I/O. Field names and list keys decide; it knows no schemas.

mod bookkeeping;
mod compare;
mod managers;
mod path;
mod visible;
mod wording;

pub use bookkeeping::is_bookkeeping;
pub use compare::{Difference, compare, fields};
pub use managers::managers;
pub use path::{Path, PathError, Segment};
pub use visible::visible;
pub use wording::Wording;
