//! Where a server is and who we are to it, as a kubeconfig says.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use watchkeeper_go::base64;
use watchkeeper_schema::yaml;

use crate::Result;

/// How to reach a server.
#[derive(Clone)]
pub struct Access {
    /// Where it listens.
    pub address: SocketAddr,
    /// The value of the header, if a token says who we are; else a certificate does.
    pub authorization: Option<String>,
    /// Without protocols: each connection chooses its own.
    pub tls: Arc<ClientConfig>,
    /// The address that connections come from, if not the one that the system chooses.
    pub from: Option<IpAddr>,
    /// Servers that do the same, to which connections go in turn; if there are none, to `address`.
    pub turns: Option<Arc<Turns>>,
}

/// Servers that do the same.
pub struct Turns {
    servers: Vec<SocketAddr>,
    next: AtomicUsize,
}

impl Access {
    /// What the first cluster and the first user of a kubeconfig say. Knows servers at IP addresses over HTTPS, tokens and
    /// client certificates, all of them inline.
    ///
    /// # Errors
    ///
    /// If it says anything else.
    pub fn of(kubeconfig: &[u8]) -> Result<Self> {
        let config = yaml::decode(kubeconfig)?.value;
        let (cluster, user) = (&config["clusters"][0]["cluster"], &config["users"][0]["user"]);
        let server = cluster["server"].as_str().ok_or("the kubeconfig names no server")?;
        let host = server.strip_prefix("https://").ok_or("the server has to speak https")?;

        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem(cluster, "certificate-authority-data")?) {
            roots.add(certificate?)?;
        }
        let tls = ClientConfig::builder().with_root_certificates(roots);
        let token = user["token"].as_str();
        let tls = if token.is_some() {
            tls.with_no_client_auth()
        } else {
            let chain = pem(user, "client-certificate-data")?;
            let chain = CertificateDer::pem_slice_iter(&chain).collect::<std::result::Result<_, _>>()?;
            tls.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(&pem(user, "client-key-data")?)?)?
        };
        let authorization = token.map(|token| format!("Bearer {token}"));
        Ok(Self {
            address: host.trim_end_matches('/').parse()?,
            authorization,
            tls: Arc::new(tls),
            from: None,
            turns: None,
        })
    }

    /// The same, with connections to these servers in turn.
    #[must_use]
    pub fn in_turn(self, servers: Vec<SocketAddr>) -> Self {
        let turns = Turns { servers, next: AtomicUsize::new(0) };
        Self { turns: Some(Arc::new(turns)).filter(|turns| !turns.servers.is_empty()), ..self }
    }

    /// Where the next connection goes.
    fn next(&self) -> SocketAddr {
        self.turns.as_ref().map_or(self.address, |turns| {
            turns.servers[turns.next.fetch_add(1, Ordering::Relaxed) % turns.servers.len()]
        })
    }

    /// Opens a TCP connection.
    ///
    /// # Errors
    ///
    /// If the server does not accept it.
    pub async fn tcp(&self) -> Result<TcpStream> {
        let socket = match self.address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        if let Some(address) = self.from {
            socket.bind(SocketAddr::new(address, 0))?;
        }
        let stream = socket.connect(self.next()).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Opens a TLS connection for one protocol, such as `h2`.
    ///
    /// # Errors
    ///
    /// If the server does not accept it.
    pub async fn tls(&self, protocol: &[u8]) -> Result<TlsStream<TcpStream>> {
        let stream = self.tcp().await?;
        let mut config = (*self.tls).clone();
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::from(self.address.ip());
        Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
    }

    /// A kubeconfig for the same server and another user, who shows a token.
    ///
    /// # Errors
    ///
    /// If the first kubeconfig cannot be read.
    pub fn kubeconfig_of(kubeconfig: &[u8], token: &str) -> Result<String> {
        let mut config = yaml::decode(kubeconfig)?.value;
        config["users"][0]["user"] = serde_json::json!({ "token": token });
        // JSON is YAML.
        Ok(config.to_string())
    }
}

fn pem(value: &Value, field: &str) -> Result<Vec<u8>> {
    let text = value[field].as_str().ok_or_else(|| format!("the kubeconfig has no {field}"))?;
    Ok(base64::decode(text)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn refused(kubeconfig: &str) -> String {
        Access::of(kubeconfig.as_bytes()).err().unwrap().to_string()
    }

    #[test]
    fn a_token_becomes_a_header() {
        let access = Access::of(
            b"clusters: [{cluster: {server: 'https://127.0.0.1:6443', certificate-authority-data: ''}}]\n\
              users: [{user: {token: secret}}]\n",
        );
        let access = access.unwrap();
        assert_eq!(access.address, "127.0.0.1:6443".parse().unwrap());
        assert_eq!(access.authorization.as_deref(), Some("Bearer secret"));
    }

    #[test]
    fn another_user_of_the_same_server_shows_a_token() {
        let kubeconfig =
            b"clusters: [{cluster: {server: 'https://127.0.0.1:6443', certificate-authority-data: ''}}]\n\
              users: [{user: {client-certificate-data: ''}}]\n";
        let access = Access::of(Access::kubeconfig_of(kubeconfig, "other").unwrap().as_bytes()).unwrap();
        assert_eq!(access.authorization.as_deref(), Some("Bearer other"));
    }

    #[test]
    fn what_is_missing_is_said() {
        assert_eq!(refused("kind: Config\n"), "the kubeconfig names no server");
        assert_eq!(
            refused("clusters: [{cluster: {server: 'http://127.0.0.1:1'}}]\n"),
            "the server has to speak https"
        );
        let server =
            "clusters: [{cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: ''}}]\n";
        assert_eq!(refused(server), "the kubeconfig has no client-certificate-data");
    }
}
