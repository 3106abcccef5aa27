use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;

use crate::connector::CONNECT_TIMEOUT;
use crate::link::Route;
use crate::server::Server;
use crate::tls::{Pem, Tls, TlsSettings, Trust};
use crate::{Body, Error};

/// Sends requests to HTTP servers, wherever their URLs say, as a [`Connection`](crate::Connection) does to a cluster.
///
/// A handle, cheap to clone; clones share their TCP connections.
///
/// ```no_run
/// use bytes::Bytes;
/// use http::Request;
/// use http_body_util::BodyExt;
/// use watchkeeper_connection::HttpClient;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let client = HttpClient::new(None)?;
/// let answer = client.send(Request::get("https://example.com/items.json").body(Bytes::new())?).await?;
/// if answer.status().is_success() {
///     println!("{} bytes", answer.into_body().collect().await?.to_bytes().len());
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct HttpClient {
    tls: Arc<Tls>,
    routes: Arc<Mutex<HashMap<Origin, Arc<Route>>>>,
}

/// Scheme, host and port.
type Origin = (bool, String, u16);

impl HttpClient {
    /// Believes servers whose certificates the authorities in a PEM file have issued; without a file, those of the system.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or holds no certificates.
    pub fn new(authorities: Option<PathBuf>) -> Result<Self, String> {
        let trust = authorities.map_or(Trust::System, |file| Trust::Authorities(Pem::File(file)));
        let tls = Tls::new(TlsSettings { trust, ..TlsSettings::default() })?;
        Ok(Self { tls: Arc::new(tls), routes: Arc::default() })
    }

    /// Sends a request to where its URI says, and waits for the head of the answer.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, Error> {
        let Some(server) = Server::of(request.uri()).map(Server::without_path) else {
            return Err(Error::Malformed("expected http:// or https:// and a host".to_owned()));
        };
        let route = {
            let mut routes = self.routes.lock();
            let origin = (server.is_tls, server.host.clone(), server.port);
            Arc::clone(routes.entry(origin).or_insert_with(|| {
                Arc::new(Route {
                    tls: server.is_tls.then(|| Arc::clone(&self.tls)),
                    server,
                    proxy: None,
                    connect_timeout: CONNECT_TIMEOUT,
                    pool: Arc::default(),
                })
            }))
        };
        route.send(request).await
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpClient")
    }
}
