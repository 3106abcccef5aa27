/// The error of a reactor that cannot start or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of the user cannot be used as it is.
    #[error("{0}")]
    Input(String),
    /// Something failed that may not fail the next time.
    #[error("{0}")]
    Running(String),
}
