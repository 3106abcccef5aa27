//! Error packets of the server as errors of a feed.

use std::fmt;

use watchkeeper_core::Error;
use watchkeeper_core::text::bounded;

use crate::database::SocketError;

/// An error that the server reported, or that the way to it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The server refused.
    Server(Refusal),
    /// The connection failed, or what came over it made no sense.
    Connection(String),
    /// The settings are wrong.
    Settings(String),
    /// The table is not there.
    Missing(String),
    /// What was asked cannot be done, for a reason that the connection has nothing to do with.
    Decided(Error),
}

/// What the server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) message: String,
}

impl Refusal {
    /// Reads an ERR packet, without the byte that says that it is one.
    pub(super) fn parse(body: &[u8]) -> Self {
        let (code, rest) = match body {
            [low, high, rest @ ..] => (u16::from_le_bytes([*low, *high]), rest),
            _ => (0, body),
        };
        // `#` and five letters of SQLSTATE, which the server leaves out before it knows which protocol is spoken.
        let rest = if rest.first() == Some(&b'#') { rest.get(6..).unwrap_or_default() } else { rest };
        Self { code, message: bounded(&String::from_utf8_lossy(rest)) }
    }

    /// Whether it says that the connection is at its end, or the server.
    pub(super) fn ends_connections(&self) -> bool {
        matches!(self.code, 1053 | 1077 | 1080 | 1317 | 1927 | 3169 | 4031)
    }

    /// What the reader can do about it.
    fn classify(&self, source: &str) -> Error {
        let reason = format!("{source}: {self}");
        match self.code {
            // No such user or password, no right to the database, the table or the column.
            1044 | 1045 | 1095 | 1142 | 1143 | 1227 | 1370 | 1698 => Error::Denied(reason),
            // No such database or table.
            1049 | 1051 | 1146 => Error::Missing(reason),
            // Too many connections, in all or of this user; too much memory.
            1037 | 1040 | 1041 | 1129 | 1203 | 1226 => Error::Throttled { after: None, reason },
            // It shuts down, or was told to end the connection: nothing is wrong with what was asked.
            1053 | 1077 | 1080 | 1317 | 1927 | 3169 => Error::Unavailable { answered: false, reason },
            // A row that is larger than the server may send. Rows with large values are not asked for their values; this one has many.
            1153 | 1301 => Error::Fatal(format!(
                "{reason}; raise max_allowed_packet of the server, or leave columns out"
            )),
            // A table that was changed between two statements (1054, 1412) among others.
            _ => Error::Unavailable { answered: true, reason },
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (error {})", self.message, self.code)
    }
}

impl Failure {
    /// What the reader can do about it.
    pub(super) fn classify(self, source: &str) -> Error {
        match self {
            Self::Server(refusal) => refusal.classify(source),
            Self::Connection(reason) => {
                Error::Unavailable { answered: false, reason: format!("{source}: {reason}") }
            }
            Self::Settings(reason) => Error::Fatal(format!("{source}: {reason}")),
            Self::Decided(error) => error,
            Self::Missing(reason) => Error::Missing(format!("{source}: {reason}")),
        }
    }

    /// The server sent what it should not.
    pub(super) fn garbled(what: &str) -> Self {
        Self::Connection(format!("the server sent what is not understood: {what}"))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Connection(error.to_string())
    }
}

impl From<SocketError> for Failure {
    fn from(error: SocketError) -> Self {
        match error {
            SocketError::Connection(reason) => Self::Connection(reason),
            SocketError::Settings(reason) => Self::Settings(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_classified() {
        let refusal = Refusal::parse(b"\x15\x04#28000Access denied for user 'a'@'b' (using password: YES)");
        assert_eq!(
            refusal.classify("routes"),
            Error::Denied("routes: Access denied for user 'a'@'b' (using password: YES) (error 1045)".into())
        );
        assert_eq!(Refusal::parse(b"\x10\x04Too many connections").message, "Too many connections");
        assert_eq!(Refusal::parse(b"\x10").code, 0);
        for (code, class) in [
            (1146, "missing"),
            (1142, "denied"),
            (1040, "throttled"),
            (1053, "unavailable"),
            (1412, "unavailable"),
            (1153, "fatal"),
        ] {
            assert_eq!(Refusal { code, message: String::new() }.classify("x").class(), class, "{code}");
        }
    }
}
