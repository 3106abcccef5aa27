use crate::reason;

/// The meaning of an error response for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The sender is not known, or may not do this: 401, 403.
    Denied,
    /// The object, or the resource, is not there: 404.
    NotFound,
    /// An object of this name is there already: 409 with that reason.
    AlreadyExists,
    /// The object has changed since it was read, or others own what is to be changed: any other 409.
    Conflict,
    /// The version asked for has been forgotten: 410.
    Expired,
    /// The object breaks rules: 422.
    Invalid,
    /// The client has to wait: 429.
    Throttled,
    /// The server did not get the whole request in time: 408.
    RequestTimeout,
    /// The request is wrong in another way: any other 4xx.
    Rejected,
    /// The server failed, and may have begun with what was asked for: 5xx.
    Unavailable,
    /// An answer that no API server gives: a redirect by something in between.
    Unexpected,
}

impl Refusal {
    /// The meaning of a status code and a reason. The reason decides only where a code has several.
    ///
    /// ```
    /// use watchkeeper_wire::Refusal;
    /// assert_eq!(Refusal::of(409, "AlreadyExists"), Refusal::AlreadyExists);
    /// assert_eq!(Refusal::of(409, ""), Refusal::Conflict);
    /// ```
    pub fn of(code: u16, reason: &str) -> Self {
        match (code, reason) {
            (401 | 403, _) => Self::Denied,
            (404, _) => Self::NotFound,
            (408, _) => Self::RequestTimeout,
            (409, reason::ALREADY_EXISTS) => Self::AlreadyExists,
            (409, _) => Self::Conflict,
            (410, _) => Self::Expired,
            (422, _) => Self::Invalid,
            (429, _) => Self::Throttled,
            (400..=499, _) => Self::Rejected,
            (500..=599, _) => Self::Unavailable,
            _ => Self::Unexpected,
        }
    }

    /// Whether the same request may succeed at another time, with nothing changed by the client.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Throttled | Self::RequestTimeout | Self::Unavailable | Self::Unexpected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_means_what_its_code_does() {
        for (reason, refusal) in [
            (reason::UNAUTHORIZED, Refusal::Denied),
            (reason::FORBIDDEN, Refusal::Denied),
            (reason::NOT_FOUND, Refusal::NotFound),
            (reason::ALREADY_EXISTS, Refusal::AlreadyExists),
            (reason::CONFLICT, Refusal::Conflict),
            (reason::EXPIRED, Refusal::Expired),
            (reason::GONE, Refusal::Expired),
            (reason::INVALID, Refusal::Invalid),
            (reason::TOO_MANY_REQUESTS, Refusal::Throttled),
            (reason::METHOD_NOT_ALLOWED, Refusal::Rejected),
            (reason::INTERNAL_ERROR, Refusal::Unavailable),
            (reason::TIMEOUT, Refusal::Unavailable),
            ("NobodyKnows", Refusal::Unavailable),
        ] {
            assert_eq!(Refusal::of(reason::code(reason), reason), refusal, "{reason}");
        }
    }

    #[test]
    fn only_what_time_can_change_is_transient() {
        for (code, transient) in
            [(302, true), (404, false), (408, true), (409, false), (429, true), (503, true)]
        {
            assert_eq!(Refusal::of(code, "").is_transient(), transient, "{code}");
        }
    }
}
