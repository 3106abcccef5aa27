//! Runs a web application for every [`WebApp`]: a Deployment and a Service of its name, and a status that tells how it goes.
//!
//! It is the operator that every guide to custom resources builds, with what the guides leave out:
//!
//! - **What runs is what is declared.** Whoever edits or deletes the Deployment or the Service finds it put back, also what was
//!   added to the container. What others own (labels, annotations such as that of `kubectl rollout restart`, resources) stays.
//! - **Nothing is sent when nothing differs.** The environment is a map and goes to the container in the order of its names,
//!   so that it does not start a rollout by being shuffled.
//! - **Trouble is a condition.** A child that the server refuses, an image that cannot be pulled, a rollout that is stuck:
//!   `Degraded` says which, and an event does; it is looked at again when something changes, or after half a minute if only
//!   others can mend it.
//! - The children go with their owner, by their owner references. There is no finalizer to be stuck on.
//!
//! - **Two versions are served.** What was written as [`v1alpha1`] is read as [`v1beta1`] and the other way round; what neither schema
//!   can say, [`webhooks`] do, with the field and the reason.
//!
//! [`operator`] adds it to a manager, and [`webhooks`] what is asked before an object is stored. `watchkeeper-webapp` is that as a program, and `watchkeeper up` runs it too.

mod desired;
mod outlook;
mod reconcile;
mod trouble;
pub mod v1alpha1;
pub mod v1beta1;
mod webhooks;

pub use reconcile::operator;
pub use v1beta1::{Http, WebApp, WebAppSpec, WebAppStatus};
pub use webhooks::webhooks;
