//! Choices among objects: by labels and by fields.

mod field;
mod label;
mod label_syntax;

pub use field::{FieldSelector, Term};
pub use label::{LabelSelector, Operator, Requirement};
