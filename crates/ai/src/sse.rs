//! Event streams (SSE): bytes to events and back.

use memchr::memchr;

/// The largest event that is read, in bytes. A provider that sends more without an end is cut.
pub const MOST: usize = 8 << 20;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Its name; empty if it has none.
    pub event: String,
    /// Its data; several lines are joined.
    pub data: String,
}

/// An event is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {MOST} bytes")]
pub struct TooLarge;

/// Finds events in bytes that come in pieces of any size.
#[derive(Debug, Default)]
pub struct Splitter {
    /// A line that has not ended.
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    /// Whether the last byte was a carriage return: a line feed after it is no line of its own.
    after_return: bool,
}

impl Splitter {
    /// Takes a piece, and hands on the events that end in it. Says how many bytes of the piece come before the event that has not ended.
    ///
    /// # Errors
    ///
    /// If an event has more than [`MOST`] bytes.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(SseEvent)) -> Result<usize, TooLarge> {
        let (length, mut complete) = (bytes.len(), 0);
        if std::mem::take(&mut self.after_return) && bytes.first() == Some(&b'\n') {
            bytes = &bytes[1..];
        }
        while !bytes.is_empty() {
            let feed = memchr(b'\n', bytes);
            let before = feed.unwrap_or(bytes.len());
            let end = memchr(b'\r', &bytes[..before]).or(feed);
            let Some(end) = end else {
                self.line.extend_from_slice(bytes);
                return if self.size() > MOST { Err(TooLarge) } else { Ok(complete) };
            };
            self.line.extend_from_slice(&bytes[..end]);
            if self.size() > MOST {
                return Err(TooLarge);
            }
            let mut next = end + 1;
            if bytes[end] == b'\r' {
                match bytes.get(next) {
                    Some(b'\n') => next += 1,
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
            bytes = &bytes[next..];
            let line = std::mem::take(&mut self.line);
            if line.is_empty() {
                complete = length - bytes.len();
            }
            if let Some(event) = self.line(&line) {
                each(event);
            }
            // Keeps the room for the next line.
            self.line = line;
            self.line.clear();
        }
        Ok(complete)
    }

    fn size(&self) -> usize {
        self.line.len() + self.event.data.len()
    }

    fn line(&mut self, line: &[u8]) -> Option<SseEvent> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let text = String::from_utf8_lossy(line);
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => self.event.event = value.to_owned(),
            // Comments (which begin with the colon), identifiers and times are of no use here.
            _ => {}
        }
        None
    }

    /// The event that was under way when the stream ended, if it has data: some servers do not end their last one.
    pub fn finish(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.line(&line);
        }
        std::mem::take(&mut self.has_data).then(|| std::mem::take(&mut self.event))
    }
}

/// Writes an event. The name is left out if it is empty.
pub fn write(out: &mut Vec<u8>, event: &str, data: &str) {
    if !event.is_empty() {
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(event.as_bytes());
        out.push(b'\n');
    }
    for line in data.split('\n') {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let (mut splitter, mut events) = (Splitter::default(), Vec::new());
        for piece in pieces {
            splitter.push(piece, |event| events.push(event)).unwrap();
        }
        events.extend(splitter.finish());
        events
    }

    fn event(event: &str, data: &str) -> SseEvent {
        SseEvent { event: event.into(), data: data.into() }
    }

    #[test]
    fn events_are_found_whatever_ends_their_lines() {
        for end in ["\n", "\r\n", "\r"] {
            let text = ": hello\nevent: a\ndata: 1\ndata:2\nid: 7\n\ndata: 3\n\n\nevent: none\n\ndata"
                .replace('\n', end);
            assert_eq!(
                split(&[text.as_bytes()]),
                [event("a", "1\n2"), event("", "3"), event("", "")],
                "{end:?}"
            );
        }
    }

    #[test]
    fn what_comes_before_an_event_that_has_not_ended_is_told() {
        let mut splitter = Splitter::default();
        let mut push = |piece: &str| splitter.push(piece.as_bytes(), |_| ()).unwrap();
        assert_eq!(push("data: a\n\n: comment\n\ndata: b\n"), 20);
        assert_eq!(push("data: c"), 0);
        assert_eq!(push("\r\n\r\n"), 4);
        assert_eq!(push("data: d\r\r"), 9);
        assert_eq!(push("\ndata"), 0);
    }

    #[test]
    fn an_event_without_an_end_is_cut() {
        let mut splitter = Splitter::default();
        let piece = vec![b'x'; 1 << 20];
        let pushed = (0..9).map(|_| splitter.push(&piece, |_| panic!("no event"))).find(Result::is_err);
        assert_eq!(pushed, Some(Err(TooLarge)));
    }

    proptest! {
        #[test]
        fn where_pieces_are_cut_does_not_matter(
            events in prop::collection::vec(("[a-z]{0,4}", "[ -~é\n]{0,20}"), 0..6), cuts in prop::collection::vec(0_usize..200, 0..8)
        ) {
            let mut bytes = Vec::new();
            for (name, data) in &events {
                write(&mut bytes, name, data);
            }
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (bytes.len() + 1)).chain([0, bytes.len()]).collect();
            cuts.sort();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let expected: Vec<SseEvent> = events.iter().map(|(name, data)| event(name, data)).collect();
            prop_assert_eq!(split(&pieces), expected);
        }
    }
}
