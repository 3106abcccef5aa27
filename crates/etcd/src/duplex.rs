//! A call with any number of messages in both directions.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::mpsc;

use crate::connection::{Connection, Outgoing, reason};
use crate::error::Error;
use crate::grpc::{self, Frames};
use crate::message::Encode;
use crate::session::{Session, accept};

/// So many messages may wait to be sent.
const WAITING: usize = 64;

/// An open call. Ends when it is dropped.
pub(crate) struct Duplex {
    outgoing: mpsc::Sender<Bytes>,
    state: State,
    frames: Frames,
    /// Stays open for as long as this is used.
    connection: Arc<Connection>,
    session: Session,
    token: Option<HeaderValue>,
}

enum State {
    /// etcd sends the head of its answer together with the first message.
    Opening(BoxFuture<'static, Result<Response<Incoming>, Error>>),
    Open(Incoming),
    Over(Error),
}

impl Duplex {
    pub(crate) async fn open(session: &Session, path: &'static str) -> Result<Self, Error> {
        let (connection, metadata) = session.begin().await?;
        let token = metadata.token.clone();
        let (outgoing, messages) = mpsc::channel(WAITING);
        let opening = connection.send(path, Outgoing::Many(messages), metadata);
        let state = State::Opening(Box::pin(opening));
        let frames = Frames::new(session.settings().max_message_bytes);
        Ok(Self { outgoing, state, frames, connection, session: session.clone(), token })
    }

    /// The token it was opened with is not valid any more.
    pub(crate) async fn forget_token(&mut self) {
        self.session.forget_token(self.token.as_ref()).await;
    }

    /// Ends the call, and closes the connection, on which nobody answers. Other calls on it end, too.
    pub(crate) async fn give_up(&mut self) {
        self.state = State::Over(Error::Unavailable(format!("{}: nobody answers", self.connection.endpoint)));
        self.outgoing = mpsc::channel(1).0;
        self.session.forget(&self.connection).await;
        self.connection.close();
    }

    /// Sends a message. It leaves while [`next`](Self::next) is awaited.
    pub(crate) async fn send(&mut self, message: &impl Encode) -> Result<(), Error> {
        let frame = grpc::frame(message)?;
        let sent = self.outgoing.send(frame).await;
        sent.map_err(|_| match &self.state {
            State::Over(error) => error.clone(),
            _ => Error::Unavailable(format!("{}: the stream is over", self.connection.endpoint)),
        })
    }

    /// The next message. Cancel-safe. After an error there is only the same error.
    pub(crate) async fn next(&mut self) -> Result<Bytes, Error> {
        match self.step().await {
            Ok(message) => Ok(message),
            Err(error) => {
                self.state = State::Over(error.clone());
                self.outgoing = mpsc::channel(1).0;
                if matches!(error, Error::Unavailable(_) | Error::Unknown(_)) {
                    self.session.forget(&self.connection).await;
                }
                Err(error)
            }
        }
    }

    async fn step(&mut self) -> Result<Bytes, Error> {
        loop {
            if let Some(message) = self.frames.next()? {
                return Ok(message);
            }
            match &mut self.state {
                State::Over(error) => return Err(error.clone()),
                State::Opening(opening) => {
                    let (head, body) = opening.await.map_err(lost)?.into_parts();
                    accept(&head).map_err(lost)?;
                    self.state = State::Open(body);
                }
                State::Open(body) => match body.frame().await {
                    None => return Err(Error::Unavailable("the stream is cut off".into())),
                    Some(Err(error)) => return Err(Error::Unavailable(reason(&error))),
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(data) => self.frames.push(&data),
                        Err(frame) => {
                            if let Some(status) = frame.trailers_ref().and_then(grpc::status) {
                                status.map_err(lost)?;
                                return Err(Error::Unavailable("etcd has closed the stream".into()));
                            }
                        }
                    },
                },
            }
        }
    }
}

/// A stream changes nothing, so that nothing is unknown about it: it is over.
fn lost(error: Error) -> Error {
    match error {
        Error::Unknown(why) => Error::Unavailable(why),
        error => error,
    }
}
