use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use watchkeeper_wire::Status;

/// The reason why a request has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no way to the server: nothing was sent.
    #[error("cannot connect to {server}: {reason}")]
    Connect {
        /// The server, as `host:port`.
        server: String,
        /// What is in the way.
        reason: Obstacle,
    },
    /// There are no credentials to send the request with: nothing was sent.
    #[error("no credentials: {0}")]
    Credentials(String),
    /// The request is malformed: nothing was sent.
    #[error("the request cannot be sent: {0}")]
    Malformed(String),
    /// The connection broke off. The server may have received the request.
    #[error("{0}")]
    Broken(#[source] Box<dyn StdError + Send + Sync>),
    /// A [`Transport`](crate::Transport) around the connection did not let it pass. The source says why.
    #[error("{0}")]
    Stopped(#[source] Box<dyn StdError + Send + Sync>),
}

impl Error {
    /// The error of a transport that does not let a request pass.
    pub fn stopped(reason: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Stopped(reason.into())
    }

    pub(crate) fn broken(reason: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Broken(reason.into())
    }
}

/// The reason why there is no way to a server. Each prints as the message of the system, the proxy or TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// The name of the host has no address, or nobody says which.
    #[error("{0}")]
    Lookup(io::Error),
    /// The address takes no connection.
    #[error("{error}")]
    Dial {
        /// The first address of the host.
        address: SocketAddr,
        /// The error of the system.
        error: io::Error,
    },
    /// What answers does not speak TLS.
    #[error("TLS: {error}")]
    NoTls {
        /// The first five bytes of the answer.
        first: Vec<u8>,
        /// The error of the handshake.
        error: io::Error,
    },
    /// The server refuses the handshake.
    #[error("TLS: {error}")]
    Alert {
        /// The description of the alert, as RFC 8446 numbers them.
        code: u8,
        /// The error of the handshake.
        error: io::Error,
    },
    /// The certificate of the server is not believed.
    #[error("TLS: {error}")]
    Certificate {
        /// The certificate in DER, and those that the server showed with it.
        chain: Vec<Vec<u8>>,
        /// Whether no authority that is trusted has issued it. Otherwise something else is wrong with it; it may be both.
        is_foreign: bool,
        /// The error of the handshake.
        error: io::Error,
    },
    /// The handshake failed in another way.
    #[error("TLS: {0}")]
    Handshake(io::Error),
    /// It took too long.
    #[error("no connection within {} s", .0.as_secs())]
    Timeout(Duration),
    /// A proxy is in the way, or the name of the host is none that a certificate can have.
    #[error("{0}")]
    Other(String),
}

impl From<String> for Obstacle {
    fn from(reason: String) -> Self {
        Self::Other(reason)
    }
}

/// The reason why a request did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server answered, and not with success.
    #[error("{}", said(.0))]
    Refused(Status),
    /// The server did not answer, or not to the end.
    #[error(transparent)]
    Unanswered(#[from] Error),
    /// The answer is larger than the bytes that are read of one.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
}

fn said(status: &Status) -> String {
    let code = status.code.unwrap_or_default();
    match (status.message.as_str(), status.reason.as_str()) {
        ("", "") => format!("the server answered {code}"),
        ("", reason) => format!("the server answered {code} {reason}"),
        (message, _) => message.to_owned(),
    }
}

/// The reason why there is no connection: no cluster is configured, or not one that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot find out which cluster to talk to: {reason}; looked at {looked_at}")]
pub struct ConnectError {
    reason: String,
    looked_at: String,
}

impl ConnectError {
    pub(crate) fn new(reason: impl fmt::Display, looked_at: impl fmt::Display) -> Self {
        Self { reason: reason.to_string(), looked_at: looked_at.to_string() }
    }
}
