//! From an authorized request to its answer.

pub(crate) mod call;
mod components;
pub(crate) mod discovery;
pub(crate) mod dispatch;
pub(crate) mod health;
mod indent;
pub(crate) mod openapi;
mod remote;
pub(crate) mod reply;
pub(crate) mod reviews;
pub(crate) mod route;
mod websocket;
