/// The error of an input that cannot be used, by the answer of the API server.
///
/// An object that breaks its schema is not an error of this kind: that is a list of [`FieldError`](crate::FieldError)s.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not JSON, or not YAML: a bad request.
    #[error("{0}")]
    Syntax(String),
    /// Nested deeper than [`MAX_DEPTH`](crate::json::MAX_DEPTH): a bad request.
    #[error("exceeded max depth")]
    TooDeep,
    /// More memory than [`MAX_TREE`](crate::MAX_TREE) once it is decoded: request entity too large.
    #[error("limit is {} bytes of memory for what is decoded from the body", crate::MAX_TREE)]
    TooLarge,
    /// A keyword of an OpenAPI schema has a value of the wrong type: a bad request.
    #[error("{at}: expected {expected}")]
    Schema {
        /// The keyword, as a path into the schema.
        at: String,
        /// A description of what was expected.
        expected: &'static str,
    },
    /// `metadata` cannot be read as the metadata of an object: a bad request at the root, an invalid field in an
    /// embedded object.
    #[error("{message}")]
    Metadata {
        /// The field, as a printed [`Path`](crate::Path).
        at: String,
        /// The message of Go's decoder.
        message: String,
    },
    /// The body is not a patch of its kind: a bad request.
    #[error("{0}")]
    NotAPatch(String),
    #[cfg(feature = "schemas")]
    /// More operations than [`MAX_OPERATIONS`](crate::patch::MAX_OPERATIONS): request entity too large.
    #[error(
        "The allowed maximum operations in a JSON patch is {}, got {operations}",
        crate::patch::MAX_OPERATIONS
    )]
    TooManyOperations {
        /// The number of operations.
        operations: usize,
    },
    /// The patch does not fit the object: unprocessable. kube-apiserver hides this text from its clients and says `the
    /// server rejected our request due to an error in our request`.
    #[error("{0}")]
    PatchDoesNotApply(String),
    /// A strategic merge patch cannot be merged into the object: an internal error, as kube-apiserver has it.
    #[error("{0}")]
    Unmergeable(String),
    /// The applied object cannot be applied here: a bad request.
    #[error("{0}")]
    NotApplicable(String),
    /// Owners cannot be worked out, or an applied object does not fit the shape of its kind: an internal error, as
    /// kube-apiserver has it.
    #[error("{0}")]
    Apply(String),
    /// A `test` operation found another value: unprocessable, the object has changed in the meantime.
    #[error("testing value {path} failed: test failed")]
    TestFailed {
        /// The JSON pointer tested.
        path: String,
    },
}
