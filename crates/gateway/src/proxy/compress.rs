//! Responses that are compressed on their way.

use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression as Level;
use flate2::write::GzEncoder;
use http::HeaderMap;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
    HeaderValue, VARY,
};
use http::response::Parts;
use http_body::Frame;
use watchkeeper_front::BodyError;

use super::relay::Relay;
use crate::table::Compression;

/// Fast, and small enough.
const LEVEL: u32 = 4;

/// Whether a client takes gzip.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        name.trim().eq_ignore_ascii_case("gzip")
            && !["q=0", "q=0.0", "q=0.00", "q=0.000"].contains(&weight.trim())
    })
}

/// Whether a response is to be compressed; if so, its head says that it is.
pub(super) fn wants(rules: &Compression, head: &mut Parts) -> bool {
    let headers = &mut head.headers;
    let text = |value: Option<&HeaderValue>| {
        value.and_then(|value| value.to_str().ok()).map(str::to_ascii_lowercase)
    };
    let kind = text(headers.get(CONTENT_TYPE)).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let is_listed = rules.types.iter().any(|listed| match listed.ends_with('/') {
        true => kind.starts_with(&**listed),
        false => kind == &**listed,
    });
    let length = text(headers.get(CONTENT_LENGTH)).and_then(|text| text.parse::<u64>().ok());
    let untouchable =
        text(headers.get(CACHE_CONTROL)).is_some_and(|control| control.contains("no-transform"));
    if !is_listed
        || kind == "text/event-stream"
        || kind.starts_with("application/grpc")
        || untouchable
        || headers.contains_key(CONTENT_ENCODING)
        || head.status == http::StatusCode::PARTIAL_CONTENT
        || length.is_some_and(|length| length < rules.min_bytes)
    {
        return false;
    }
    headers.remove(CONTENT_LENGTH);
    headers.remove(ACCEPT_RANGES);
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    // Another form of the same: equal in meaning, not in bytes.
    if let Some(etag) = text(headers.get(ETAG)).filter(|etag| !etag.starts_with("w/"))
        && let Ok(weak) = HeaderValue::from_str(&format!("W/{etag}"))
    {
        headers.insert(ETAG, weak);
    }
    true
}

/// A body that is compressed as it comes. What came at once leaves at once.
pub(super) struct Gzip {
    relay: Relay,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Gzip {
    pub(super) fn new(relay: Relay) -> Self {
        Self { relay, encoder: Some(GzEncoder::new(Vec::new(), Level::new(LEVEL))) }
    }

    /// Compresses a piece, so that all of it can be read.
    fn compressed(&mut self, data: &[u8]) -> std::io::Result<Bytes> {
        let Some(encoder) = &mut self.encoder else { return Ok(Bytes::new()) };
        encoder.write_all(data)?;
        encoder.flush()?;
        Ok(std::mem::take(encoder.get_mut()).into())
    }
}

impl http_body::Body for Gzip {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            let frame = std::task::ready!(Pin::new(&mut self.relay).poll_frame(cx));
            let failed = |error: std::io::Error| BodyError::Interrupted(error.to_string());
            return Poll::Ready(match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if data.is_empty() => continue,
                    Ok(data) => Some(self.compressed(&data).map(Frame::data).map_err(failed)),
                    // Trailers are for those who know the bytes as they were.
                    Err(_) => continue,
                },
                Some(Err(error)) => Some(Err(error)),
                None => self
                    .encoder
                    .take()
                    .map(|encoder| encoder.finish().map(|rest| Frame::data(rest.into())).map_err(failed)),
            });
        }
    }
}
