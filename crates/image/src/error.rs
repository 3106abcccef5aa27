/// The error of an image that cannot be built, written or pushed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input is invalid. The text says why, and what to do.
    #[error("{0}")]
    Input(String),
    /// A file could not be read or written.
    #[error("{path}: {error}")]
    File {
        /// The path of the file.
        path: String,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// A registry cannot be reached, or does not answer as expected.
    #[error("{0}")]
    Registry(String),
}
