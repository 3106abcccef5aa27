//! What tests of controllers need: an API server in the test's own process, faults on the way to it, and a record of
//! what was asked of it.
//!
//! [`TestEnv`] is where to start. [`eventually`] and [`consistently`] wait for what a test claims. [`fixtures`] are kinds and
//! objects to claim it of.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use watchkeeper_client::Client;
//! use watchkeeper_core::Key;
//! use watchkeeper_testkit::fixtures::config_map;
//! use watchkeeper_testkit::{Outcome, TestEnv, eventually};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let env = TestEnv::start().await;
//! let client = Client::new(env.connection());
//!
//! // The write happens, but its sender is never told.
//! let fault = env.fault(|call| if call.verb == "create" { Outcome::lose() } else { Outcome::pass() });
//! assert!(client.create(&config_map("a", &[("k", "v")])).await.is_err());
//! fault.lift();
//!
//! let key = Key::new(Some("default"), "a");
//! eventually(|| async { client.live().get::<ConfigMap>(&key).await.is_ok_and(|found| found.is_some()) }).await;
//! assert_eq!(env.count(|request| request.call.is_write()), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Virtual time
//!
//! Nothing here waits for the machine's clock: all timers are tokio's, and the server takes the time that objects carry
//! from tokio's clock too. Under `#[tokio::test(start_paused = true)]` an hour passes in a blink, as long as everything
//! the test talks to is in this process; a server that [listens](TestEnvBuilder::listening) is not.
//!
//! # A real server
//!
//! If the variable `WATCHKEEPER_REAL` names a directory of real servers (kube-apiserver with etcd, each started there by
//! `bench/peers/start DIRECTORY/kubeconfig DIRECTORY`), every environment takes one of them, which nobody else uses until
//! it is dropped, and empties it. Faults and the record of requests are as ever, for they are on this side of the
//! connection. Virtual time becomes time that goes as fast as real time while something is under way and a hundred times as fast
//! otherwise. What only a server in this process can do (a storage, a clock or a seed of its own) panics. `make test-real`
//! runs the tests of this workspace that way.
//!
//! # The way of a request
//!
//! `transport` takes it from a connection (or `loopback` from a socket) to the `entrance`, which asks the `faults` what
//! becomes of it, notes it in the `timeline`, and hands it to the server.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod call;
mod definitions;
mod entrance;
mod env;
mod etcd;
mod eventually;
mod faults;
pub mod fixtures;
#[cfg(feature = "kube")]
pub mod kube;
mod loopback;
mod outcome;
mod pace;
mod real;
mod round_trip;
mod sample;
mod server;
mod timeline;
mod transport;
mod wall_clock;
mod watches;

pub use builder::TestEnvBuilder;
pub use call::Call;
pub use entrance::Broken;
pub use env::TestEnv;
pub use eventually::{Consistently, Eventually, Verdict, consistently, eventually};
pub use faults::Fault;
pub use outcome::Outcome;
pub use round_trip::{Version, round_trips};
pub use timeline::{Fate, Seen};
