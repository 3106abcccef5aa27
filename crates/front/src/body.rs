use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};

/// The body of a request or a response: all of its bytes at once, or a stream of them.
///
/// A body is lazy. That of a request comes off the wire only as fast as it is read, and one that nobody reads holds no
/// memory. That of a response is asked for its next piece only when the connection can take it; every piece leaves for
/// the client as soon as the body has nothing more to give at the moment, the headers before the first of them.
pub struct Body(Content);

enum Content {
    Whole(Bytes),
    Stream(UnsyncBoxBody<Bytes, BodyError>),
}

/// The error of a body that could not be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The body is larger than the reader allows: for a client, HTTP 413.
    #[error("the body is larger than {limit} bytes")]
    TooLarge {
        /// The number of bytes that are allowed.
        limit: usize,
    },
    /// The peer stopped sending in the middle, for longer than anybody would wait.
    #[error("the rest of the body did not come in time")]
    Stalled,
    /// What came is no body: chunks that are none, or more or less than was announced. Whoever sent it is at fault.
    #[error("the body is malformed: {0}")]
    Malformed(String),
    /// The connection broke, or the producer of the body gave up.
    #[error("the body broke off: {0}")]
    Interrupted(String),
}

impl Body {
    /// An empty body.
    pub fn empty() -> Self {
        Self(Content::Whole(Bytes::new()))
    }

    /// A body of these bytes.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Content::Whole(bytes.into()))
    }

    /// A body of the pieces of this stream, which are sent as they come. It ends without an error when the stream ends.
    pub fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::wrap(StreamBody::new(pieces.map(|piece| Ok::<_, BodyError>(Frame::data(piece)))))
    }

    /// Wraps another body, including its trailers. HTTP/1.1 sends trailers only if the head announces them. Its errors stay as they are if they
    /// are [`BodyError`]s; others are [interruptions](BodyError::Interrupted).
    pub fn wrap<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: fmt::Display,
    {
        let body = body.map_err(|error| match (&error as &dyn Any).downcast_ref::<BodyError>() {
            Some(known) => known.clone(),
            None => BodyError::Interrupted(error.to_string()),
        });
        Self(Content::Stream(UnsyncBoxBody::new(body)))
    }

    /// Adds a value that is dropped when the stream has been sent or given up; at once if the body is no stream.
    pub fn with(self, companion: impl Send + Unpin + 'static) -> Self {
        match self.0 {
            Content::Whole(_) => self,
            Content::Stream(body) => Self::boxed(Accompanied { body, _companion: companion }),
        }
    }

    /// A body that says by itself what went wrong with it.
    pub(crate) fn boxed(
        body: impl http_body::Body<Data = Bytes, Error = BodyError> + Send + 'static,
    ) -> Self {
        Self(Content::Stream(UnsyncBoxBody::new(body)))
    }

    /// All of the bytes, if there are no more than `limit`. If there are more, that is said as soon as it is known, from
    /// the length that the peer announced or after `limit` bytes, and no more than that is held.
    pub async fn read(self, limit: usize) -> Result<Bytes, BodyError> {
        let mut body = match self.0 {
            Content::Whole(bytes) if bytes.len() > limit => return Err(BodyError::TooLarge { limit }),
            Content::Whole(bytes) => return Ok(bytes),
            Content::Stream(body) => body,
        };
        let announced = http_body::Body::size_hint(&body).lower();
        if announced > limit as u64 {
            return Err(BodyError::TooLarge { limit });
        }
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            if first.len() + all.len() + data.len() > limit {
                return Err(BodyError::TooLarge { limit });
            }
            if first.is_empty() && all.is_empty() {
                first = data; // mostly the only one, and then never copied
                continue;
            }
            if !first.is_empty() {
                all.reserve((announced as usize).max(first.len() + data.len()));
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
        Ok(if all.is_empty() { first } else { all.freeze() })
    }
}

/// A body, and what is dropped with it.
pub(crate) struct Accompanied<B, T> {
    pub(crate) body: B,
    pub(crate) _companion: T,
}

impl<B, T: Unpin> http_body::Body for Accompanied<B, T>
where
    B: http_body::Body<Data = Bytes, Error = BodyError> + Unpin,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self::whole(bytes)
    }
}

/// Says what kind of body it is, never what is in it.
impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Content::Whole(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            Content::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Content::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Content::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Content::Stream(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Whole(bytes) => bytes.is_empty(),
            Content::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(body) => body.size_hint(),
        }
    }
}
