/// Why a body is no review.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the body is not the JSON of a review: {0}")]
    Json(String),
    #[error("{0}")]
    Other(&'static str),
}

impl Malformed {
    /// What a decoder says, without what it says it about.
    pub(crate) fn json(error: &serde_json::Error) -> Self {
        let what = match error.classify() {
            serde_json::error::Category::Eof => "it ends too early",
            serde_json::error::Category::Data => "a field is missing or has another type",
            _ => "it is no JSON",
        };
        Self::Json(format!("{what}, at line {} column {}", error.line(), error.column()))
    }
}
