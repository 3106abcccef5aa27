//! CustomResourceDefinitions: what the server makes of them, what it says against them, and what it serves from them.
//!
//! Everything here is a pure function over JSON. The way of a definition:
//!
//! 1. [`prepare_create`], [`prepare_update`], [`prepare_status_update`]: defaults, generation, stored versions;
//! 2. [`validate()`], [`validate_status`]: a list of field errors, in the words and the order of kube-apiserver;
//! 3. [`conditions()`]: the status that the controllers of kube-apiserver would write, at once;
//! 4. [`Definition::read`]: the form the server serves objects from;
//! 5. [`deletion`]: how it goes away again.
//!
//! [`object`] and [`scale`] hold the rules for the objects of a definition.
//!
//! No input makes this module panic.

mod approval;
mod bundle;
mod canonical;
mod compiled;
mod conditions;
pub(crate) mod deletion;
mod field;
mod names;
pub(crate) mod object;
mod prepare;
mod priority;
pub(crate) mod scale;
mod url;
mod validate;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod serving;
#[cfg(test)]
mod tests;

pub(crate) use compiled::{Conversion, Definition, ScalePaths, Version};
pub(crate) use conditions::conditions;
pub(crate) use names::Names;
pub(crate) use prepare::{prepare_create, prepare_status_update, prepare_update};
pub(crate) use priority::compare_versions;
pub(crate) use validate::{validate, validate_status};
