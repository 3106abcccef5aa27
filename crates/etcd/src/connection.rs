//! One HTTP/2 connection to one member.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::settings::ClientBuilder;
use crate::tls;

/// Of a connection's stream and of a call's, so many bytes may be on the way unread.
const WINDOW: u32 = 4 << 20;

/// An open connection. Closes when it is dropped.
pub(crate) struct Connection {
    sender: SendRequest<Outgoing>,
    pub(crate) endpoint: Endpoint,
    tasks: Tasks,
}

impl Connection {
    /// Connects; an error says why not, with the endpoint.
    pub(crate) async fn open(settings: &ClientBuilder, endpoint: &Endpoint) -> Result<Self, String> {
        let opened = tokio::time::timeout(settings.connect_timeout, Self::connect(settings, endpoint)).await;
        let why = match opened {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(why)) => why,
            Err(_) => format!("no connection after {:?}", settings.connect_timeout),
        };
        Err(format!("{endpoint}: {why}"))
    }

    async fn connect(settings: &ClientBuilder, endpoint: &Endpoint) -> Result<Self, String> {
        let address = (endpoint.host.as_str(), endpoint.port);
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        if endpoint.tls {
            let stream = tls::connect(settings, endpoint, stream).await?;
            Self::over(settings, endpoint, stream).await
        } else {
            Self::over(settings, endpoint, stream).await
        }
    }

    async fn over<S>(settings: &ClientBuilder, endpoint: &Endpoint, stream: S) -> Result<Self, String>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let tasks = Tasks::default();
        let (sender, connection) = http2::Builder::new(tasks.clone())
            .timer(TokioTimer::new())
            // etcd closes connections that are pinged while nobody waits for anything.
            .keep_alive_while_idle(false)
            .keep_alive_interval(settings.keep_alive)
            .keep_alive_timeout(settings.keep_alive / 3)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW * 2)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        // Whoever uses the connection is told how it ended.
        tasks.spawn(async move { drop(connection.await) });
        Ok(Self { sender, endpoint: endpoint.clone(), tasks })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Closes it under those who use it: calls that were sent are [unknown](Error::Unknown).
    pub(crate) fn close(&self) {
        self.tasks.end();
    }

    /// Sends a call. An error that is `Unavailable` says that it was not sent.
    pub(crate) fn send(
        &self,
        path: &'static str,
        body: Outgoing,
        metadata: Metadata,
    ) -> impl Future<Output = Result<Response<Incoming>, Error>> + Send + 'static {
        let mut sender = self.sender.clone();
        let (scheme, authority) =
            (if self.endpoint.tls { "https" } else { "http" }, &self.endpoint.authority);
        let request = Request::post(format!("{scheme}://{authority}{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("user-agent", "watchkeeper");
        let request = metadata.add(request).body(body);
        let endpoint = self.endpoint.to_string();
        async move {
            let request = request.map_err(|error| Error::Settings(error.to_string()))?;
            sender.try_send_request(request).await.map_err(|mut failed| {
                let why = format!("{endpoint}: {}", reason(failed.error()));
                match failed.take_message() {
                    Some(_) => Error::Unavailable(why),
                    None => Error::Unknown(why),
                }
            })
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

/// What goes with a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) token: Option<HeaderValue>,
    pub(crate) require_leader: bool,
    /// How long the member may take, in milliseconds.
    pub(crate) timeout: Option<u128>,
}

impl Metadata {
    fn add(self, mut request: http::request::Builder) -> http::request::Builder {
        if let Some(token) = self.token {
            request = request.header("token", token);
        }
        if self.require_leader {
            request = request.header("hasleader", "true");
        }
        if let Some(timeout) = self.timeout {
            // Eight digits are allowed, which is a day.
            request = request.header("grpc-timeout", format!("{}m", timeout.clamp(1, 99_999_999)));
        }
        request
    }
}

/// The messages of a call: one, or those that are still to come.
pub(crate) enum Outgoing {
    One(Option<Bytes>),
    Many(mpsc::Receiver<Bytes>),
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut *self {
            Self::One(message) => Poll::Ready(message.take().map(|message| Ok(Frame::data(message)))),
            Self::Many(messages) => {
                messages.poll_recv(context).map(|message| message.map(|message| Ok(Frame::data(message))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::One(None))
    }
}

/// The tasks of a connection: they end with it.
#[derive(Clone, Default)]
struct Tasks {
    running: Arc<Mutex<VecDeque<AbortHandle>>>,
}

impl Tasks {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task = tokio::spawn(task).abort_handle();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|task| !task.is_finished());
        running.push_back(task);
    }

    fn end(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.drain(..).for_each(|task| task.abort());
    }
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}

/// What is at the bottom of an error: what is above says only that something failed.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    let mut reason = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}
