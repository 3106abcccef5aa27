//! Answers made smaller for clients that ask for it, as Go clients do without being told to.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures_util::stream;
use http::HeaderMap;
use http::header::ACCEPT_ENCODING;
use http_body_util::BodyExt;

use crate::front::Body;

/// Answers of up to this many bytes are sent as they are, as kube-apiserver does.
pub(crate) const THRESHOLD: usize = 128 << 10;

/// Whether a client takes compressed answers. Only the first header counts, and weights are not looked at, as in
/// kube-apiserver.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let asked = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    asked.split(',').any(|token| token.trim() == "gzip")
}

/// How much is expanded at a time.
const PIECE: usize = 64 << 10;

/// All of these bytes, compressed.
pub(crate) fn whole(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to a vector cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default().into()
}

/// What [`whole`] made these of, piece by piece as the client takes it.
pub(crate) fn expand(compressed: Bytes) -> Body {
    let decoder = GzDecoder::new(std::io::Cursor::new(compressed));
    Body::stream(stream::unfold(decoder, |mut decoder| async move {
        let mut piece = Vec::with_capacity(PIECE);
        // They were compressed here, and can be expanded.
        let _ = decoder.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        (!piece.is_empty()).then(|| (Bytes::from(piece), decoder))
    }))
}

/// The same body, compressed piece by piece as the client takes it. The least effort is nearly as good as the most.
pub(crate) fn compress(body: Body) -> Body {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    Body::stream(stream::unfold(Some((body, encoder)), |state| async move {
        let (mut body, mut encoder) = state?;
        // Writing to a vector cannot fail.
        loop {
            match body.frame().await {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    let _ = encoder.write_all(&data);
                    let ready = std::mem::take(encoder.get_mut());
                    if !ready.is_empty() {
                        return Some((Bytes::from(ready), Some((body, encoder))));
                    }
                }
                None => return Some((Bytes::from(encoder.finish().unwrap_or_default()), None)),
                // Without its end it cannot be decompressed, and the client sees that.
                Some(Err(_)) => return None,
            }
        }
    }))
}
