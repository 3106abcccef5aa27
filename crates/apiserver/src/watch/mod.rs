//! Watches: what has happened since a version, and what happens from now on.

mod frames;
mod stream;

pub(crate) use frames::Frames;
pub(crate) use stream::{Asked, From, Watcher};
