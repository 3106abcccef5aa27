//! The cheapest honest client: hyper on one TLS connection, bytes in, bytes out. It runs on the cores that the server
//! needs too, so it parses nothing that it does not have to.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::Result;
use crate::access::Access;

/// What a client of ours is called in managed fields.
pub const NAME: &str = "bench";
/// As Go's transport has them, for a server that is slowed down by small windows is slow for Go's clients too.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

/// What is sent.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// What to do.
    pub method: &'a Method,
    /// Where, with the query.
    pub path: &'a str,
    /// The form of the answer.
    pub accept: &'a str,
    /// The form of the body.
    pub content_type: &'a str,
    /// What is sent along.
    pub body: &'a str,
}

impl<'a> Ask<'a> {
    /// Reads a path as JSON.
    pub fn get(path: &'a str) -> Self {
        let json = "application/json";
        Self { method: &Method::GET, path, accept: json, content_type: json, body: "" }
    }

    /// Posts JSON to a path.
    pub fn post(path: &'a str, body: &'a str) -> Self {
        Self { method: &Method::POST, body, ..Self::get(path) }
    }

    /// Changes what is at a path, in the way that the type of the body says.
    pub fn patch(path: &'a str, content_type: &'a str, body: &'a str) -> Self {
        Self { method: &Method::PATCH, content_type, body, ..Self::get(path) }
    }

    /// Deletes what is at a path.
    pub fn delete(path: &'a str) -> Self {
        Self { method: &Method::DELETE, ..Self::get(path) }
    }
}

/// One connection to a server, closed when it is dropped.
pub struct Connection {
    sender: Sender,
    access: Arc<Access>,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Connection {
    /// HTTP/2, as most clients speak it.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached.
    pub async fn http2(access: &Arc<Access>) -> Result<Self> {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
        let (sender, connection) = builder.handshake(connect(access, b"h2").await?).await?;
        // It ends when the sender is dropped; what goes wrong in it, the request that waits for it says.
        tokio::spawn(async { connection.await.ok() });
        Ok(Self { sender: Sender::Http2(sender), access: access.clone() })
    }

    /// HTTP/1.1, one request at a time.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached.
    pub async fn http1(access: &Arc<Access>) -> Result<Self> {
        let (sender, connection) = http1::handshake(connect(access, b"http/1.1").await?).await?;
        tokio::spawn(async { connection.await.ok() });
        Ok(Self { sender: Sender::Http1(sender), access: access.clone() })
    }

    /// One more handle to the same connection, for requests at the same time.
    ///
    /// # Errors
    ///
    /// If it is HTTP/1.1, which has one request at a time.
    pub fn share(&self) -> Result<Self> {
        match &self.sender {
            Sender::Http1(_) => Err("HTTP/1.1 has one request at a time".into()),
            Sender::Http2(sender) => {
                Ok(Self { sender: Sender::Http2(sender.clone()), access: self.access.clone() })
            }
        }
    }

    /// Whether the server ended it.
    pub fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => sender.is_closed(),
            Sender::Http2(sender) => sender.is_closed(),
        }
    }

    /// Sends a request and waits for the head of the answer.
    ///
    /// # Errors
    ///
    /// If the connection breaks.
    pub async fn send(&mut self, ask: Ask<'_>) -> Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(ask.method)
            .header(ACCEPT, ask.accept)
            .header(CONTENT_TYPE, ask.content_type)
            .header(USER_AGENT, NAME);
        if let Some(authorization) = &self.access.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let body = Full::new(Bytes::copy_from_slice(ask.body.as_bytes()));
        let address = self.access.address;
        Ok(match &mut self.sender {
            Sender::Http1(sender) => {
                let request = request.uri(ask.path).header(HOST, address.to_string());
                sender.send_request(request.body(body)?).await?
            }
            Sender::Http2(sender) => {
                let request = request.uri(format!("https://{address}{}", ask.path));
                sender.send_request(request.body(body)?).await?
            }
        })
    }

    /// Sends a request and reads the whole answer, whatever its status.
    ///
    /// # Errors
    ///
    /// If the connection breaks.
    pub async fn answer(&mut self, ask: Ask<'_>) -> Result<(StatusCode, Pieces)> {
        let answer = self.send(ask).await?;
        let (status, mut body) = (answer.status(), answer.into_body());
        let mut pieces = Pieces::default();
        while let Some(frame) = body.frame().await {
            pieces.0.extend(frame?.into_data());
        }
        Ok((status, pieces))
    }

    /// As [`answer`](Self::answer), for what should be done.
    ///
    /// # Errors
    ///
    /// If the connection breaks, or the server refuses.
    pub async fn call(&mut self, ask: Ask<'_>) -> Result<Pieces> {
        match self.answer(ask).await? {
            (status, pieces) if status.is_success() => Ok(pieces),
            (status, pieces) => Err(refusal(ask, status, &pieces)),
        }
    }

    /// Begins a watch.
    ///
    /// # Errors
    ///
    /// If the connection breaks, or the server refuses.
    pub async fn watch(&mut self, path: &str) -> Result<Lines> {
        let answer = self.send(Ask::get(path)).await?;
        match answer.status() {
            StatusCode::OK => Ok(Lines { body: answer.into_body(), seen: 0 }),
            status => Err(format!("GET {path}: {status}").into()),
        }
    }
}

/// What to say if the server refused.
pub fn refusal(ask: Ask<'_>, status: StatusCode, pieces: &Pieces) -> crate::Error {
    format!("{} {}: {status}: {}", ask.method, ask.path, String::from_utf8_lossy(&pieces.concat())).into()
}

async fn connect(access: &Access, protocol: &[u8]) -> Result<TokioIo<TlsStream<TcpStream>>> {
    Ok(TokioIo::new(access.tls(protocol).await?))
}

/// A body as it came, so that putting it together is not part of what is measured.
#[derive(Default)]
pub struct Pieces(Vec<Bytes>);

impl Pieces {
    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of it in one piece.
    pub fn concat(&self) -> Vec<u8> {
        self.0.concat()
    }
}

/// The events of a watch: one a line, counted and not read.
pub struct Lines {
    body: Incoming,
    seen: usize,
}

impl Lines {
    /// Waits until there were this many since the watch began.
    ///
    /// # Errors
    ///
    /// If the watch ends before.
    pub async fn reach(&mut self, count: usize) -> Result<()> {
        while self.seen < count {
            self.more().await?;
        }
        Ok(())
    }

    /// Waits for the next bytes, and gives how many lines ended in them: none, if they are the beginning of a long one.
    ///
    /// # Errors
    ///
    /// If the watch ends.
    pub async fn more(&mut self) -> Result<usize> {
        let frame = self.body.frame().await.ok_or("the server ended a watch")??;
        let more = frame.data_ref().map_or(0, |data| memchr::memchr_iter(b'\n', data).count());
        self.seen += more;
        Ok(more)
    }
}
