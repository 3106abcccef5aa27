//! Parses server-sent events as far as needed to notice one. Without I/O.

use std::time::Duration;

/// A line that is longer is read, but not kept.
const MAX_LINE: usize = 16 << 10;

/// Reads a stream of events, however its bytes are split.
#[derive(Debug, Default)]
pub(super) struct Reader {
    line: Vec<u8>,
    after_return: bool,
    begun: bool,
    has_data: bool,
    /// The id of the event that is being read.
    id: Option<String>,
    /// The id of the last event, to go on from.
    pub(super) last_id: Option<String>,
    /// How long the service asks to wait before the next connection.
    pub(super) retry: Option<Duration>,
}

impl Reader {
    /// Takes the next bytes; says how many events they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> usize {
        let mut events = 0;
        for &byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => events += usize::from(self.end_of_line()),
                byte if self.line.len() < MAX_LINE => self.line.push(byte),
                _ => {}
            }
        }
        events
    }

    /// Another connection begins; what was read of an event is lost.
    pub(super) fn reconnected(&mut self) {
        let Self { last_id, retry, .. } = std::mem::take(self);
        *self = Self { last_id, retry, ..Self::default() };
    }

    /// Takes the line over; says whether it completes an event.
    fn end_of_line(&mut self) -> bool {
        let line = std::mem::take(&mut self.line);
        let mut line = String::from_utf8_lossy(&line);
        if !std::mem::replace(&mut self.begun, true)
            && let Some(rest) = line.strip_prefix('\u{feff}')
        {
            line = rest.to_owned().into();
        }
        if line.is_empty() {
            if let Some(id) = self.id.take() {
                self.last_id = Some(id).filter(|id| !id.is_empty());
            }
            return std::mem::take(&mut self.has_data);
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.has_data = true,
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" => self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry),
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn events_are_counted_and_the_last_id_is_kept() {
        let mut reader = Reader::default();
        assert_eq!(reader.push(b"\xef\xbb\xbf: hello\n\nid: 1\ndata: a\ndata: b\n\n"), 1);
        assert_eq!(reader.last_id.as_deref(), Some("1"));
        assert_eq!(reader.push(b"event: x\n\nretry: 250\nretry: soon\ndata\r\n\r\n"), 1);
        assert_eq!((reader.last_id.as_deref(), reader.retry), (Some("1"), Some(Duration::from_millis(250))));
        assert_eq!(reader.push(b"id: 2\ndata: cut"), 0);
        reader.reconnected();
        assert_eq!(reader.push(b"data: a\n\n"), 1);
        assert_eq!(reader.last_id.as_deref(), Some("1"), "the event with id 2 never came");
        assert_eq!(reader.push(b"id\ndata: a\n\n"), 1);
        assert_eq!(reader.last_id, None);
    }

    proptest! {
        #[test]
        fn it_makes_no_difference_how_the_bytes_are_split(size in 1..9usize, end in prop::sample::select(vec!["\n", "\r", "\r\n"])) {
            let text = ["id: 7", "data: x", "", ": comment", "data: y", "id: 8", "", "event: z", "", ""].join(end);
            let mut reader = Reader::default();
            let events: usize = text.as_bytes().chunks(size).map(|chunk| reader.push(chunk)).sum();
            prop_assert_eq!((events, reader.last_id.as_deref()), (2, Some("8")));
        }
    }
}
