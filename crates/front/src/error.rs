use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a front could not be set up. The text names files and addresses, never a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address cannot be listened on: choose another, or stop who has it.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        reason: String,
    },
    /// A socket that somebody else made cannot be listened on, or not be given to somebody else.
    #[error("socket {socket}: {reason}")]
    Socket {
        /// Its name, or its number among those that were inherited.
        socket: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file with a key, a certificate or another secret is not what it should be: restore it.
    #[error("{}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The cryptography failed: keys and certificates that do not fit together, or a broken system.
    #[error("{0}")]
    Cryptography(String),
}
