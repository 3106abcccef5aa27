//! Valid requests, changed at random: the API server has to answer every one of them.
//!
//! A [`Scenario`] is made from one seed: a few requests in a namespace of their own that create, patch, list, watch and delete
//! what is in the [`Corpus`]. Most are near to something valid, for a request that is refused at the door tries nothing. They are
//! sent to a [`Local`] server in this process, which is fast, or to a [`Remote`] one over sockets. A [`Tally`] judges: a panic, a
//! request without an answer, an answer that is not what it says, or one of 500 is a [`Finding`], with the seed that makes it
//! happen again. [`frames`] and [`octets`] are for what is below requests: HTTP/2 and HTTP/1.1 as bytes.
//!
//! | variable | meaning |
//! |---|---|
//! | `WATCHKEEPER_FUZZ_SECONDS` | how long all of it takes; 60 if it is not set |
//! | `WATCHKEEPER_FUZZ_SEED` | only this seed, with every request and answer printed |
//! | `WATCHKEEPER_FUZZ_START` | the first seed, for other requests than the last time |
//! | `WATCHKEEPER_FUZZ_PEER` | the kubeconfig of a real kube-apiserver, which is asked whether an answer of 500 is its own, too |

mod corpus;
mod dice;
pub mod frames;
mod judge;
mod local;
mod mutation;
pub mod octets;
mod options;
mod patch;
mod process;
mod protobuf;
mod remote;
mod request;
mod run;
mod scenario;
mod schema;
mod subject;
mod tree;
mod values;
mod yaml;

pub use corpus::Corpus;
pub use dice::Dice;
pub use judge::{Finding, Known, Tally};
pub use local::{Local, panics};
pub use process::Process;
pub use remote::{Protocol, Remote};
pub use request::{Answer, Request, cut};
pub use run::{Broken, Server, run, seconds, variable};
pub use scenario::Scenario;
pub use tree::Tree;
