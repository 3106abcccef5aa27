/// The error of an object that cannot be read as its kind: a bad request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field has another type than the kind says, in the words of Go's decoder.
    #[error("{0}")]
    Decode(String),
    /// More memory than [`MAX_TREE`](watchkeeper_schema::MAX_TREE) once it is decoded: request entity too large.
    #[error("{}", watchkeeper_schema::Error::TooLarge)]
    TooLarge,
    /// The kind has no protobuf encoding here.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// The version it was said to be of.
        api_version: String,
        /// The kind.
        kind: String,
    },
}

impl From<watchkeeper_wire::protobuf::Error> for Error {
    fn from(error: watchkeeper_wire::protobuf::Error) -> Self {
        Self::Decode(error.to_string())
    }
}
