//! Messages in the frames of gRPC, and what became of a call.

use bytes::{Buf as _, Bytes, BytesMut};
use http::HeaderMap;
use watchkeeper_core::text::percent_decoded;
use watchkeeper_wire::protobuf::Writer;

use crate::error::{Code, Error};
use crate::message::Encode;

/// One byte that says whether the message is compressed, four that say how long it is.
const PREFIX: usize = 5;
/// As much of what a server says is kept.
const MAX_TEXT: usize = 1024;

/// A message, ready to be sent.
pub(crate) fn frame(message: &impl Encode) -> Result<Bytes, Error> {
    let mut writer = Writer { bytes: vec![0; PREFIX] };
    message.encode(&mut writer);
    let mut bytes = writer.bytes;
    let length = u32::try_from(bytes.len() - PREFIX)
        .map_err(|_| Error::Settings("a request of 4 GiB or more cannot be sent".into()))?;
    bytes[1..PREFIX].copy_from_slice(&length.to_be_bytes());
    Ok(bytes.into())
}

/// Takes bytes as they come and gives messages.
pub(crate) struct Frames {
    buffer: BytesMut,
    limit: usize,
}

impl Frames {
    /// Messages larger than the limit are refused as soon as they announce themselves.
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), limit }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The next message, if it is complete.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let Some(&[compressed, a, b, c, d]) = self.buffer.first_chunk::<PREFIX>() else { return Ok(None) };
        if compressed != 0 {
            return Err(Error::Protocol("a compressed message, which nobody asked for".into()));
        }
        let bytes = u32::from_be_bytes([a, b, c, d]) as usize;
        if bytes > self.limit {
            return Err(Error::TooLarge { bytes, limit: self.limit });
        }
        if self.buffer.len() - PREFIX < bytes {
            return Ok(None);
        }
        self.buffer.advance(PREFIX);
        Ok(Some(self.buffer.split_to(bytes).freeze()))
    }
}

/// What the headers or trailers say of the call; nothing, if they say nothing.
pub(crate) fn status(headers: &HeaderMap) -> Option<Result<(), Error>> {
    let code = headers.get("grpc-status")?;
    let code = code.to_str().ok().and_then(|code| code.parse().ok());
    let Some(code) = code else { return Some(Err(Error::Protocol("a status that is no number".into()))) };
    if code == 0 {
        return Some(Ok(()));
    }
    let message = headers.get("grpc-message").map(|message| text(message.as_bytes())).unwrap_or_default();
    Some(Err(Error::of_status(Code(code), message)))
}

/// Text in which bytes are written as `%41`, as far as it is fit for an error.
fn text(encoded: &[u8]) -> String {
    let bytes = percent_decoded(&encoded[..encoded.len().min(MAX_TEXT)]);
    String::from_utf8_lossy(&bytes).chars().filter(|character| !character.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::Put;
    use proptest::prelude::*;

    #[test]
    fn messages_come_out_as_they_went_in_however_the_bytes_are_cut() {
        let values = [vec![1; 3], vec![2; 400], Vec::new(), vec![3; 70_000]];
        let sent: Vec<Bytes> = values.iter().map(|value| frame(&Put::new("k", &**value)).unwrap()).collect();
        let all = sent.concat();
        for step in [1, 2, 5, 7, 1000, all.len()] {
            let mut frames = Frames::new(100_000);
            let mut received = Vec::new();
            for chunk in all.chunks(step) {
                frames.push(chunk);
                while let Some(message) = frames.next().unwrap() {
                    received.push(message);
                }
            }
            let expected: Vec<&[u8]> = sent.iter().map(|frame| &frame[PREFIX..]).collect();
            assert_eq!(received, expected);
            assert!(frames.is_empty());
        }
    }

    #[test]
    fn a_message_that_is_too_large_is_refused_when_it_announces_itself() {
        let mut frames = Frames::new(1 << 20);
        frames.push(&[0, 0xff, 0xff, 0xff, 0xff]);
        let error = frames.next().unwrap_err();
        assert_eq!(error, Error::TooLarge { bytes: u32::MAX as usize, limit: 1 << 20 });
        let mut frames = Frames::new(1 << 20);
        frames.push(&[1, 0, 0, 0, 1, 7]);
        assert!(matches!(frames.next(), Err(Error::Protocol(_))));
    }

    #[test]
    fn what_a_server_says_is_decoded_and_harmless() {
        assert_eq!(text(b"etcdserver: a%20b%C3%A4%zz%4"), "etcdserver: a bä%zz%4");
        assert_eq!(text(b"a%0Ab%1b[31m"), "ab[31m");
        assert_eq!(text(&[b'x'; 5000]).len(), MAX_TEXT);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..64), 0..8)) {
            use crate::message::Decode as _;
            let mut frames = Frames::new(64);
            for chunk in chunks {
                let _ = crate::watch::Answer::decode(&Bytes::from(chunk.clone()));
                let _ = crate::txn::TxnDone::decode(&Bytes::from(chunk.clone()));
                let _ = text(&chunk);
                frames.push(&chunk);
                while let Ok(Some(_)) = frames.next() {}
            }
        }
    }
}
