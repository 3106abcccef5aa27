//! An HTTP server on a real socket that does exactly what a test tells it, including what no decent server does.
//!
//! Each request is handed to a closure with a [`Responder`], which writes raw bytes: it can stop in the middle of a
//! chunk, break the connection, reset it, or say nothing. One request per connection.

#![allow(dead_code, reason = "not every test uses everything")]

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use watchkeeper_connection::{Config, Connection};

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// How many requests came before it.
    pub(crate) number: usize,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
}

impl Request {
    /// A parameter of the query, or "" if it is not there.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.param("watch") == "1"
    }

    pub(crate) fn is_streamed_list(&self) -> bool {
        self.param("sendInitialEvents") == "true"
    }

    /// `list`, `watch` or `stream`, with the version asked for if there is one: `watch@7`.
    pub(crate) fn verb(&self) -> String {
        let verb = match (self.is_watch(), self.is_streamed_list()) {
            (_, true) => "stream",
            (true, _) => "watch",
            _ => "list",
        };
        match self.param("resourceVersion") {
            "" => verb.into(),
            version => format!("{verb}@{version}"),
        }
    }
}

/// The server. Stops, with everything it is answering, when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Starts a server that answers each request with `handler`.
    pub(crate) async fn start<H, F>(handler: H) -> Self
    where
        H: Fn(Request, Responder) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let handler = Arc::new(handler);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, handler) = (seen.clone(), handler.clone());
                connections.spawn(async move {
                    stream.set_nodelay(true).unwrap();
                    let Some(mut request) = read_request(&mut stream).await else {
                        return;
                    };
                    {
                        let mut seen = seen.lock().unwrap();
                        request.number = seen.len();
                        seen.push(request.clone());
                    }
                    handler(request, Responder { stream, started: false }).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { address, requests, _tasks: tasks }
    }

    /// A connection to this server.
    pub(crate) fn connection(&self) -> Connection {
        connection_to(self.address)
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The [verbs](Request::verb) of the requests so far.
    pub(crate) fn verbs(&self) -> Vec<String> {
        self.requests().iter().map(Request::verb).collect()
    }
}

pub(crate) fn connection_to(address: SocketAddr) -> Connection {
    Connection::new(Config::new(&format!("http://{address}")).unwrap()).unwrap()
}

/// An address that refuses connections.
pub(crate) async fn refusing_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// The way to answer one request. Errors are ignored: the client may go away whenever it likes.
pub(crate) struct Responder {
    stream: TcpStream,
    started: bool,
}

impl Responder {
    /// A whole answer with its length.
    pub(crate) async fn answer(mut self, code: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let length = body.len().to_string();
        let mut head = head(code, headers);
        head.push_str(&format!("content-length: {length}\r\n\r\n"));
        self.raw(head).await;
        self.raw(body).await;
    }

    /// A whole JSON answer.
    pub(crate) async fn json(self, code: u16, body: impl AsRef<[u8]>) {
        self.answer(code, &[("content-type", "application/json")], body).await;
    }

    /// The headers of an answer in chunks. Sent by the first chunk if not before.
    pub(crate) async fn begin(&mut self, code: u16, headers: &[(&str, &str)]) {
        self.started = true;
        let mut head = head(code, headers);
        head.push_str("transfer-encoding: chunked\r\n\r\n");
        self.raw(head).await;
    }

    /// One chunk, as JSON with status 200 if nothing was begun.
    pub(crate) async fn chunk(&mut self, bytes: impl AsRef<[u8]>) {
        if !self.started {
            self.begin(200, &[("content-type", "application/json")]).await;
        }
        let bytes = bytes.as_ref();
        if !bytes.is_empty() {
            let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
            framed.extend_from_slice(bytes);
            framed.extend_from_slice(b"\r\n");
            self.raw(framed).await;
        }
    }

    /// One line as one chunk.
    pub(crate) async fn line(&mut self, line: impl AsRef<[u8]>) {
        let mut bytes = line.as_ref().to_vec();
        bytes.push(b'\n');
        self.chunk(bytes).await;
    }

    /// Ends an answer in chunks as it should be.
    pub(crate) async fn end(mut self) {
        self.chunk("").await;
        self.raw("0\r\n\r\n").await;
    }

    /// Closes the connection where it stands.
    pub(crate) async fn cut(mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Promises a chunk and closes the connection in the middle of it.
    pub(crate) async fn cut_within(mut self, bytes: &[u8]) {
        self.chunk("").await;
        self.raw(format!("{:x}\r\n", bytes.len() + 100)).await;
        self.raw(bytes).await;
        self.cut().await;
    }

    /// Breaks the connection with a reset.
    pub(crate) async fn reset(self) {
        let _ = self.stream.set_zero_linger();
    }

    /// Says nothing more until the client goes away.
    pub(crate) async fn hang(mut self) {
        self.closed().await;
    }

    /// Waits until the client has closed the connection.
    pub(crate) async fn closed(&mut self) {
        let mut byte = [0];
        while matches!(self.stream.read(&mut byte).await, Ok(1)) {}
    }

    async fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }
}

fn head(code: u16, headers: &[(&str, &str)]) -> String {
    let mut head = format!("HTTP/1.1 {code} .\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}

async fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    let text = String::from_utf8(bytes).ok()?;
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let method = first.next()?.to_owned();
    let uri = first.next()?;
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    Some(Request {
        number: 0,
        method,
        path: decode(path),
        query: pairs.map(|(name, value)| (decode(name), decode(value))).collect(),
        headers: lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect(),
    })
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits: String = rest.by_ref().take(2).map(char::from).collect();
                u8::from_str_radix(&digits, 16).unwrap()
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).unwrap()
}
