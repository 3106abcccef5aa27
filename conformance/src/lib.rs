//! Clients that others wrote, run against the API server.
//!
//! - [`Script`] is a session with `kubectl` as text: commands and what a person would see. [`Session`] runs one.
//! - [`Exchanges`] is a list of plain HTTP requests; a [`Recording`] is what a server answered, with everything masked
//!   that differs from run to run.
//! - [`paths`] are random requests by users with narrow rights, with the real server's answers to them.
//! - [`Verdict`] is what a program in another language said.
//! - [`Server`] is who is asked: the API server of this workspace, or any running one.
//!
//! The same files run against the real kube-apiserver, which is how the expected results came to be:
//! `WATCHKEEPER_CONFORMANCE_KUBECONFIG` names the kubeconfig of a server to ask instead of ours.

mod difference;
mod exchange;
mod files;
mod mask;
pub mod paths;
mod pattern;
mod program;
mod recording;
mod script;
mod server;
mod session;

pub use difference::differences;
pub use exchange::{Capture, Exchange, Exchanges};
pub use files::files;
pub use mask::Mask;
pub use pattern::{Comparison, compare};
pub use program::{TestOutcome, Verdict, tool};
pub use recording::{Answer, Recording};
pub use script::{Script, Step};
pub use server::{Error, Server, binary, choice};
pub use session::{Kubectl, Outcome, Session};
