//! Reviews of admission: what is asked, what is answered, and functions in between. Without I/O.

mod handler;
mod patch;
mod request;
mod review;
mod verdict;

pub use handler::Answer;
pub use request::{AdmissionRequest, GroupVersionKind, GroupVersionResource, Operation, UserInfo};
pub use verdict::Verdict;

pub(crate) use handler::{Handler, defaulting, read, validating};
pub(crate) use review::Review;
