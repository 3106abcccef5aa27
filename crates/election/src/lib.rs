//! Leader election: among many candidates, at most one acts.
//!
//! [`Election`] is where to start; its documentation is the contract. Inside, a pure state machine (`machine`, over what a
//! `lease` says) decides what to do next, and a thin shell (`election`, with `requests` and `sightings` for the API) does
//! it. [`Leadership`] is what the leader holds; [`Leadership::fence`] makes a connection whose writes end with it.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use watchkeeper_election::{Election, ElectionEvent, LeaseName, ElectionOptions};
//! use watchkeeper_connection::Connection;
//!
//! let connection = Connection::infer().await?;
//! let mut election = Election::start(connection.clone(), LeaseName::new("default", "my-operator"), ElectionOptions::default())?;
//! while let Some(event) = election.next().await {
//!     match event {
//!         ElectionEvent::Standby { leader } => println!("{leader:?} leads"),
//!         ElectionEvent::Leading(leadership) => {
//!             let fenced = leadership.fence(connection.clone());
//!             // Work over this connection until leadership.lost().
//!             # let _ = fenced;
//!         }
//!         ElectionEvent::Lost(loss) => println!("{loss}"),
//!         _ => {}
//!     }
//! }
//! // When all work has ended:
//! election.release().await;
//! # Ok(())
//! # }
//! ```

mod clock;
mod election;
mod event;
mod fence;
mod identity;
mod leadership;
mod lease;
mod machine;
mod metrics;
mod options;
mod requests;
mod sightings;

pub use clock::MonotonicClock;
pub use election::Election;
pub use event::{ElectionEvent, Loss};
pub use fence::NotLeading;
pub use leadership::Leadership;
pub use lease::LeaseName;
pub use metrics::ElectionMetrics;
pub use options::{ElectionOptions, InvalidOptions};
