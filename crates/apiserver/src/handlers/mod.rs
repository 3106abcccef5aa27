//! From an authorized request to its answer.

pub(crate) mod call;
pub(crate) mod discovery;
pub(crate) mod dispatch;
pub(crate) mod health;
mod indent;
pub(crate) mod openapi;
pub(crate) mod reply;
pub(crate) mod reviews;
pub(crate) mod route;
