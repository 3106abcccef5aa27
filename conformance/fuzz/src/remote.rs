//! A server on the other side of a socket.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube_client::Config;
use kube_client::client::ConfigExt;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use secrecy::ExposeSecret;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::{Answer, Broken, Request, Server};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(90);
/// Of a watch, how long nothing may come until it is left.
const SILENCE: Duration = Duration::from_millis(50);

/// How requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    One,
    /// HTTP/2.
    Two,
}

/// A server that a kubeconfig leads to, asked over one connection after the other, by its administrator.
pub struct Remote {
    tls: Arc<ClientConfig>,
    address: String,
    token: Option<String>,
    protocol: Protocol,
    sender: Mutex<Option<Sender>>,
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

impl Remote {
    /// The server of a kubeconfig.
    pub async fn new(kubeconfig: &Path, protocol: Protocol) -> Result<Self, Box<dyn std::error::Error>> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let token = kubeconfig.auth_infos.first().and_then(|user| user.auth_info.as_ref()?.token.clone());
        let token = token.map(|token| token.expose_secret().to_owned());
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let mut tls = config.rustls_client_config()?;
        tls.alpn_protocols = match protocol {
            Protocol::One => vec![b"http/1.1".to_vec()],
            Protocol::Two => vec![b"h2".to_vec()],
        };
        let host = config.cluster_url.host().unwrap_or("127.0.0.1");
        let address = format!("{host}:{}", config.cluster_url.port_u16().unwrap_or(443));
        Ok(Self { tls: Arc::new(tls), address, token, protocol, sender: Mutex::default() })
    }

    /// A new connection, as bytes.
    pub async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let socket = TcpStream::connect(&self.address).await?;
        socket.set_nodelay(true)?;
        let host = self.address.rsplit_once(':').map_or(self.address.as_str(), |(host, _)| host).to_owned();
        let name = ServerName::try_from(host).map_err(std::io::Error::other)?;
        TlsConnector::from(Arc::clone(&self.tls)).connect(name, socket).await
    }

    /// The header by which the administrator is known, if it is not the certificate.
    pub fn authorization(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Bearer {token}"))
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    async fn open(&self) -> Result<Sender, String> {
        let stream = TokioIo::new(self.connect().await.map_err(|error| error.to_string())?);
        match self.protocol {
            Protocol::One => {
                let (sender, connection) =
                    http1::handshake(stream).await.map_err(|error| error.to_string())?;
                tokio::spawn(connection);
                Ok(Sender::One(sender))
            }
            Protocol::Two => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), stream)
                    .await
                    .map_err(|error| error.to_string())?;
                tokio::spawn(connection);
                Ok(Sender::Two(sender))
            }
        }
    }

    fn built(&self, request: &Request) -> Option<http::Request<Full<Bytes>>> {
        let target = match self.protocol {
            Protocol::One => request.target.clone(),
            Protocol::Two => format!("https://{}{}", self.address, request.target),
        };
        let mut builder = http::Request::builder().method(request.method.as_str()).uri(target);
        if self.protocol == Protocol::One {
            builder = builder.header("host", &self.address);
        }
        for (name, value) in &request.headers {
            builder = builder.header(name, value.as_slice());
        }
        if let Some(authorization) = self.authorization() {
            builder = builder.header("authorization", authorization);
        }
        builder.body(Full::new(Bytes::from(request.body.clone()))).ok()
    }

    async fn ask(&self, request: &Request) -> Result<Answer, Broken> {
        let Some(whole) = self.built(request) else { return Ok(Answer::default()) };
        let dropped = |error: String| Broken::Dropped(error);
        let mut sender = self.sender.lock().await;
        let is_open = match &mut *sender {
            Some(Sender::One(sender)) => sender.ready().await.is_ok(),
            Some(Sender::Two(sender)) => sender.ready().await.is_ok(),
            None => false,
        };
        if !is_open {
            *sender = Some(self.open().await.map_err(dropped)?);
        }
        let response = match sender.as_mut() {
            Some(Sender::One(sender)) => sender.send_request(whole).await,
            Some(Sender::Two(sender)) => sender.send_request(whole).await,
            None => return Err(Broken::Dropped("there is none".into())),
        };
        // A connection may have ended by itself while nothing was under way; that is found out by sending.
        let (parts, mut body) = match response {
            Ok(response) => response.into_parts(),
            Err(error) => {
                *sender = None;
                return Err(dropped(format!("{error:?}")));
            }
        };
        let content_type =
            parts.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut answer =
            Answer { code: parts.status.as_u16(), content_type: content_type.to_owned(), body: Vec::new() };
        loop {
            let frame = match request.is_watch() {
                true => tokio::time::timeout(SILENCE, body.frame()).await.unwrap_or_default(),
                false => body.frame().await,
            };
            match frame {
                Some(Ok(frame)) => {
                    answer.body.extend_from_slice(frame.data_ref().map_or(&[], |data| data.as_ref()));
                }
                Some(Err(error)) => {
                    *sender = None;
                    return Err(dropped(format!("in the middle of the body: {error:?}")));
                }
                None => break,
            }
        }
        // A watch that is left goes on; over HTTP/1.1 nothing else can be asked then.
        if request.is_watch() && self.protocol == Protocol::One {
            *sender = None;
        }
        Ok(answer)
    }
}

impl Server for Remote {
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Answer, Broken>> {
        Box::pin(async move {
            match tokio::time::timeout(TIMEOUT, self.ask(request)).await {
                Ok(answer) => answer,
                Err(_) => {
                    *self.sender.lock().await = None;
                    Err(Broken::Silence(TIMEOUT))
                }
            }
        })
    }
}
