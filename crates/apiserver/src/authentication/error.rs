use std::net::SocketAddr;
use std::path::PathBuf;

/// The error of a server that cannot listen or authenticate. The text names files and addresses, never a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Sockets, certificates or their files are not what they should be.
    #[error(transparent)]
    Front(#[from] watchkeeper_front::Error),
    /// Plain HTTP was asked for where others could read it: use a loopback address, or HTTPS.
    #[error(
        "plain HTTP carries tokens in the clear and is only served on loopback addresses, not on {address}"
    )]
    NotLoopback {
        /// The address.
        address: SocketAddr,
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
}
