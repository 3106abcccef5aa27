//! TLS, with the certificates as they are in their files now.

use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::endpoint::Endpoint;
use crate::settings::ClientBuilder;

/// Agrees on TLS and HTTP/2. The error says why not.
pub(crate) async fn connect(
    settings: &ClientBuilder,
    endpoint: &Endpoint,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, String> {
    let name = settings.server_name.clone().unwrap_or_else(|| endpoint.host.clone());
    let name = ServerName::try_from(name.clone()).map_err(|_| format!("{name:?} is no name of a server"))?;
    let connector = TlsConnector::from(Arc::new(config(settings).await?));
    let stream = connector.connect(name, stream).await.map_err(|error| format!("TLS: {error}"))?;
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => Ok(stream),
        _ => Err("TLS: it does not speak HTTP/2".into()),
    }
}

async fn config(settings: &ClientBuilder) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots(settings.ca_file.as_deref()).await?);
    let mut config = match &settings.identity {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate).await?;
            let bad = |error: &dyn std::fmt::Display| format!("the key in {}: {error}", key.display());
            let secret = tokio::fs::read(key).await.map_err(|error| bad(&error))?;
            let secret = PrivateKeyDer::from_pem_slice(&secret).map_err(|_| bad(&"there is none"))?;
            config.with_client_auth_cert(chain, secret).map_err(|error| bad(&error))?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

async fn roots(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match file {
        None => {
            let native = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
            roots.add_parsable_certificates(native.map_err(|error| error.to_string())?.certs);
            if roots.is_empty() {
                return Err("the system trusts no certificates: set ca_file".into());
            }
        }
        Some(path) => {
            for certificate in certificates(path).await? {
                let added = roots.add(certificate);
                added.map_err(|error| format!("the certificates in {}: {error}", path.display()))?;
            }
        }
    }
    Ok(roots)
}

async fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bad = |error: &dyn std::fmt::Display| format!("the certificates in {}: {error}", path.display());
    let pem = tokio::fs::read(path).await.map_err(|error| bad(&error))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = certificates.map_err(|error| bad(&error))?;
    if certificates.is_empty() {
        return Err(bad(&"there are none"));
    }
    Ok(certificates)
}
