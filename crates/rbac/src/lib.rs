//! Role-based access control: what roles and bindings allow, decided as kube-apiserver decides it.
//!
//! Everything here is pure: objects go in, decisions come out. Nothing waits, reads or writes.
//!
//! - A [`Rule`] allows [`Request`]s; a [`ClusterRole`] or a [`Role`] is a list of rules.
//! - A [`Binding`] gives the rules of a role to [`Subject`]s: to a [`User`], to a group, to a service account.
//! - A [`Policy`] is all of them at one moment. It [decides](Policy::decide), and lists [what somebody
//!   may do](Policy::rules_of).
//! - [`missing`] tells what rules allow that others do not: nobody may give away what they do not have.
//! - [`aggregated`] is what a role consists of that is the sum of others.
//! - [`bootstrap`] are the roles and bindings that every cluster begins with.
//!
//! # What holds
//!
//! - Rules only ever allow. A role that cannot be found, or one bound a second time, takes nothing away.
//! - If [`missing`] finds nothing missing, everything that the one set of rules allows, the other allows too.

mod aggregation;
mod binding;
pub mod bootstrap;
mod cover;
mod policy;
mod request;
mod role;
mod rule;
mod selector;

pub use aggregation::aggregated;
pub use binding::{Binding, RoleRef, Subject};
pub use cover::{describe_missing, missing};
pub use policy::{Decision, Grant, Policy, RulesOf};
pub use request::{About, Request, User, account_name, account_user};
pub use role::{ClusterRole, Role};
pub use rule::Rule;
pub use selector::Selector;
