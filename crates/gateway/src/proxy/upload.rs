//! The body of a request, on its way to a backend.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::Instant;
use watchkeeper_front::{Body, BodyError};

use super::hop;

/// How a body ended. It is known before the server can fail because of it.
#[derive(Clone, Default)]
pub(crate) struct UploadEnd(Arc<OnceLock<Result<Instant, BodyError>>>);

impl UploadEnd {
    /// What the client is to blame for.
    pub(crate) fn fault(&self) -> Option<&BodyError> {
        self.0.get()?.as_ref().err()
    }

    /// Since when all of it is there.
    pub(crate) fn complete_since(&self) -> Option<Instant> {
        self.0.get()?.as_ref().ok().copied()
    }

    fn note(&self, end: Result<Instant, BodyError>) {
        // The first end is the end.
        let _ = self.0.set(end);
    }
}

/// The body of a request that is sent on as it comes: as much of it as is allowed, and trailers that say nothing that only a head may say.
/// However it ends, that is noted before it is told.
pub(crate) struct Upload {
    body: Body,
    /// How many bytes may come, and how many more.
    limit: u64,
    left: u64,
    end: UploadEnd,
}

impl Upload {
    /// A body, with a limit if there is one.
    pub(crate) fn new(body: Body, limit: Option<u64>, end: UploadEnd) -> Self {
        let limit = limit.unwrap_or(u64::MAX);
        Self { body, limit, left: limit, end }
    }

    fn allowed(&mut self, mut frame: Frame<Bytes>) -> Result<Frame<Bytes>, BodyError> {
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        let too_large = || BodyError::TooLarge { limit: usize::try_from(self.limit).unwrap_or(usize::MAX) };
        self.left = self.left.checked_sub(length).ok_or_else(too_large)?;
        if let Some(trailers) = frame.trailers_mut() {
            hop::remove_from_trailers(trailers);
        }
        Ok(frame)
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        let frame = frame.map(|frame| frame.and_then(|frame| self.allowed(frame)));
        match &frame {
            Some(Err(error)) => self.end.note(Err(error.clone())),
            // Nobody asks for more than what is known to be all.
            Some(Ok(frame)) if !frame.is_trailers() && !self.body.is_end_stream() => {}
            Some(Ok(_)) | None => self.end.note(Ok(Instant::now())),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;

    use super::*;

    /// What is read of these frames within a limit of ten bytes, and how they ended.
    async fn read(frames: Vec<Result<Frame<Bytes>, BodyError>>) -> (Result<Bytes, BodyError>, UploadEnd) {
        let end = UploadEnd::default();
        let body = Body::wrap(StreamBody::new(stream::iter(frames)));
        let upload = Upload::new(body, Some(10), end.clone());
        (Body::wrap(upload).read(100).await, end)
    }

    #[tokio::test]
    async fn how_a_body_ended_is_noted() {
        let data = || Ok(Frame::data(Bytes::from_static(b"hello")));
        let (all, end) = read(vec![data(), data()]).await;
        assert_eq!((all.unwrap().len(), end.complete_since().is_some(), end.fault()), (10, true, None));
        let too_large = BodyError::TooLarge { limit: 10 };
        let malformed = BodyError::Malformed("a chunk".to_owned());
        let interrupted = BodyError::Interrupted("it".to_owned());
        for (last, fault) in [
            (data(), too_large),
            (Err(malformed.clone()), malformed),
            (Err(interrupted.clone()), interrupted),
            (Err(BodyError::Stalled), BodyError::Stalled),
        ] {
            let (all, end) = read(vec![data(), data(), last]).await;
            assert_eq!(
                (all, end.complete_since().is_some(), end.fault()),
                (Err(fault.clone()), false, Some(&fault))
            );
        }
        let begun = UploadEnd::default();
        assert!(begun.complete_since().is_none() && begun.fault().is_none());
    }

    #[tokio::test]
    async fn a_body_whose_length_is_known_is_complete_with_its_last_byte() {
        use http_body_util::BodyExt as _;

        let end = UploadEnd::default();
        let mut upload = Upload::new(Body::whole("hello"), None, end.clone());
        assert!(end.complete_since().is_none());
        upload.frame().await.unwrap().unwrap();
        assert!(end.complete_since().is_some());
    }
}
