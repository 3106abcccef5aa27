//! Certificates that look after themselves.
//!
//! `step` decides without I/O what comes next, on what `record` (the Secret) and the configurations say; `keeper` reads, asks it and
//! writes; `leaf` is the certificate that this process shows. `files` shows certificates of somebody else, by `bundle`s that several
//! replicas add to.

mod bundle;
mod files;
mod keeper;
mod leaf;
mod record;
mod status;
mod step;

pub use step::Rotation;

pub(crate) use files::FilesKeeper;
pub(crate) use keeper::{Keeper, Memory, Vault};
pub(crate) use status::{ShownCertificate, Status};
