//! APIServices: who serves which group and version.
//!
//! What this server serves itself is registered by itself, as kube-apiserver does: the built-in versions when it starts,
//! those of definitions for as long as they are served. The condition of an APIService of somebody else's server says whether requests are
//! handed on to it (`aggregation`), and if not, why.

mod availability;
mod registered;

pub(crate) use availability::{Backend, asked, condition, set_condition};
pub(crate) use registered::{Registered, builtin, custom, group_priority};

pub(crate) const GROUP: &str = "apiregistration.k8s.io";
pub(crate) const PLURAL: &str = "apiservices";

/// Who is said to have written what this server registers.
pub(crate) const MANAGER: &str = "kube-apiserver";
