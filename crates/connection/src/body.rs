use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;

use crate::Error;
use crate::pool::Lease;

/// The body of an answer, read frame by frame as it comes off the wire.
///
/// When it has been read to its end, its TCP connection is free for the next request. Dropping it before closes that
/// connection.
pub struct Body(Content);

enum Content {
    Whole(Option<Bytes>),
    Incoming { incoming: Incoming, lease: Option<Lease> },
    Wrapped(Pin<Box<Wrapped>>),
}

type Wrapped = dyn http_body::Body<Data = Bytes, Error = Box<dyn StdError + Send + Sync>> + Send;

impl Body {
    /// A body without bytes.
    pub fn empty() -> Self {
        Self(Content::Whole(None))
    }

    /// Any other body, for a [`Transport`](crate::Transport) whose answers come another way.
    pub fn wrap<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        Self(Content::Wrapped(Box::pin(http_body_util::BodyExt::map_err(body, Into::into))))
    }

    /// What comes over a connection that is given back when all of it has come.
    pub(crate) fn incoming(incoming: Incoming, lease: Lease) -> Self {
        let mut body = Self(Content::Incoming { incoming, lease: Some(lease) });
        body.give_back_at_end();
        body
    }

    fn give_back_at_end(&mut self) {
        if let Content::Incoming { incoming, lease } = &mut self.0
            && http_body::Body::is_end_stream(incoming)
            && let Some(lease) = lease.take()
        {
            lease.give_back();
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self(Content::Whole((!bytes.is_empty()).then_some(bytes)))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = match &mut self.0 {
            Content::Whole(bytes) => return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Wrapped(body) => {
                let frame = ready!(body.as_mut().poll_frame(cx));
                return Poll::Ready(frame.map(|frame| frame.map_err(Error::Broken)));
            }
            Content::Incoming { incoming, lease } => {
                let frame = ready!(Pin::new(incoming).poll_frame(cx));
                match &frame {
                    None => {
                        if let Some(lease) = lease.take() {
                            lease.give_back();
                        }
                    }
                    Some(Err(_)) => drop(lease.take()),
                    Some(Ok(_)) => {}
                }
                frame.map(|frame| frame.map_err(Error::broken))
            }
        };
        self.give_back_at_end();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Whole(bytes) => bytes.is_none(),
            Content::Incoming { incoming, .. } => incoming.is_end_stream(),
            Content::Wrapped(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Incoming { incoming, .. } => incoming.size_hint(),
            Content::Wrapped(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}
