//! DER and X.509, as far as a server looks into certificates and writes them. It is the only ASN.1 of this workspace.
//!
//! - [`der`] reads and writes values; what is not DER to the last byte is [`Malformed`].
//! - [`Certificate`] and [`CertificateRequest`] read names, validity, keys and alternative names; [`PublicKeyInfo`] reads keys.
//! - [`name`], [`alternative_name`], [`extension`] and [`time::write`] write the parts of certificates.
//!
//! # What it promises
//!
//! - Any bytes may come: reading never panics, takes time and memory in proportion to their length, and does not recurse.
//! - Text in names is decoded as Go decodes it, so that a group has the same name here as in kube-apiserver, whichever of the
//!   string types of ASN.1 it is written in.
//!
//! # What it does not promise
//!
//! - **It verifies nothing**: not signatures, not chains, not times. rustls does that before a certificate comes here.

mod certificate;
pub mod der;
mod malformed;
mod name;
pub mod oid;
mod public_key;
mod request;
pub mod time;

pub use certificate::{AlternativeName, Certificate, Validity, alternative_name, extension};
pub use malformed::Malformed;
pub use name::{Attribute, Name, name};
pub use public_key::{PublicKey, PublicKeyInfo};
pub use request::CertificateRequest;
