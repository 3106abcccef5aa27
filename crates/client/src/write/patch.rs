use serde_json::Value;

/// A change of an object, in one of the forms that Kubernetes knows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Patch {
    /// What is named is replaced, `null` removes; lists are replaced whole (RFC 7396).
    Merge(Value),
    /// Operations, done one after the other, all or none (RFC 6902). A list of objects with `op`, `path`, `value`.
    Json(Value),
    /// As a merge, but lists are merged by the keys that the kind defines. Built-in kinds only.
    Strategic(Value),
}

impl Patch {
    pub(crate) fn content_type(&self) -> &'static str {
        match self {
            Self::Merge(_) => "application/merge-patch+json",
            Self::Json(_) => "application/json-patch+json",
            Self::Strategic(_) => "application/strategic-merge-patch+json",
        }
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        let (Self::Merge(value) | Self::Json(value) | Self::Strategic(value)) = self;
        value.to_string().into_bytes()
    }
}
