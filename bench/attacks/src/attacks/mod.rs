//! The attacks, a file for each family.

pub(crate) mod bodies;
pub(crate) mod connections;
pub(crate) mod documents;
pub(crate) mod frames;
pub(crate) mod http2;
pub(crate) mod requests;
pub(crate) mod watches;
