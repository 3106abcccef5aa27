//! New operators: the files of a project, rendered from a template that is itself a crate of this workspace.
//!
//! The template is `templates/operator`. It compiles and is tested as it stands; [`Project::files`] replaces the names in it and
//! leaves out the parts that were not asked for. Rendering does no I/O. [`write()`] puts the files into a new folder, all or none.
//!
//! # Marks
//!
//! | line of the template | meaning |
//! |---|---|
//! | `// <part>` to `// </part>` | kept if the project has the part |
//! | `// <!part>` to `// </!part>` | kept if it has not |
//! | `//= code` | code that is not part of the template as it stands |
//!
//! In TOML, YAML and Makefiles they begin with `#`, in Markdown they are comments. The parts are `finalizer`, `source` and `cluster`.

mod error;
mod folder;
mod marks;
mod name;
mod origin;
mod project;
mod template;

pub use error::Error;
pub use folder::write;
pub use name::{Group, Kind, Name};
pub use origin::Origin;
pub use project::{File, Part, Project};
