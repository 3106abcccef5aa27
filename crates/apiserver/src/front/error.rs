use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the front could not be set up. The text names files and addresses, never a secret.
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
    /// Plain HTTP was asked for where others could read it: use a loopback address, or HTTPS.
    #[error(
        "plain HTTP carries tokens in the clear and is only served on loopback addresses, not on {address}"
    )]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// A file with a key, a certificate or a token is not what it should be: restore it, or remove all of them to begin
    /// anew.
    #[error("{}: {reason}", file.display())]
    Credentials {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A token file cannot be used: fix it.
    #[error("token file {}: {reason}", file.display())]
    TokenFile {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A kubeconfig could not be written, or is somebody else's: choose another file.
    #[error("kubeconfig {}: {reason}", file.display())]
    Kubeconfig {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A name cannot be in a certificate: fix it.
    #[error("{name:?} cannot be in a certificate: {reason}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The cryptography failed in a way that only a broken system explains.
    #[error("{0}")]
    Cryptography(String),
}
