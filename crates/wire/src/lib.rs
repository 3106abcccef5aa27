//! The vocabulary of the Kubernetes API, for those who speak it on either side.
//!
//! - [`Status`]: the answer to a request that failed, with its [`reason`]s, its [`StatusCause`]s, and what a client makes of
//!   it ([`Refusal`]);
//! - [`ResourcePath`] and [`Uri`]: where objects are;
//! - [`LabelSelector`] and [`FieldSelector`]: which of them are meant;
//! - [`field`]: what is wrong with a field of an object, as [`FieldError`](field::FieldError)s, the causes of a `Status`;
//! - [`names`]: the rules for names, label keys and label values;
//! - [`protobuf`]: the bytes of messages.
//!
//! Everything here is a pure function over text and [`serde_json::Value`]; there is no I/O. No input makes this crate panic.
//! The files under `cases/` hold what the Go packages answer to the same inputs.

pub mod field;
pub mod names;
mod path;
pub mod protobuf;
pub mod reason;
mod refusal;
pub mod selector;
mod status;

pub use path::{ResourcePath, Uri, encode};
pub use refusal::Refusal;
pub use selector::{FieldSelector, LabelSelector};
pub use status::{Status, StatusCause, StatusDetails};

/// The recorded answers in one file: a JSON object per line.
#[cfg(test)]
fn recorded(lines: &str) -> Vec<serde_json::Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How many cases a property test runs: `normal`, unless `WATCHKEEPER_CASES` says otherwise.
#[cfg(test)]
fn cases(normal: u32) -> u32 {
    let asked = std::env::var("WATCHKEEPER_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(normal)
}
