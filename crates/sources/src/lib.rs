//! Sources: where the objects come from that Watchkeeper watches.
//!
//! Each module is one implementation of [`watchkeeper_core::Source`] and stands behind a feature of its own name.

#[cfg(feature = "channel")]
pub mod channel;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
#[cfg(feature = "files")]
mod print;
