//! Background tasks that do not die quietly.
//!
//! A [`Supervisor`] runs the tasks of one server or one manager. A panic ends neither the task nor the program, and is not
//! kept secret either: it is caught, counted, logged with the name of the task and of the object at hand, and the task
//! begins again after a pause. A task that does not recover is named by [`Supervisor::failing`], for readiness probes.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod backoff;
#[cfg(feature = "faults")]
mod faults;
mod supervisor;

pub use supervisor::{Entry, Supervisor};
