//! Requests that have to be refused, and objects that must not stop the server's own work.

pub(crate) mod access;
pub(crate) mod poison;
