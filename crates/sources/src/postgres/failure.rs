//! Error responses of the server as errors of a feed.

use std::fmt;

use bytes::Bytes;
use watchkeeper_core::Error;

use super::bytes::{Garbled, Parts};
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
    /// The rest is decided already.
    Decided(Error),
}

/// What the server said: never its details, which quote rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The SQLSTATE.
    pub(super) code: String,
    pub(super) message: String,
}

impl Refusal {
    /// Reads an ErrorResponse.
    pub(super) fn parse(body: Bytes) -> Result<Self, Garbled> {
        let mut parts = Parts::new(body);
        let mut refusal = Self::default();
        loop {
            match parts.u8()? {
                0 => return Ok(refusal),
                b'C' => refusal.code = parts.text()?,
                b'M' => refusal.message = parts.text()?,
                _ => drop(parts.text()?),
            }
        }
    }

    /// What the reader can do about it.
    pub(super) fn classify(&self, source: &str) -> Error {
        let reason = format!("{source}: {self}");
        match &*self.code {
            "42501" => Error::Denied(reason),
            code if code.starts_with("28") => Error::Denied(reason),
            "3D000" | "3F000" | "42P01" => Error::Missing(reason),
            // It shuts down, starts, or was told to end the connection: nothing is wrong with what was asked.
            "57P01" | "57P02" | "57P03" | "57P05" => Error::Unavailable { answered: false, reason },
            // A slot that is in use: by the connection that was cut, most of the time, until the server notices.
            "55006" => Error::Unavailable { answered: false, reason },
            code if code.starts_with("53") => Error::Throttled { after: None, reason },
            code if code.starts_with("42") => Error::Fatal(reason),
            _ => Error::Unavailable { answered: true, reason },
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.code)
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
        }
    }

    /// The SQLSTATE, if the server refused.
    pub(super) fn code(&self) -> Option<&str> {
        match self {
            Self::Server(refusal) => Some(&refusal.code),
            _ => None,
        }
    }
}

impl From<Garbled> for Failure {
    fn from(garbled: Garbled) -> Self {
        Self::Connection(format!("the server sent what is not understood: {}", garbled.0))
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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Decided(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_classified_and_their_details_are_not_shown() {
        let body = b"SFATAL\0C28P01\0Mpassword authentication failed\0DKey (a)=(secret)\0\0";
        let refusal = Refusal::parse(Bytes::from_static(body)).unwrap();
        assert_eq!(
            refusal.classify("routes"),
            Error::Denied("routes: password authentication failed (SQLSTATE 28P01)".into())
        );
        for (code, class) in [
            ("42P01", "missing"),
            ("42501", "denied"),
            ("53300", "throttled"),
            ("57P03", "unavailable"),
            ("42703", "fatal"),
            ("XX000", "unavailable"),
        ] {
            let refusal = Refusal { code: code.into(), message: String::new() };
            assert_eq!(refusal.classify("x").class(), class, "{code}");
        }
    }
}
