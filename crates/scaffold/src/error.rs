use std::path::PathBuf;

/// Why there is no new project. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that is not possible. The text says which, and what it may be.
    #[error("{0}")]
    Name(String),
    /// The folder is there already.
    #[error("{} exists already: choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    /// The folder could not be written.
    #[error("{}: {error}", .path.display())]
    Folder {
        /// Which folder or file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The template has a mark that is not closed, or an unknown one.
    #[error("the template is broken: {0}")]
    Template(String),
}
