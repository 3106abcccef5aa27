use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use crate::endpoint::Endpoint;

/// How a [`Client`](crate::Client) finds etcd and what it allows itself.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_etcd::Client;
/// # fn example() -> Result<(), watchkeeper_etcd::Error> {
/// let client = Client::builder(["https://a:2379", "https://b:2379", "https://c:2379"])
///     .ca_file("/etc/etcd/ca.crt")
///     .identity_files("/etc/etcd/client.crt", "/etc/etcd/client.key")
///     .timeout(Duration::from_secs(3))
///     .build()?;
/// # Ok(()) }
/// ```
///
/// All files are read when a connection is made, or a token is asked for: what was renewed is used without a restart.
#[derive(Clone)]
pub struct ClientBuilder {
    pub(crate) endpoints: Vec<String>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    pub(crate) server_name: Option<String>,
    pub(crate) user: Option<(String, Password)>,
    pub(crate) timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) keep_alive: Duration,
    pub(crate) max_message_bytes: usize,
    pub(crate) require_leader: bool,
    /// Which endpoint answered last. All clients of one builder begin with it.
    pub(crate) preferred: Arc<AtomicUsize>,
}

#[derive(Clone)]
pub(crate) enum Password {
    Text(String),
    File(PathBuf),
}

impl ClientBuilder {
    pub(crate) fn new(endpoints: Vec<String>) -> Self {
        Self {
            endpoints,
            ca_file: None,
            identity: None,
            server_name: None,
            user: None,
            timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(2),
            keep_alive: Duration::from_secs(30),
            max_message_bytes: 16 << 20,
            require_leader: true,
            preferred: Arc::default(),
        }
    }

    /// Trusts the certificates in a PEM file, and no others. Default: those that the system trusts.
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// Shows this certificate, whose key is in the other file; both are PEM.
    #[must_use]
    pub fn identity_files(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((certificate.into(), key.into()));
        self
    }

    /// The name that the certificates of the members are for. Default: the host of the endpoint.
    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Logs in with a name and a password.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.user = Some((name.into(), Password::Text(password.into())));
        self
    }

    /// Logs in with a name, and a password that is in a file.
    #[must_use]
    pub fn password_file(mut self, name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        self.user = Some((name.into(), Password::File(path.into())));
        self
    }

    /// How long a call may take, connecting and trying other endpoints included. Default: 5 seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long to wait for one endpoint to take a connection before the next is tried. Default: 2 seconds.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long a connection in use may be silent before it is pinged. If there is no answer after a third of that, it is closed.
    /// Default: 30 seconds. etcd does not allow less than 5 unless it is told to.
    #[must_use]
    pub fn keep_alive(mut self, interval: Duration) -> Self {
        self.keep_alive = interval;
        self
    }

    /// How large a message may be. Default: 16 MiB.
    #[must_use]
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// Whether a member that sees no leader refuses requests and ends watches, so that another one is asked. Default: yes.
    #[must_use]
    pub fn require_leader(mut self, require: bool) -> Self {
        self.require_leader = require;
        self
    }
}

/// Shows what decides where requests go, and no secret.
impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoints: Vec<_> = self.endpoints.iter().map(|text| Endpoint::parse(text).ok()).collect();
        let user = self.user.as_ref().map(|(name, _)| name);
        f.debug_struct("ClientBuilder")
            .field("endpoints", &endpoints)
            .field("user", &user)
            .finish_non_exhaustive()
    }
}
