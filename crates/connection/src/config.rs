use std::fmt;
use std::time::Duration;

use http::HeaderMap;

use crate::ConnectError;
use crate::connector::CONNECT_TIMEOUT;
use crate::credentials::CredentialSettings;
use crate::proxy::Proxy;
use crate::server::Server;
use crate::tls::{Identity, Pem, TlsSettings, Trust};

/// The address of a cluster, the credentials, and the default namespace.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_connection::{Config, ConnectError};
///
/// let config = Config::new("http://127.0.0.1:8080")?.connect_timeout(Duration::from_secs(2));
/// assert_eq!(config.default_namespace(), "default");
/// # Ok::<(), ConnectError>(())
/// ```
#[derive(Clone)]
pub struct Config {
    pub(crate) server: Server,
    pub(crate) tls: TlsSettings,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) credentials: CredentialSettings,
    pub(crate) impersonation: HeaderMap,
    pub(crate) default_namespace: String,
    pub(crate) connect_timeout: Duration,
}

impl Config {
    /// A server without credentials: `http://127.0.0.1:8080`. If it speaks TLS, the authorities of the system decide whether it
    /// is believed.
    ///
    /// # Errors
    ///
    /// If it is not the URL of an HTTP server.
    pub fn new(url: &str) -> Result<Self, ConnectError> {
        Server::parse(url, true).map(Self::of).map_err(|error| ConnectError::new(error, "a URL"))
    }

    pub(crate) fn of(server: Server) -> Self {
        Self {
            server,
            tls: TlsSettings::default(),
            proxy: None,
            credentials: CredentialSettings::None,
            impersonation: HeaderMap::new(),
            default_namespace: "default".to_owned(),
            connect_timeout: CONNECT_TIMEOUT,
        }
    }

    /// Sets another address of the same cluster, such as that of a forwarded port.
    ///
    /// # Errors
    ///
    /// If it is not the URL of an HTTP server.
    pub fn at(self, url: &str) -> Result<Self, ConnectError> {
        let server = Server::parse(url, true).map_err(|error| ConnectError::new(error, "a URL"))?;
        Ok(Self { server, ..self })
    }

    /// Believes a server whose certificate these authorities, in PEM, have issued, instead of those of the system.
    #[must_use]
    pub fn trusting(mut self, authorities: Vec<u8>) -> Self {
        self.tls.trust = Trust::Authorities(Pem::Data(authorities));
        self
    }

    /// Believes any server, whatever certificate it has. For servers on this machine.
    #[must_use]
    pub fn unverified(mut self) -> Self {
        self.tls.trust = Trust::Everyone;
        self
    }

    /// Shows this certificate, in PEM with its key, to the server.
    #[must_use]
    pub fn showing(mut self, certificate: Vec<u8>, key: Vec<u8>) -> Self {
        self.tls.identity = Some(Identity { certificate: Pem::Data(certificate), key: Pem::Data(key) });
        self
    }

    /// The name that the certificate of the server has to have, if it is not that of the host in the URL.
    #[must_use]
    pub fn server_name(mut self, name: &str) -> Self {
        self.tls.server_name = Some(name.to_owned());
        self
    }

    /// Sets the timeout of connecting, TLS included. Default: 30 s.
    #[must_use]
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        Self { connect_timeout: timeout, ..self }
    }

    /// The URL of the server: `https://10.0.0.1:6443`.
    pub fn url(&self) -> String {
        self.server.to_string()
    }

    /// The namespace of the context, or of the pod; `default` if there is none.
    pub fn default_namespace(&self) -> &str {
        &self.default_namespace
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("url", &self.url())
            .field("credentials", &self.credentials)
            .field("default_namespace", &self.default_namespace)
            .finish_non_exhaustive()
    }
}
