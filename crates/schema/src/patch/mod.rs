//! Patches, as pure functions from an object to the next.
//!
//! [`merge`] is JSON merge patch (RFC 7386), [`JsonPatch`] is JSON patch (RFC 6902), both with the behaviour of the
//! library kube-apiserver uses. [`strategic`] is the merge patch of the built-in kinds. Memory is bounded: a result is at most as large as the object, the patch and
//! [`MAX_COPIED`] bytes together, and never deeper than [`MAX_DEPTH`](crate::json::MAX_DEPTH).

mod json;
mod merge;
mod pointer;
mod strategic;

pub use json::{JsonPatch, MAX_COPIED, MAX_OPERATIONS};
pub use merge::{difference, merge};
pub use strategic::strategic;
