//! Reads the items of a list while its bytes arrive.

use watchkeeper_core::json::{Cursor, SyntaxError};
use watchkeeper_core::text::bounded;
use watchkeeper_core::{Document, Reason, Rejection};

use super::kinds::{self, Kinds};
use super::skip::Skip;

/// What stays allocated while the list is small, and what a list may say of itself in any case.
const KEEP: usize = 64 * 1024;

/// Reads one list: chunks go in, items come out one by one.
///
/// Holds the bytes of one item and one chunk. An item beyond the limit is passed over without being held. The order of
/// `metadata` and `items` does not matter, fields it does not know are passed over, and what comes out does not depend
/// on where the chunks end. A value that is not complete yet is looked at again only when twice as many bytes are there, so
/// that the whole is linear in the length of the list.
#[derive(Debug)]
pub(super) struct ListReader {
    limit: usize,
    buffer: Vec<u8>,
    /// How much of the buffer is done.
    at: usize,
    /// How many bytes have to be there before the next attempt.
    enough: usize,
    ended: bool,
    state: State,
    meta: ListMeta,
}

/// What a list says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ListMeta {
    /// `metadata.resourceVersion`.
    pub(super) version: Option<String>,
    /// `metadata.continue`: there are more pages.
    pub(super) next: Option<String>,
}

#[derive(Debug)]
enum State {
    Start,
    /// Before a member's name.
    Member,
    AfterMember,
    /// Before an item.
    Item,
    AfterItem,
    /// Within an item or a member that is not kept.
    Passing {
        skip: Skip,
        item: bool,
    },
    /// Behind the closing brace.
    End,
}

/// One thing found in a list.
#[derive(Debug)]
pub(super) enum Found {
    Item(Document),
    Rejected(Rejection),
}

/// Why bytes are not a list. The text is for a person and holds no content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotAList(pub(super) String);

/// Why a step was not made.
enum Stop {
    /// More bytes are needed.
    Wait,
    Broken(NotAList),
}

impl From<SyntaxError> for Stop {
    fn from(error: SyntaxError) -> Self {
        match error {
            SyntaxError::Truncated => Self::Wait,
            error => broken(format!("not a list: {error}")),
        }
    }
}

fn broken(text: impl Into<String>) -> Stop {
    Stop::Broken(NotAList(text.into()))
}

impl ListReader {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: Vec::new(),
            at: 0,
            enough: 0,
            ended: false,
            state: State::Start,
            meta: ListMeta::default(),
        }
    }

    /// Takes the next chunk. Only after [`next`](Self::next) has said that it has nothing more.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.buffer.drain(..self.at);
        self.at = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP.max(2 * chunk.len()) {
            self.buffer = Vec::new();
        }
        self.buffer.extend_from_slice(chunk);
    }

    /// Says that there are no more chunks.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The next thing in the list, or `None` if more bytes are needed or, after the last of them, if it is over.
    pub(super) fn next(&mut self, kinds: &mut Kinds) -> Result<Option<Found>, NotAList> {
        loop {
            if self.rest().len() < self.enough && !self.ended {
                return Ok(None);
            }
            self.pass_white_space();
            match self.step(kinds) {
                Ok(found) => {
                    self.enough = 0;
                    if found.is_some() {
                        return Ok(found);
                    }
                }
                Err(Stop::Broken(error)) => return Err(error),
                Err(Stop::Wait) => {
                    if self.ended {
                        return self.at_the_end().map(|()| None);
                    }
                    return self.wait().map(|()| None);
                }
            }
        }
    }

    /// Decides how many bytes are worth another attempt.
    fn wait(&mut self) -> Result<(), NotAList> {
        let there = self.rest().len();
        if there > 2 * (self.limit + KEEP) {
            return Err(NotAList("not a list: something in it has no end".into()));
        }
        // One byte more than the limit is enough to know that a value is too large.
        self.enough = if there > self.limit { there + 1 } else { (2 * there).min(self.limit + 1) };
        Ok(())
    }

    /// Between tokens only: within a value that is passed over, white space may be part of a string.
    fn pass_white_space(&mut self) {
        if !matches!(self.state, State::Passing { .. }) {
            self.at +=
                self.rest().iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        }
    }

    /// After the end: what the list said of itself.
    pub(super) fn into_meta(self) -> ListMeta {
        self.meta
    }

    fn at_the_end(&self) -> Result<(), NotAList> {
        match self.state {
            State::End => Ok(()),
            _ => Err(NotAList("the list is cut off".into())),
        }
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// Makes one step. If it cannot be made, nothing has changed.
    fn step(&mut self, kinds: &mut Kinds) -> Result<Option<Found>, Stop> {
        match self.state {
            State::Start => self.start()?,
            State::Member => self.member()?,
            State::AfterMember => self.separator(b'}', State::Member, State::End)?,
            State::Item => return self.item(kinds).map(Some),
            State::AfterItem => self.separator(b']', State::Item, State::AfterMember)?,
            State::Passing { .. } => self.pass()?,
            State::End => {
                Cursor::new(self.rest()).end()?;
                self.at = self.buffer.len();
                return Err(Stop::Wait);
            }
        }
        Ok(None)
    }

    fn start(&mut self) -> Result<(), Stop> {
        let mut cursor = Cursor::new(self.rest());
        cursor.expect(b'{', "an object")?;
        let empty = cursor.closes_at_once(b'}')?;
        let done = cursor.position();
        self.go(done, if empty { State::End } else { State::Member });
        Ok(())
    }

    fn separator(&mut self, close: u8, more: State, closed: State) -> Result<(), Stop> {
        let mut cursor = Cursor::new(self.rest());
        let state = if cursor.more(close)? { more } else { closed };
        let done = cursor.position();
        self.go(done, state);
        Ok(())
    }

    fn member(&mut self) -> Result<(), Stop> {
        let mut cursor = Cursor::new(&self.buffer[self.at..]);
        let name = match cursor.name() {
            Err(SyntaxError::Truncated) if self.rest().len() > self.limit => {
                return Err(broken("not a list: a name without an end"));
            }
            name => name?.raw,
        };
        let value = cursor.peek()?;
        let start = cursor.position();
        let mut state = State::AfterMember;
        let read = match (name, value) {
            (b"items", b'[') => {
                cursor.expect(b'[', "a list")?;
                if !cursor.closes_at_once(b']')? {
                    state = State::Item;
                }
                Ok(())
            }
            (b"items", b'n') => cursor.skip().map(drop),
            (b"items", _) => return Err(broken("not a list: its items are none")),
            (b"metadata", b'{') => read_meta(&mut cursor).map(|meta| self.meta = meta),
            (b"kind", b'"') => match kinds::text(&mut cursor) {
                Ok(Some(kind)) if !kind.ends_with("List") => {
                    return Err(broken(format!("not a list but a {:?}", bounded(&kind))));
                }
                read => read.map(drop),
            },
            _ => cursor.skip().map(drop),
        };
        let done = cursor.position();
        match read {
            Ok(()) => self.go(done, state),
            Err(SyntaxError::Truncated) if name == b"metadata" => {
                if self.rest().len() - start > self.limit.max(KEEP) {
                    return Err(broken("not a list: its metadata is too large"));
                }
                return Err(Stop::Wait);
            }
            Err(SyntaxError::Truncated) if self.rest().len() - start > self.limit => {
                self.go(start, State::Passing { skip: Skip::default(), item: false });
            }
            Err(SyntaxError::TooDeep { .. }) => {
                self.go(start, State::Passing { skip: Skip::default(), item: false });
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn item(&mut self, kinds: &mut Kinds) -> Result<Found, Stop> {
        let rest = &self.buffer[self.at..];
        let mut cursor = Cursor::new(rest);
        let unreadable = match kinds.read_at(&mut cursor, rest) {
            Ok(_) if cursor.position() > self.limit => return Ok(self.reject_too_large(kinds)),
            Ok(document) => {
                let done = cursor.position();
                self.go(done, State::AfterItem);
                return Ok(Found::Item(document));
            }
            Err(unreadable) => unreadable,
        };
        // Where the object ends is known only if it is JSON, whatever else is wrong with it.
        match Cursor::new(rest).skip() {
            Ok(span) if span.end > self.limit => Ok(self.reject_too_large(kinds)),
            Err(SyntaxError::Truncated) if rest.len() > self.limit => Ok(self.reject_too_large(kinds)),
            Ok(span) => {
                self.go(span.end, State::AfterItem);
                Ok(rejected(kinds::rejection(unreadable)))
            }
            Err(SyntaxError::TooDeep { .. }) => {
                self.go(0, State::Passing { skip: Skip::default(), item: true });
                Ok(rejected(kinds::rejection(unreadable)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Rejects an item by what its first bytes tell, and goes on behind it.
    fn reject_too_large(&mut self, kinds: &mut Kinds) -> Found {
        let prefix = &self.buffer[self.at..self.at + self.limit];
        let key = match kinds.read_at(&mut Cursor::new(prefix), prefix) {
            Err(unreadable) => kinds::rejection(unreadable).key,
            Ok(document) => Some(document.header.key),
        };
        self.go(0, State::Passing { skip: Skip::default(), item: true });
        let detail = format!("an object of more than {} bytes", self.limit);
        rejected(Rejection::new(key, Reason::TooLarge, detail))
    }

    fn pass(&mut self) -> Result<(), Stop> {
        let State::Passing { skip, item } = &mut self.state else {
            return Ok(());
        };
        let behind = if *item { State::AfterItem } else { State::AfterMember };
        match skip.feed(&self.buffer[self.at..]) {
            Ok(Some(end)) => self.go(end, behind),
            Ok(None) => {
                self.at = self.buffer.len();
                return Err(Stop::Wait);
            }
            Err(text) => return Err(broken(format!("not a list: {text}"))),
        }
        Ok(())
    }

    fn go(&mut self, done: usize, state: State) {
        self.at += done;
        self.state = state;
    }
}

/// The version of an item is not a position of the log.
fn rejected(rejection: Rejection) -> Found {
    Found::Rejected(rejection.at(None))
}

fn read_meta(cursor: &mut Cursor<'_>) -> Result<ListMeta, SyntaxError> {
    let mut meta = ListMeta::default();
    kinds::members(cursor, |cursor, name| {
        match name {
            b"resourceVersion" => meta.version = kinds::text(cursor)?,
            b"continue" => meta.next = kinds::text(cursor)?,
            _ => {
                cursor.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(meta)
}

#[cfg(test)]
mod tests;
