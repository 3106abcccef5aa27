//! Schemas of custom resources: what an object of a kind may be, and what becomes of one that is sent.
//!
//! Everything here is a pure function over [`serde_json::Value`]; there is no I/O. It behaves as kube-apiserver does, down
//! to the words of its errors, because clients and tests read them. The way of an object through this crate:
//!
//! 1. [`json::decode`] or [`yaml::decode`]: bytes to a value, with what strict field validation objects to;
//! 2. [`Schema::coerce`]: unknown fields and nulls that may not be go away, `metadata` is read;
//! 3. [`Schema::default`]: missing fields are filled in;
//! 4. [`Schema::validate`] or [`Schema::validate_update`]: a list of [`FieldError`]s, of which [`invalid_message`] makes the
//!    message of a `Status`.
//!
//! [`Schema::check`] says whether a schema may be part of a CustomResourceDefinition. [`patch`] makes the next object of one
//! and a patch; [`managed`] keeps the books on who owns which field and does server-side apply.
//!
//! Without the feature `schemas` only the readers of JSON and YAML are there.
//!
//! No input makes this crate panic, and none makes it use memory or time out of proportion to its own size and that of
//! the schema.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "schemas")]
mod bounded;
#[cfg(feature = "schemas")]
mod check;
#[cfg(feature = "schemas")]
mod default;
mod error;
#[cfg(feature = "schemas")]
mod format;
pub mod json;
#[cfg(feature = "schemas")]
pub mod managed;
#[cfg(feature = "schemas")]
pub mod metadata;
#[cfg(feature = "schemas")]
pub mod patch;
#[cfg(feature = "schemas")]
mod pattern;
#[cfg(feature = "schemas")]
mod prune;
#[cfg(feature = "schemas")]
mod schema;
#[cfg(feature = "schemas")]
mod shape;
#[cfg_attr(not(feature = "schemas"), allow(dead_code, reason = "only some of it is for readers"))]
mod trail;
#[cfg(feature = "schemas")]
mod validate;
mod weight;
pub mod yaml;

#[cfg(test)]
mod arbitrary;
#[cfg(test)]
#[cfg(feature = "schemas")]
mod properties;

pub use error::Error;
#[cfg(feature = "schemas")]
pub use prune::{strict_message, unknown_field};
#[cfg(feature = "schemas")]
pub use schema::{PlacedRule, Rule, Schema};
#[cfg(feature = "schemas")]
pub use shape::Shape;
pub use watchkeeper_wire::field::{FieldError, Path, Reason, invalid_message};
pub use weight::{MAX_TREE, Weight};

/// How many cases a property test runs: `normal`, unless `WATCHKEEPER_CASES` says otherwise.
#[cfg(test)]
fn cases(normal: u32) -> u32 {
    let asked = std::env::var("WATCHKEEPER_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(normal)
}
