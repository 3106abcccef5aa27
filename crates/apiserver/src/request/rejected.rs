use watchkeeper_schema::{FieldError, invalid_message};
use watchkeeper_wire::reason;

/// The group of the kinds that options belong to.
const GROUP: &str = "meta.k8s.io";

/// A request that cannot be understood, with what its `Status` says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rejected {
    /// 400: something cannot be parsed.
    BadRequest(String),
    /// 422: options that parse but break rules; `kind` is one of `meta.k8s.io`.
    Invalid {
        /// The kind of the options: `ListOptions`.
        kind: &'static str,
        /// The name of the object, which options do not have: always empty.
        name: String,
        /// What is wrong, at least one thing.
        errors: Vec<FieldError>,
    },
    /// 406: no acceptable media type for the answer.
    NotAcceptable(String),
    /// 415: a body in a media type that is not understood.
    UnsupportedMediaType(String),
    /// 500: a path that looks like a resource but names none.
    Internal(String),
}

impl Rejected {
    /// Options that break rules, if there are any.
    pub(crate) fn unless_valid(kind: &'static str, errors: Vec<FieldError>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self::Invalid { kind, name: String::new(), errors }) }
    }

    /// The HTTP status code.
    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::NotAcceptable(_) => 406,
            Self::UnsupportedMediaType(_) => 415,
            Self::Invalid { .. } => 422,
            Self::Internal(_) => 500,
        }
    }

    /// The `reason` of the `Status`.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::BadRequest(_) => reason::BAD_REQUEST,
            Self::NotAcceptable(_) => reason::NOT_ACCEPTABLE,
            Self::UnsupportedMediaType(_) => reason::UNSUPPORTED_MEDIA_TYPE,
            Self::Invalid { .. } => reason::INVALID,
            Self::Internal(_) => reason::INTERNAL_ERROR,
        }
    }

    /// The `message` of the `Status`.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::BadRequest(text)
            | Self::NotAcceptable(text)
            | Self::UnsupportedMediaType(text)
            | Self::Internal(text) => text.clone(),
            Self::Invalid { kind, name, errors } => invalid_message(GROUP, kind, name, errors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watchkeeper_schema::Path;

    #[test]
    fn says_what_a_status_needs() {
        let errors = vec![FieldError::required(&Path::root().child("fieldManager"), "no")];
        let invalid = Rejected::unless_valid("PatchOptions", errors).unwrap_err();
        assert_eq!((invalid.code(), invalid.reason()), (422, "Invalid"));
        assert_eq!(
            invalid.message(),
            r#"PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: no"#
        );
        assert_eq!(Rejected::unless_valid("PatchOptions", Vec::new()), Ok(()));
        for (rejected, code) in [
            (Rejected::BadRequest("x".into()), 400),
            (Rejected::NotAcceptable("x".into()), 406),
            (Rejected::UnsupportedMediaType("x".into()), 415),
            (Rejected::Internal("x".into()), 500),
        ] {
            assert_eq!((rejected.code(), rejected.message().as_str()), (code, "x"));
        }
    }
}
