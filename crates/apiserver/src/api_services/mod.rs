//! APIServices: who serves which group and version.
//!
//! What this server serves itself is registered by itself, as kube-apiserver does: the built-in versions when it starts,
//! those of definitions for as long as they are served. An APIService of somebody else's server is kept, and its condition
//! says why it is not available: requests are not forwarded yet.

mod availability;
mod registered;

pub(crate) use availability::{Backend, condition, set_condition};
pub(crate) use registered::{Registered, builtin, custom};

pub(crate) const GROUP: &str = "apiregistration.k8s.io";
pub(crate) const PLURAL: &str = "apiservices";

/// Who is said to have written what this server registers.
pub(crate) const MANAGER: &str = "kube-apiserver";
