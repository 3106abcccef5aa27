//! Who owns which field, and server-side apply.
//!
//! [`update`] is called on every create, update and patch: it finds out what changed and writes the new owners into
//! `metadata.managedFields`. [`apply`] merges what a manager says into the live object, refuses what others own unless
//! forced, removes what the manager no longer says and nobody else owns, and does the same bookkeeping. Both behave as
//! kube-apiserver does, down to the words of conflicts. [`FieldSet`] is the content of `fieldsV1`; [`scale`] translates
//! owners between a resource and its scale.
//!
//! Promises, whatever the input:
//! - applying the same twice changes nothing the second time, and neither does an update that changes nothing; only times
//!   would differ, which [`same_but_times`] tells;
//! - managers who apply different fields can do so in any order;
//! - a field that somebody owned and that is still there has an owner, unless its owner gave it up by applying without it;
//! - after a forced apply nobody else owns a field whose value it changed.

mod apply;
mod conflict;
mod element;
mod entries;
mod fields_v1;
mod last_applied;
mod manager;
mod ownership;
pub mod scale;
mod set;
mod typed;
mod update;
mod versions;

#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod properties;

pub use apply::{Applied, ApplyError, apply};
pub use conflict::{Cause, Conflict, Conflicts};
pub use element::{FieldPath, PathElement};
pub use entries::{Entry, ManagedFields, Operation, same_but_times};
pub use manager::{MAX_NAME, check_name};
pub use set::FieldSet;
pub use update::{update, update_or_clear};
pub use versions::{Converted, Versions};

/// The options of a write, besides the objects.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The shapes of the kind, and how objects go from one version to another. A [`Shape`](crate::Shape) will do for kinds
    /// whose versions differ in nothing but the name.
    pub versions: &'a dyn Versions,
    /// The version the request is made in, which is that of both objects: `apps/v1`.
    pub api_version: &'a str,
    /// The kind, as in `kind`.
    pub kind: &'a str,
    /// Empty for the resource itself.
    pub subresource: &'a str,
    /// The manager; empty counts as `unknown`.
    pub manager: &'a str,
    /// The time, as it is to be written: RFC 3339, UTC, whole seconds.
    pub now: &'a str,
    /// Fields that this endpoint does not write, with all that is inside of them: `status` for a resource with a status
    /// subresource, everything else for the subresource. Nobody comes to own them here.
    pub reset: &'a FieldSet,
}
