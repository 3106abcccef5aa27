use std::net::SocketAddr;
use std::path::PathBuf;

/// The error of a front that cannot be set up. The text names files and addresses, never a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address cannot be listened on: choose another, or stop the program that uses it.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        reason: String,
    },
    /// A socket of another process cannot be listened on, or a socket cannot be passed on to another process.
    #[error("socket {socket}: {reason}")]
    Socket {
        /// The name of the socket, or its number among the inherited ones.
        socket: String,
        /// The problem.
        reason: String,
    },
    /// A file with a key, a certificate or another secret is not what it should be: restore it.
    #[error("{}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The cryptography failed: keys and certificates that do not fit together, or a broken system.
    #[error("{0}")]
    Cryptography(String),
}
