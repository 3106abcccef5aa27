use std::fmt;

/// Why a request failed, by what is known of it. After [`Unknown`](Self::Unknown) and [`Protocol`](Self::Protocol) it may have happened, after
/// [`TooLarge`](Self::TooLarge) it has; after all others it has not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// etcd refused the request. It did not happen.
    #[error("{message} ({code})")]
    Refused {
        /// The class of the refusal.
        code: Code,
        /// What etcd said.
        message: String,
    },
    /// No endpoint could be asked, or the one that was asked cannot serve requests now. The request did not happen.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The request was sent, and it is not known what became of it. A write has to be looked up before it is repeated.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// The answer is larger than what is read, so that it was not read. What was asked for has happened.
    #[error("a message of {bytes} bytes is larger than the {limit} that are read: raise max_message_bytes")]
    TooLarge {
        /// The size that the message announced.
        bytes: usize,
        /// The size that is allowed.
        limit: usize,
    },
    /// The answer is not one of etcd's protocol. What became of the request is not known.
    #[error("not understood: {0}")]
    Protocol(String),
    /// The client was set up in a way that cannot work. Nothing was sent.
    #[error("{0}")]
    Settings(String),
}

/// The classes of refusals, as gRPC numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

impl Code {
    /// The request was cancelled.
    pub const CANCELLED: Self = Self(1);
    /// The request makes no sense.
    pub const INVALID_ARGUMENT: Self = Self(3);
    /// The deadline has passed.
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    /// A lease or a member that is not there.
    pub const NOT_FOUND: Self = Self(5);
    /// The user may not do this.
    pub const PERMISSION_DENIED: Self = Self(7);
    /// The database is full, or there are too many requests.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// Not in this state.
    pub const FAILED_PRECONDITION: Self = Self(9);
    /// A revision that was compacted, or is still to come.
    pub const OUT_OF_RANGE: Self = Self(11);
    /// etcd does not know this request.
    pub const UNIMPLEMENTED: Self = Self(12);
    /// No leader, or etcd stops.
    pub const UNAVAILABLE: Self = Self(14);
    /// Without a token, or with one that is not valid any more.
    pub const UNAUTHENTICATED: Self = Self(16);
}

const NAMES: [&str; 17] = [
    "ok",
    "cancelled",
    "unknown",
    "invalid argument",
    "deadline exceeded",
    "not found",
    "already exists",
    "permission denied",
    "resource exhausted",
    "failed precondition",
    "aborted",
    "out of range",
    "unimplemented",
    "internal",
    "unavailable",
    "data loss",
    "unauthenticated",
];

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.get(self.0 as usize) {
            Some(name) => f.write_str(name),
            None => write!(f, "code {}", self.0),
        }
    }
}

/// What etcd says when it has not begun to do what was asked, though the class is one of doubt.
const NOT_BEGUN: [&str; 3] =
    ["etcdserver: no leader", "etcdserver: not leader", "etcdserver: too many requests"];

impl Error {
    /// What an answer with this status says.
    pub(crate) fn of_status(code: Code, message: String) -> Self {
        match code {
            Code::UNAVAILABLE if NOT_BEGUN.contains(&message.as_str()) => Self::Unavailable(message),
            // Proposals that time out or lose their leader may still be applied.
            Code(1 | 2 | 4 | 10 | 13 | 14 | 15) => Self::Unknown(format!("{message} ({code})")),
            _ => Self::Refused { code, message },
        }
    }

    /// Whether the revision that was asked for has been compacted.
    pub fn is_compacted(&self) -> bool {
        self.says(Code::OUT_OF_RANGE, "compacted")
    }

    /// Whether the revision that was asked for has not been reached yet.
    pub fn is_future_revision(&self) -> bool {
        self.says(Code::OUT_OF_RANGE, "future revision")
    }

    /// Whether the database has no more room: reads and deletes are still possible.
    pub fn is_no_space(&self) -> bool {
        self.says(Code::RESOURCE_EXHAUSTED, "space exceeded")
    }

    /// Whether etcd refuses this to the user, or does not know the user.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Refused { code: Code::PERMISSION_DENIED | Code::UNAUTHENTICATED, .. })
            || self.says(Code::INVALID_ARGUMENT, "authentication failed")
            || self.says(Code::INVALID_ARGUMENT, "user name is empty")
    }

    /// Whether the token has to be renewed. The request did not happen.
    pub(crate) fn needs_token(&self) -> bool {
        matches!(self, Self::Refused { code: Code::UNAUTHENTICATED, .. })
            || self.says(Code::INVALID_ARGUMENT, "revision of auth store is old")
            || self.says(Code::INVALID_ARGUMENT, "user name is empty")
    }

    fn says(&self, expected: Code, text: &str) -> bool {
        matches!(self, Self::Refused { code, message } if *code == expected && message.contains(text))
    }
}

impl From<watchkeeper_wire::protobuf::Error> for Error {
    fn from(error: watchkeeper_wire::protobuf::Error) -> Self {
        Self::Protocol(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_have_happened_is_unknown() {
        let of = |code, message: &str| Error::of_status(Code(code), message.into());
        assert!(matches!(of(14, "etcdserver: request timed out"), Error::Unknown(_)));
        assert!(matches!(of(14, "etcdserver: leader changed"), Error::Unknown(_)));
        assert!(matches!(of(14, "etcdserver: server stopped"), Error::Unknown(_)));
        assert!(matches!(of(4, "context deadline exceeded"), Error::Unknown(_)));
        assert!(matches!(of(14, "etcdserver: no leader"), Error::Unavailable(_)));
        assert!(of(11, "etcdserver: mvcc: required revision has been compacted").is_compacted());
        assert!(of(11, "etcdserver: mvcc: required revision is a future revision").is_future_revision());
        assert!(of(8, "etcdserver: mvcc: database space exceeded").is_no_space());
        assert!(of(16, "etcdserver: invalid auth token").needs_token());
        assert!(of(7, "etcdserver: permission denied").is_denied());
    }
}
