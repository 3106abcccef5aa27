//! What an operator is shipped with: definitions, roles, manifests, a chart, alerts, dashboards, documentation.
//!
//! All of it is rendered from one value, the [`Description`](watchkeeper_description::Description) that the program prints about itself,
//! so that none of it drifts from the program. Everything here is a pure function: the same description gives the same files, byte by byte.
//!
//! - [`Operator`] is a description with what its project says ([`Settings`]).
//! - [`RENDERERS`] are the kinds of output; each is one file of this crate and one line in that list.
//! - [`lint()`] finds mistakes in definitions, [`breaking()`] what would break for those who use an earlier one.
//! - [`types()`] makes Rust types of a definition that somebody else made.
//! - [`plan()`] compares what is rendered with what is there.
//!
//! # Whose files are they
//!
//! A file is [generated](Keep::Generated), carries a header that says so and is never edited; or it is [the user's](Keep::Once): written if it is
//! not there, and never again. In between is [a file of the user](Keep::Parts) in which some values follow the program.

mod artifacthub;
mod breaking;
mod chart;
mod crds;
mod definition;
mod docs;
mod error;
mod file;
mod install;
mod kustomize;
mod lint;
mod monitoring;
mod olm;
mod operator;
mod parts;
mod plan;
mod rbac;
mod schemas;
mod types;
mod walk;
mod webhooks;
mod workload;

pub use breaking::breaking;
pub use definition::Definition;
pub use error::Error;
pub use file::{File, Keep};
pub use lint::{Finding, Severity, lint};
pub use operator::{Operator, Settings};
pub use parts::Path;
pub use plan::{Difference, plan};
pub use types::types;

/// One kind of output.
pub struct Renderer {
    /// The name on the command line.
    pub name: &'static str,
    /// The files that it writes, in a few words.
    pub about: &'static str,
    /// The paths that it owns: other files there are left from an earlier run.
    pub owns: &'static [&'static str],
    /// Renders it.
    pub render: fn(&Operator<'_>) -> Result<Vec<File>, Error>,
}

/// All kinds of output, in the order in which they are rendered.
pub const RENDERERS: &[Renderer] = &[
    crds::RENDERER,
    rbac::RENDERER,
    install::RENDERER,
    kustomize::RENDERER,
    chart::RENDERER,
    olm::RENDERER,
    docs::RENDERER,
    schemas::RENDERER,
    monitoring::RENDERER,
    artifacthub::RENDERER,
];
