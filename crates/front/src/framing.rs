use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use memchr::memchr;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much of a line is looked at: enough for the name and the value of every header that says where a request ends, but one that is padded.
const LOOKED_AT: usize = 64;

/// Where the requests of an HTTP/1 connection begin and end, read beside hyper.
///
/// Some requests hyper reads in one of several ways that RFC 9112 allows, and says nothing of it: of a length and chunks the chunks, of several equal
/// lengths the first, a line feed alone as the end of a line. Whoever passed such a request on, or gets it next, may read it in another way, and take
/// a part of it for a request of its own. This reads the same bytes, and says which requests these are. Where it cannot tell requests apart, it says
/// so of all that follow.
#[derive(Default)]
pub(crate) struct Framing(Mutex<Reader>);

impl Framing {
    /// What is ambiguous about the next request. To be asked once for each that hyper has read.
    pub(crate) fn next(&self) -> Option<&'static str> {
        self.0.lock().next()
    }
}

#[derive(Debug)]
struct Reader {
    expects: Expects,
    line: Line,
    head: Head,
    /// How many heads were read to their ends.
    read: u64,
    /// How many requests were asked for.
    taken: u64,
    /// The first request that is ambiguous, by its number. Its connection is closed: none comes after it.
    ambiguous: Option<(u64, &'static str)>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    /// A request, maybe after empty lines.
    RequestLine,
    Header,
    /// So many bytes of a body.
    Body(u64),
    ChunkSize,
    /// So many bytes of a chunk.
    Chunk(u64),
    ChunkEnd,
    Trailer,
    /// Nothing that is understood.
    Unknown,
}

/// The beginning of a line that has not come to its end.
#[derive(Debug)]
struct Line {
    kept: [u8; LOOKED_AT],
    length: usize,
    last: Option<u8>,
}

/// What a head says about the end of its request.
#[derive(Debug, Default)]
struct Head {
    lengths: usize,
    length: u64,
    encodings: usize,
    /// Whether a line that says where it ends was not understood.
    is_unclear: bool,
    /// Whether a line ended with a line feed alone.
    is_bare: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            expects: Expects::RequestLine,
            line: Line { kept: [0; LOOKED_AT], length: 0, last: None },
            head: Head::default(),
            read: 0,
            taken: 0,
            ambiguous: None,
        }
    }
}

impl Reader {
    fn next(&mut self) -> Option<&'static str> {
        self.taken += 1;
        match self.ambiguous {
            Some((number, why)) if number <= self.taken => Some(why),
            _ if self.taken > self.read => Some("it is not clear where the request before this one ends\n"),
            _ => None,
        }
    }

    /// Takes what came from the client.
    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.expects {
                Expects::Unknown => return,
                Expects::Body(left) => {
                    let left = skip(&mut bytes, left);
                    self.expects = if left > 0 { Expects::Body(left) } else { Expects::RequestLine };
                }
                Expects::Chunk(left) => {
                    let left = skip(&mut bytes, left);
                    self.expects = if left > 0 { Expects::Chunk(left) } else { Expects::ChunkEnd };
                }
                _ => match memchr(b'\n', bytes) {
                    None => {
                        self.line.push(bytes);
                        return;
                    }
                    Some(end) => {
                        self.line.push(&bytes[..end]);
                        self.expects = self.line_ended();
                        self.line.clear();
                        bytes = &bytes[end + 1..];
                    }
                },
            }
        }
    }

    /// Takes the line that has come to its end; what comes after it.
    fn line_ended(&mut self) -> Expects {
        let is_empty = self.line.is_empty();
        match self.expects {
            Expects::RequestLine if is_empty => Expects::RequestLine,
            Expects::RequestLine => {
                self.head = Head { is_bare: self.line.is_bare(), ..Head::default() };
                Expects::Header
            }
            Expects::Header => {
                self.head.is_bare |= self.line.is_bare();
                match is_empty {
                    true => self.head_ended(),
                    false => {
                        self.head.note(&self.line);
                        Expects::Header
                    }
                }
            }
            Expects::ChunkSize => match self.line.chunk_size() {
                Some(0) => Expects::Trailer,
                Some(size) => Expects::Chunk(size),
                None => Expects::Unknown,
            },
            Expects::ChunkEnd if is_empty => Expects::ChunkSize,
            Expects::Trailer if is_empty => Expects::RequestLine,
            Expects::Trailer => Expects::Trailer,
            Expects::ChunkEnd | Expects::Body(_) | Expects::Chunk(_) | Expects::Unknown => Expects::Unknown,
        }
    }

    fn head_ended(&mut self) -> Expects {
        self.read += 1;
        let head = &self.head;
        let why = match (head.lengths, head.encodings) {
            (1.., 1..) => Some("the length of the body is told in two ways\n"),
            (2.., _) => Some("the length of the body is told more than once\n"),
            _ if head.is_unclear => Some("the length of the body is not told as it usually is\n"),
            _ if head.is_bare => Some("a line of the head ends without a carriage return\n"),
            _ => None,
        };
        if let Some(why) = why {
            self.ambiguous.get_or_insert((self.read, why));
        }
        match (head.encodings, head.length) {
            _ if head.is_unclear => Expects::Unknown,
            (1.., _) => Expects::ChunkSize,
            (0, 0) => Expects::RequestLine,
            (0, length) => Expects::Body(length),
        }
    }
}

/// Passes over so many bytes; how many are still to come.
fn skip(bytes: &mut &[u8], count: u64) -> u64 {
    let here = usize::try_from(count).map_or(bytes.len(), |count| count.min(bytes.len()));
    *bytes = &bytes[here..];
    count - here as u64
}

impl Head {
    /// Takes a line of it.
    fn note(&mut self, line: &Line) {
        let kept = line.kept();
        let value = |name: &str| {
            let (start, rest) = kept.split_at_checked(name.len())?;
            start.eq_ignore_ascii_case(name.as_bytes()).then(|| rest.trim_ascii())
        };
        if let Some(value) = value("content-length:") {
            self.lengths += 1;
            match length(value).filter(|_| line.is_kept()) {
                Some(length) => self.length = length,
                None => self.is_unclear = true,
            }
        }
        if value("transfer-encoding:").is_some() {
            self.encodings += 1;
            self.is_unclear |= !line.is_kept();
        }
    }
}

/// The length that a header tells, if it is one.
fn length(value: &[u8]) -> Option<u64> {
    let text = str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    text.parse().ok()
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        let at = self.length.min(LOOKED_AT);
        let count = bytes.len().min(LOOKED_AT - at);
        self.kept[at..at + count].copy_from_slice(&bytes[..count]);
        self.length = self.length.saturating_add(bytes.len());
        self.last = bytes.last().copied().or(self.last);
    }

    fn clear(&mut self) {
        (self.length, self.last) = (0, None);
    }

    fn kept(&self) -> &[u8] {
        &self.kept[..self.length.min(LOOKED_AT)]
    }

    /// Whether all of it was looked at.
    fn is_kept(&self) -> bool {
        self.length <= LOOKED_AT
    }

    fn is_empty(&self) -> bool {
        matches!(self.kept(), b"" | b"\r")
    }

    /// Whether it ended with a line feed alone.
    fn is_bare(&self) -> bool {
        self.last != Some(b'\r')
    }

    /// The size of the chunk that it announces, as hyper reads it.
    fn chunk_size(&self) -> Option<u64> {
        let kept = self.kept();
        let digits = kept.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let text = str::from_utf8(&kept[..digits]).ok().filter(|_| digits < LOOKED_AT)?;
        u64::from_str_radix(text, 16).ok()
    }
}

/// A stream of which [`Framing`] sees what is read.
pub(crate) struct Framed<S> {
    stream: S,
    framing: Arc<Framing>,
}

impl<S> Framed<S> {
    pub(crate) fn new(stream: S, framing: Arc<Framing>) -> Self {
        Self { stream, framing }
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Framed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let bytes = &buffer.filled()[before..];
        if !bytes.is_empty() {
            self.framing.0.lock().take(bytes);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Framed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of the requests in some bytes, which come in pieces of this size.
    fn said(bytes: &[u8], size: usize, requests: usize) -> Vec<bool> {
        let mut reader = Reader::default();
        bytes.chunks(size).for_each(|piece| reader.take(piece));
        (0..requests).map(|_| reader.next().is_some()).collect()
    }

    const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

    #[test]
    fn requests_are_told_apart_however_their_bytes_come() {
        for (before, requests) in [
            ("", 0),
            ("\r\n\n\r\n", 0),
            (GET, 1),
            ("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhel\r\n", 1),
            ("POST / HTTP/1.1\r\ncontent-length:\t05 \r\nx: y\r\n\r\n\n\n\n\n\n", 1),
            ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 1),
            (
                "POST / HTTP/1.1\r\nTRANSFER-ENCODING:Chunked\r\n\r\n003;x=\"y\"\r\n\r\n\r\r\nA \r\n0123456789\r\n0\r\nx: y\r\n\r\n",
                1,
            ),
            (
                "GET /content-length: HTTP/1.1\r\ncontent-lengt: 7\r\ncontent-length-: 7\r\nx-content-length: 7\r\n\r\n",
                1,
            ),
        ] {
            // The one behind it is found to be ambiguous, so where it begins is known.
            let text = format!(
                "{before}{GET}POST / HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"
            );
            let mut expected = vec![false; requests + 1];
            expected.push(true);
            for size in 1..text.len() {
                assert_eq!(said(text.as_bytes(), size, requests + 2), expected, "{size} {text:?}");
            }
        }
    }

    #[test]
    fn what_hyper_takes_and_others_may_read_otherwise_is_ambiguous() {
        let long = "x".repeat(100);
        for head in [
            "POST / HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n".to_owned(),
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nx: y\r\nContent-Length: 5\r\n\r\n".to_owned(),
            "POST / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\nhost: a\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nhost: a\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nhost: a\r\n\n".to_owned(),
            format!("GET / HTTP/1.1\r\nhost: {long}\n\r\n"),
            format!("POST / HTTP/1.1\r\ncontent-length:{}5\r\n\r\n", " ".repeat(LOOKED_AT)),
            format!("POST / HTTP/1.1\r\nContent-Length: {}5\r\n\r\n", "0".repeat(LOOKED_AT)),
            format!("POST / HTTP/1.1\r\ncontent-length: 5{}\r\n\r\n", " ".repeat(LOOKED_AT)),
            format!("POST / HTTP/1.1\r\ntransfer-encoding:{}chunked\r\n\r\n", " ".repeat(LOOKED_AT)),
            "POST / HTTP/1.1\r\ncontent-length: +5\r\n\r\n".to_owned(),
            "POST / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n".to_owned(),
        ] {
            for size in 1..head.len() {
                assert_eq!(said(head.as_bytes(), size, 2), [true, true], "{size} {head:?}");
            }
        }
    }

    #[test]
    fn behind_what_is_not_understood_everything_is_ambiguous() {
        let post = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
        let zeros = "0".repeat(LOOKED_AT);
        for chunks in ["\r\n", "zz\r\n", "5\r\nhelloXX0\r\n\r\n", "ffffffffffffffffff\r\n", zeros.as_str()] {
            let text = format!("{post}{chunks}\r\n{GET}");
            assert_eq!(said(text.as_bytes(), text.len(), 2), [false, true], "{text:?}");
        }
        assert_eq!(said(GET.as_bytes(), 100, 2), [false, true], "that nobody has seen");
    }
}
