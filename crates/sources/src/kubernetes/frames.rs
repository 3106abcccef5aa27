//! Splits the bytes of a watch into lines, however they arrive.

use bytes::Bytes;
use memchr::memchr;

/// What may stay allocated between two lines.
const KEEP: usize = 64 * 1024;

/// The line framing of a watch: chunks go in, lines come out, and never more than the limit is held.
///
/// A line that lies within one chunk is handed out where it stands. A line that spans chunks is put together in a
/// buffer that grows up to the limit; a line beyond the limit is handed out once as [`Line::TooLong`] as soon as that
/// is known, and the rest of it is passed over without being kept. Empty lines are passed over. What comes out does not
/// depend on where the chunks end.
#[derive(Debug)]
pub(super) struct Lines {
    limit: usize,
    chunk: Bytes,
    /// How much of the chunk is done.
    at: usize,
    /// The beginning of a line whose end has not come. Never longer than the limit.
    partial: Vec<u8>,
    /// The line in `partial` was handed out.
    handed_out: bool,
    /// Passing over the rest of a line that is too long.
    skipping: bool,
}

/// A line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// As much of it as the limit allows.
    TooLong(&'a [u8]),
}

/// Where a line was found.
enum Found {
    InChunk { start: usize, end: usize },
    InPartial { whole: bool },
}

impl Lines {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, chunk: Bytes::new(), at: 0, partial: Vec::new(), handed_out: false, skipping: false }
    }

    /// Takes the next chunk. Only after [`next`](Self::next) has said that there are no more lines.
    pub(super) fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.at == self.chunk.len(), "a chunk was pushed over another");
        self.chunk = chunk;
        self.at = 0;
    }

    /// The next line that is complete, if there is one.
    pub(super) fn next(&mut self) -> Option<Line<'_>> {
        let found = self.find()?;
        Some(self.show(found))
    }

    /// After the last chunk: what is left without a line end.
    pub(super) fn rest(&mut self) -> Option<Line<'_>> {
        self.forget_handed_out();
        if self.skipping || is_blank(&self.partial) {
            return None;
        }
        self.handed_out = true;
        Some(Line::Whole(&self.partial))
    }

    fn find(&mut self) -> Option<Found> {
        self.forget_handed_out();
        while self.at < self.chunk.len() {
            let start = self.at;
            let Some(length) = memchr(b'\n', &self.chunk[start..]) else {
                return self.keep_unfinished(start);
            };
            self.at = start + length + 1;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if self.partial.is_empty() {
                let end = start + length;
                if length > self.limit || !is_blank(&self.chunk[start..end]) {
                    return Some(Found::InChunk { start, end });
                }
            } else {
                let whole = self.keep(start, start + length);
                if !whole || !is_blank(&self.partial) {
                    self.handed_out = true;
                    return Some(Found::InPartial { whole });
                }
                self.partial.clear();
            }
        }
        // Nothing refers to the chunk any more: let its memory go while we wait for the next.
        self.chunk = Bytes::new();
        self.at = 0;
        None
    }

    /// The chunk ends within a line.
    fn keep_unfinished(&mut self, start: usize) -> Option<Found> {
        let end = self.chunk.len();
        self.at = end;
        let fits = self.skipping || self.keep(start, end);
        self.chunk = Bytes::new();
        self.at = 0;
        if fits {
            return None;
        }
        self.skipping = true;
        self.handed_out = true;
        Some(Found::InPartial { whole: false })
    }

    /// Appends bytes of the chunk to the partial line, and says whether all of them fitted.
    fn keep(&mut self, start: usize, end: usize) -> bool {
        let taken = (end - start).min(self.limit - self.partial.len());
        let needed = self.partial.len() + taken;
        if needed > self.partial.capacity() {
            let capacity = (self.partial.capacity() * 2).clamp(needed, self.limit.max(needed));
            self.partial.reserve_exact(capacity - self.partial.len());
        }
        self.partial.extend_from_slice(&self.chunk[start..start + taken]);
        taken == end - start
    }

    fn forget_handed_out(&mut self) {
        if std::mem::take(&mut self.handed_out) {
            self.partial.clear();
            if self.partial.capacity() > KEEP {
                self.partial = Vec::new();
            }
        }
    }

    fn show(&self, found: Found) -> Line<'_> {
        match found {
            Found::InChunk { start, end } if end - start > self.limit => {
                Line::TooLong(&self.chunk[start..start + self.limit])
            }
            Found::InChunk { start, end } => Line::Whole(&self.chunk[start..end]),
            Found::InPartial { whole: true } => Line::Whole(&self.partial),
            Found::InPartial { whole: false } => Line::TooLong(&self.partial),
        }
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether it is whole, and its bytes.
    type Seen = (bool, Vec<u8>);

    fn read(chunks: impl IntoIterator<Item = Vec<u8>>, limit: usize) -> (Vec<Seen>, Option<Vec<u8>>) {
        let mut lines = Lines::new(limit);
        let mut seen = Vec::new();
        for chunk in chunks {
            lines.push(chunk.into());
            while let Some(line) = lines.next() {
                seen.push(match line {
                    Line::Whole(bytes) => (true, bytes.to_vec()),
                    Line::TooLong(bytes) => (false, bytes.to_vec()),
                });
            }
            assert!(lines.partial.capacity() <= limit.max(1));
        }
        let rest = lines.rest().map(|line| match line {
            Line::Whole(bytes) | Line::TooLong(bytes) => bytes.to_vec(),
        });
        (seen, rest)
    }

    /// The slow and obvious way.
    fn split(bytes: &[u8], limit: usize) -> (Vec<Seen>, Option<Vec<u8>>) {
        let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
        let rest = lines.pop().unwrap_or_default();
        let cut = |line: &[u8]| (line.len() <= limit, line[..line.len().min(limit)].to_vec());
        let mut seen: Vec<Seen> =
            lines.into_iter().filter(|line| line.len() > limit || !is_blank(line)).map(cut).collect();
        if rest.len() > limit {
            seen.push(cut(rest));
            return (seen, None);
        }
        (seen, (!is_blank(rest)).then(|| rest.to_vec()))
    }

    #[test]
    fn a_line_within_a_chunk_is_not_copied() {
        let chunk = Bytes::from_static(b"one\ntwo\n");
        let mut lines = Lines::new(100);
        lines.push(chunk.clone());
        match lines.next() {
            Some(Line::Whole(line)) => assert_eq!(line.as_ptr(), chunk.as_ptr()),
            other => panic!("{other:?}"),
        }
        assert_eq!(lines.next(), Some(Line::Whole(b"two")));
        assert_eq!(lines.next(), None);
        assert_eq!(lines.partial.capacity(), 0);
    }

    #[test]
    fn a_line_of_a_hundred_megabytes_is_told_at_once_and_never_held() {
        let limit = 1024 * 1024;
        let mut lines = Lines::new(limit);
        let chunk = Bytes::from(vec![b'x'; 64 * 1024]);
        let mut told = 0;
        let mut most_held = 0;
        for _ in 0..1600 {
            lines.push(chunk.clone());
            while let Some(line) = lines.next() {
                assert!(matches!(line, Line::TooLong(prefix) if prefix.len() == limit));
                told += 1;
            }
            most_held = most_held.max(lines.partial.capacity());
        }
        lines.push(Bytes::from_static(b"\nnext\n"));
        assert_eq!(lines.next(), Some(Line::Whole(b"next")));
        assert_eq!(told, 1);
        assert!(most_held <= limit, "{most_held}");
        assert!(lines.partial.capacity() <= KEEP);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn lines_do_not_depend_on_where_the_chunks_end(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b' '), any::<u8>()], 0..80),
            sizes in prop::collection::vec(1..12usize, 0..80),
            limit in 1..20usize,
        ) {
            let mut chunks = Vec::new();
            let mut left = &bytes[..];
            for size in sizes {
                let (chunk, more) = left.split_at(size.min(left.len()));
                chunks.push(chunk.to_vec());
                left = more;
            }
            chunks.push(left.to_vec());
            prop_assert_eq!(read(chunks, limit), split(&bytes, limit));
        }
    }
}
