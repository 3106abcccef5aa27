//! Who may do what, by every way there is to ask: thousands of random requests by users with narrow rights, each compared
//! with what the real server said to it.
//!
//! A [`Case`] is made from a right that its user has, or from one that somebody else has, and then changed in a part or in
//! its spelling: another method, prefix, namespace, name, subresource, an empty or dotted segment, an escaped letter. Nothing
//! is left to chance: the cases are the same each time, so that a [`Record`] of the real server's answers is enough to compare
//! with.
//!
//! Cases do not disturb each other, and so can be sent in any order and at the same time: what would change something is
//! sent as a dry run, and in earnest only if it was refused. [`state`] shows that nothing has changed in the end.

mod answer;
mod case;
mod change;
mod draft;
mod findings;
mod fixture;
mod kind;
mod random;
mod record;
mod run;
mod user;

pub use answer::Outcome;
pub use case::{CASES, Case};
pub use findings::{Findings, Known, changes};
pub use fixture::{State, knows_users, prepare, state};
pub use record::Record;
pub use run::ask;
