//! What is wrong with an object, field by field.

mod error;
mod path;

pub use error::{FieldError, Reason, aggregate, invalid_message};
pub use path::Path;
