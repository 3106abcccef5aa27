//! What `kubectl get` shows: objects as rows of a `meta.k8s.io/v1` Table.
//!
//! Everything here is a pure function over [`serde_json::Value`]; there is no I/O and no clock. It answers as kube-apiserver
//! 1.36 does: the same columns, the same cells, the same oddities, because people and scripts read them.
//!
//! - [`Printer`] knows the columns of a kind and makes the cells of an object: [`Printer::custom`] for the printer columns of a
//!   CustomResourceDefinition, [`Printer::of`] for a [`layout`], which is how built-in kinds say theirs.
//! - [`Table`] is the response to a client that asked for a table; it borrows the objects and writes itself in one pass.
//!   [`Row`] is one row of it.
//! - [`Partial`] and [`PartialList`] are the responses to a client that asked for metadata only.
//! - [`JsonPath`] is the path language of printer columns, [`FieldPath`] the plain one of scale and selectable fields.
//! - [`duration`] says how long something took, as a person would.
//!
//! No input makes this crate panic. Objects are expected to have passed validation; a field of the wrong type counts as
//! missing, and missing fields count as what Kubernetes would have filled in.

mod cell;
mod column;
mod custom;
pub mod duration;
mod error;
mod field_path;
mod fields;
pub mod jsonpath;
pub mod layout;
mod partial;
mod printer;
mod quantity;
pub mod selector;
mod table;

pub use error::Error;
pub use field_path::FieldPath;
pub use jsonpath::JsonPath;
pub use partial::{Partial, PartialList};
pub use printer::Printer;
pub use table::{Include, Row, Table};
