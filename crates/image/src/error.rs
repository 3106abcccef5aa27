/// Why there is no image, or why it is not where it should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was given cannot be. The text says what, and what to do.
    #[error("{0}")]
    Input(String),
    /// A file could not be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// A registry does not answer as it should.
    #[error("{0}")]
    Registry(String),
}
