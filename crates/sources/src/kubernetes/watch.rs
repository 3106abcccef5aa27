//! One watch: a request, and the entries of its response.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use tokio::time::Instant;
use watchkeeper_connection::Connection;
use watchkeeper_core::{Error, Reason};

use super::answer::{Answer, Piece};
use super::entry::Entry;
use super::frames::Lines;
use super::kinds::Kinds;
use super::pulse::Pulse;

/// The server is asked to end a watch after a time within these bounds, in seconds: long enough to be cheap, random so
/// that not all clients come back at once.
const TIMEOUT_SECONDS: std::ops::RangeInclusive<u64> = 300..=600;

/// A watch that is under way. Dropping it closes the connection.
pub(super) struct Watch {
    answer: Answer,
    lines: Lines,
    kinds: Kinds,
    pulse: Pulse,
    ended: bool,
    /// An entry behind which no line end came.
    last: Option<Entry>,
}

/// What came of waiting for entries.
pub(super) enum Filled {
    /// There may be entries now.
    More,
    /// The server ended the watch in good order.
    End,
    /// Nothing came in the time given.
    Silence,
}

/// How long the next watch shall be.
pub(super) fn timeout_seconds() -> u64 {
    fastrand::u64(TIMEOUT_SECONDS)
}

impl Watch {
    pub(super) async fn open(
        connection: &Connection,
        request: Request<Bytes>,
        timeout_seconds: u64,
        kinds: Kinds,
        max_object_bytes: usize,
    ) -> Result<Self, Error> {
        let answer = Answer::to(connection, "watch", request).await?;
        Ok(Self {
            answer,
            lines: Lines::new(max_object_bytes),
            kinds,
            pulse: Pulse::new(Duration::from_secs(timeout_seconds), Instant::now()),
            ended: false,
            last: None,
        })
    }

    /// The next entry, if it is there already.
    pub(super) fn ready(&mut self) -> Option<Entry> {
        let entry = match self.lines.next() {
            Some(line) => Entry::read(line, &mut self.kinds),
            None => self.last.take()?,
        };
        if matches!(entry, Entry::Bookmark { complete: false, .. }) {
            self.pulse.bookmark(Instant::now());
        }
        Some(entry)
    }

    /// Waits for more bytes. Only when no entry is [ready](Self::ready).
    pub(super) async fn fill(&mut self, timeout: Duration) -> Result<Filled, Error> {
        if self.ended {
            return Ok(Filled::End);
        }
        match self.answer.piece(timeout).await? {
            Piece::Data(data) => self.lines.push(data),
            Piece::Silence => return Ok(Filled::Silence),
            Piece::End => {
                self.ended = true;
                let Some(line) = self.lines.rest() else {
                    return Ok(Filled::End);
                };
                match Entry::read(line, &mut self.kinds) {
                    // Not a bad object but half of one: it will come again, whole.
                    Entry::Rejected(rejection) if rejection.reason == Reason::Malformed => {
                        return Err(self.answer.failed("ended within an entry"));
                    }
                    entry => self.last = Some(entry),
                }
            }
        }
        Ok(Filled::More)
    }

    /// The next entry, or `None` when the server ends the watch in good order.
    pub(super) async fn next(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            if let Some(entry) = self.ready() {
                return Ok(Some(entry));
            }
            let timeout = self.pulse.silence_timeout();
            match self.fill(timeout).await? {
                Filled::More => {}
                Filled::End => return Ok(None),
                Filled::Silence => {
                    return Err(self
                        .answer
                        .failed(format!("silent for {} s, taken for dead", timeout.as_secs())));
                }
            }
        }
    }

    pub(super) fn answer(&self) -> &Answer {
        &self.answer
    }
}
