//! What benchmarks measure and how they reach it: our API server, or kube-apiserver with etcd, as processes of their own.
//!
//! A [`Target`] is a running server with its data, ended when it is dropped; [`Target::ours`] and [`Target::peer`] start
//! one. A [`Kind`] says what the objects are that it is filled with. [`Process`] tells the CPU time and the memory of any
//! process, a server or a client.

mod access;
mod client;
mod filling;
mod peer;
mod process;
mod program;
mod sample;
mod target;

pub use access::Access;
pub use client::{Ask, Connection, Lines, NAME, Pieces, refusal};
pub use filling::{by_clients, connected, over};
pub use peer::Peer;
pub use process::{Memory, OpenFiles, Process, allow_open_files};
pub use program::{beside, unless_ended};
pub use sample::{DEFINITIONS, GROUP, Kind, SHARDS, after, metric, objects, uid, version};
pub use target::{End, Program, Target};

/// What can go wrong is told to a person, and nobody else.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// What everything here gives.
pub type Result<T, E = Error> = std::result::Result<T, E>;
