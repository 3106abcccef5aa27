//! Watches: what has happened since a version, and what happens from now on.

mod encode;
mod feed;
mod stream;

pub(crate) use stream::{Asked, From, Watcher};
