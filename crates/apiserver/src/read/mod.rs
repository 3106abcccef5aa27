//! Reading: one object, lists, watches, and the forms in which clients ask for them.

pub(crate) mod filter;
pub(crate) mod list;
pub(crate) mod list_body;
pub(crate) mod render;
pub(crate) mod watch;
