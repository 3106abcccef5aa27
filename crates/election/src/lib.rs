//! Leader election: among many candidates, at most one acts.
//!
//! [`Election`] is where to start; its documentation is the contract. Inside, a pure state machine (`machine`, over what a
//! `lease` says) decides what to do next, and a thin shell (`election`, with `requests` and `sightings` for the API) does
//! it. [`Leadership`] is what the leader holds; [`Leadership::fence`] makes a client whose writes end with it.
//!
//! ```no_run
//! # async fn example(client: kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use watchkeeper_election::{Election, Event, LeaseName, Options};
//!
//! let mut election = Election::start(client.clone(), LeaseName::new("default", "my-operator"), Options::default())?;
//! while let Some(event) = election.next().await {
//!     match event {
//!         Event::Standby { leader } => println!("{leader:?} leads"),
//!         Event::Leading(leadership) => {
//!             let client = leadership.fence(client.clone());
//!             // Work with this client until leadership.lost().
//!             # let _ = client;
//!         }
//!         Event::Lost(loss) => println!("{loss}"),
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

pub use clock::Clock;
pub use election::Election;
pub use event::{Event, Loss};
pub use fence::NotLeading;
pub use leadership::Leadership;
pub use lease::LeaseName;
pub use metrics::Metrics;
pub use options::{InvalidOptions, Options};
