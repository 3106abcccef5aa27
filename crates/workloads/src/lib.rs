//! Workloads without nodes: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and Pods move through believable
//! states, so that `kubectl rollout status` and operators see life where nothing runs.
//!
//! [`simulate`] adds the controllers of all these kinds to a [`Manager`](watchkeeper_runtime::Manager). They work against
//! any API server, through its API alone, as the real controllers, the scheduler and the kubelet do. Do not run them
//! beside those.
//!
//! ```no_run
//! use watchkeeper_runtime::{Manager, Result};
//! use watchkeeper_workloads::{Timing, simulate};
//!
//! # async fn example() -> Result<()> {
//! simulate(Manager::from_environment("workloads"), Timing::default()).run().await
//! # }
//! ```
//!
//! # What is promised
//!
//! - What a rollout, a scaling or a deletion does to objects is decided as Kubernetes does it: the same sizes in the same
//!   order, the same names, labels, conditions, reasons and messages.
//! - All state is in the objects. A simulation that is stopped anywhere and started again goes on from there.
//! - When nothing changes, nothing is sent.
//!
//! # What is not
//!
//! Nothing runs: no logs, no probes, no volumes, no quotas. How long each step takes says [`Timing`]; what goes wrong says
//! the pod itself, see [`annotation`].
//!
//! # The way of a Deployment
//!
//! `deployment` makes and sizes ReplicaSets, `replicaset` makes pods of them, `pod` is scheduler and kubelet in one.
//! `statefulset`, `daemonset` and `job` make pods too. Each decides in pure functions and acts in a reconcile of a few lines.

mod addresses;
pub mod annotation;
mod daemonset;
mod deployment;
mod endpoints;
mod fingerprint;
mod job;
mod labels;
mod node;
mod percent;
mod pod;
mod pods;
mod replicaset;
mod revisions;
mod simulation;
mod since;
mod statefulset;
mod template;
mod timing;
mod world;

pub use node::NODE;
pub use simulation::{Simulation, simulate};
pub use timing::Timing;
