//! Reads objects of the kind that was asked for; others become rejections.

use std::sync::Arc;

use watchkeeper_core::json::{Cursor, SyntaxError};
use watchkeeper_core::{Document, Projection, ReadError, Reason, Rejection, Unreadable};

/// The kinds an object may be of, each with what is kept of it.
///
/// Mostly one. A server that is asked for metadata only may answer with `PartialObjectMetadata` or, if it does not
/// know that, with whole objects; which of the two it does shows with the first object and does not change.
#[derive(Clone, Debug)]
pub(super) struct Kinds {
    first: Arc<Projection>,
    other: Option<Arc<Projection>>,
}

impl Kinds {
    pub(super) fn one(projection: Projection) -> Self {
        Self { first: projection.into(), other: None }
    }

    pub(super) fn either(first: Projection, other: Projection) -> Self {
        Self { first: first.into(), other: Some(other.into()) }
    }

    /// Reads the object at the cursor, which is over `bytes`.
    pub(super) fn read_at(&mut self, cursor: &mut Cursor<'_>, bytes: &[u8]) -> Result<Document, Unreadable> {
        let start = cursor.clone();
        let document = Document::read_at(cursor, bytes, &self.first);
        match (&document, &mut self.other) {
            (Err(Unreadable { error: ReadError::WrongKind, .. }), Some(other)) => {
                *cursor = start;
                std::mem::swap(&mut self.first, other);
                Document::read_at(cursor, bytes, &self.first)
            }
            _ => document,
        }
    }
}

/// What the reader of the feed is told of an object that cannot be read.
pub(super) fn rejection(Unreadable { error, known }: Unreadable) -> Rejection {
    let reason = match error {
        ReadError::Nameless => Reason::Nameless,
        ReadError::WrongKind => Reason::WrongKind,
        ReadError::TooLarge => Reason::TooLarge,
        _ => Reason::Malformed,
    };
    // The name of something of another kind is not the key of anything that is watched here.
    let key = known.key.filter(|_| reason != Reason::WrongKind);
    let position = known.version.filter(|version| !version.is_empty());
    Rejection::new(key, reason, error.to_string()).at(position)
}

/// Visits the members of the object at the cursor. Each visit consumes the member's value.
pub(super) fn members<'a>(
    cursor: &mut Cursor<'a>,
    mut visit: impl FnMut(&mut Cursor<'a>, &'a [u8]) -> Result<(), SyntaxError>,
) -> Result<(), SyntaxError> {
    cursor.expect(b'{', "an object")?;
    if cursor.closes_at_once(b'}')? {
        return Ok(());
    }
    loop {
        let name = cursor.name()?;
        visit(cursor, name.raw)?;
        if !cursor.more(b'}')? {
            return Ok(());
        }
    }
}

/// As [`members`], passing over a value that is no object, such as `null`.
pub(super) fn members_if_any<'a>(
    cursor: &mut Cursor<'a>,
    visit: impl FnMut(&mut Cursor<'a>, &'a [u8]) -> Result<(), SyntaxError>,
) -> Result<(), SyntaxError> {
    if cursor.peek()? == b'{' { members(cursor, visit) } else { cursor.skip().map(drop) }
}

/// Consumes a value and gives its text if it is a string with any text in it.
pub(super) fn text(cursor: &mut Cursor<'_>) -> Result<Option<String>, SyntaxError> {
    let text = cursor.string_or_other()?.and_then(|text| text.decode());
    Ok(text.filter(|text| !text.is_empty()).map(Into::into))
}
