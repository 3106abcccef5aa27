/// The error of a definition that cannot be used.
///
/// Objects cause no errors: a cell that cannot be made of an object is null.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a path of the language of [`JsonPath`](crate::JsonPath).
    #[error("{0}")]
    Path(String),
    /// The text is not a plain path of field names; see [`FieldPath`](crate::FieldPath).
    #[error("{0}")]
    FieldPath(&'static str),
    /// A printer column cannot be served. The columns before it can: a server that must answer all the same makes its
    /// printer of those.
    #[error("unrecognized column definition {path:?}: {reason}")]
    Column {
        /// The index of the column, from 0.
        index: usize,
        /// The `jsonPath` of the column.
        path: String,
        /// The mistake in the column.
        reason: String,
    },
}
