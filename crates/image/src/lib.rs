//! Images for containers, made of a program and nothing else, without a daemon.
//!
//! The same input gives the same bytes, and so the same digest: files are sorted, belong to root, and are as old as
//! `SOURCE_DATE_EPOCH` says or as the epoch; compressed data carries no time.
//!
//! - [`Image::build`] makes an image of [`Input`]: a program for each platform, the users file that its user is named in, and if asked
//!   for certificates of authorities.
//! - [`archive`] writes it as a directory or archive of the OCI layout, or as an archive that `docker load` takes.
//! - [`Registry`] pushes it; blobs that are there already are not sent again.
//! - [`sbom`] says what the program is made of. It is attached to the image as a referrer.
//! - [`Program`] reads from a program for which platform it is, and whether it needs a loader that the image does not have.
//!
//! # Limits
//!
//! There is no base image and no shell: a program has to be linked statically. Layers are held in memory.

pub mod archive;
mod blob;
mod dockerfile;
mod error;
mod image;
mod layer;
mod program;
mod reference;
mod registry;
pub mod sbom;
mod tar;

pub use blob::{Blob, digest};
pub use dockerfile::dockerfile;
pub use error::Error;
pub use image::{Image, Input, USER};
pub use program::{Platform, Program};
pub use reference::Reference;
pub use registry::{Login, Pushed, Registry};
