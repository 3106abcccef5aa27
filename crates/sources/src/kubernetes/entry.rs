//! One line of a watch.

use watchkeeper_core::json::{Cursor, SyntaxError, Text};
use watchkeeper_core::text::bounded;
use watchkeeper_core::{Document, Reason, Rejection, Unreadable, Version};
use watchkeeper_wire::Status;

use super::frames::Line;
use super::kinds::{self, Kinds};

/// The annotation of the bookmark that ends the initial entries of a streamed list.
const INITIAL_EVENTS_END: &[u8] = b"k8s.io/initial-events-end";

/// What a line of a watch says.
#[derive(Debug)]
pub(super) enum Entry {
    /// An object was there, was created or was changed.
    Put { document: Document, added: bool },
    /// An object is gone.
    Delete(Document),
    /// The watch has reached this version; if `complete`, everything that was there before has been told.
    Bookmark { version: Version, complete: bool },
    /// The server gives up.
    Failed(Status),
    /// The line could not be understood.
    Rejected(Rejection),
}

impl Entry {
    /// Reads a line in one pass, if `type` stands before `object` as servers write it.
    pub(super) fn read(line: Line<'_>, kinds: &mut Kinds) -> Self {
        match line {
            Line::Whole(line) => Reader::of(line, kinds).read(),
            Line::TooLong(prefix) => {
                let entry = Reader::of(prefix, kinds).read();
                let detail = format!("an entry of more than {} bytes", prefix.len());
                Self::Rejected(entry.into_rejection().because(Reason::TooLarge, detail))
            }
        }
    }

    /// As a rejection, with what is known of the object.
    fn into_rejection(self) -> Rejection {
        let (key, position) = match self {
            Self::Rejected(rejection) => return rejection,
            Self::Put { document: Document { header, .. }, .. } | Self::Delete(Document { header, .. }) => {
                (Some(header.key), Some(header.version))
            }
            Self::Bookmark { version, .. } => (None, Some(version)),
            Self::Failed(_) => (None, None),
        };
        let position = position.filter(|version| !version.is_empty());
        Rejection::new(key, Reason::Malformed, String::new()).at(position)
    }
}

/// What the `type` of a line says.
#[derive(Clone, Copy)]
enum Kind<'a> {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
    Unknown(Option<Text<'a>>),
}

impl<'a> Kind<'a> {
    fn of(text: Option<Text<'a>>) -> Self {
        match text.map(|text| text.raw) {
            Some(b"ADDED") => Self::Added,
            Some(b"MODIFIED") => Self::Modified,
            Some(b"DELETED") => Self::Deleted,
            Some(b"BOOKMARK") => Self::Bookmark,
            Some(b"ERROR") => Self::Error,
            _ => Self::Unknown(text),
        }
    }
}

struct Reader<'a, 'k> {
    line: &'a [u8],
    kinds: &'k mut Kinds,
    /// What the object turned out to be.
    entry: Option<Entry>,
    /// Whether the entry says that its object is gone.
    deletes: bool,
}

impl<'a, 'k> Reader<'a, 'k> {
    fn of(line: &'a [u8], kinds: &'k mut Kinds) -> Self {
        Self { line, kinds, entry: None, deletes: false }
    }

    fn read(mut self) -> Entry {
        let walked = self.walk();
        let deletes = self.deletes;
        match self.entry(walked) {
            // To name the object would mean that its last good state stays, and it must not.
            Entry::Rejected(mut rejection) if deletes => {
                rejection.key = None;
                Entry::Rejected(rejection)
            }
            entry => entry,
        }
    }

    fn entry(self, walked: Result<(), SyntaxError>) -> Entry {
        match walked {
            Ok(()) => {
                self.entry.unwrap_or_else(|| rejected(Reason::Nameless, "an entry without an object".into()))
            }
            // The line breaks off or breaks down around the object: what was read of it may name it, no more.
            Err(error) => Entry::Rejected(match self.entry {
                Some(entry @ Entry::Rejected(_)) | Some(entry @ Entry::Failed(_)) => return entry,
                Some(entry) => entry.into_rejection().because(Reason::Malformed, error.to_string()),
                None => Rejection::new(None, Reason::Malformed, error.to_string()),
            }),
        }
    }

    fn walk(&mut self) -> Result<(), SyntaxError> {
        let mut cursor = Cursor::new(self.line);
        let mut kind = None;
        let mut object_before_type = None;
        kinds::members(&mut cursor, |cursor, name| {
            match name {
                b"type" => kind = Some(Kind::of(cursor.string_or_other()?)),
                b"object" => match kind {
                    Some(kind) => self.object(kind, cursor)?,
                    None => {
                        object_before_type = Some(cursor.clone());
                        cursor.skip()?;
                    }
                },
                _ => {
                    cursor.skip()?;
                }
            }
            Ok(())
        })?;
        if let Some(mut object) = object_before_type {
            self.object(kind.unwrap_or(Kind::Unknown(None)), &mut object)?;
        }
        if self.entry.is_none() && kind.is_none() {
            self.entry = Some(rejected(Reason::UnknownEntry, "an entry without a type".into()));
        }
        cursor.end()
    }

    /// Reads the object as what its `type` makes of it.
    fn object(&mut self, kind: Kind<'a>, cursor: &mut Cursor<'a>) -> Result<(), SyntaxError> {
        self.deletes = matches!(kind, Kind::Deleted);
        self.entry = Some(match kind {
            Kind::Added | Kind::Modified | Kind::Deleted => match self.document(cursor)? {
                Err(unreadable) => Entry::Rejected(kinds::rejection(unreadable)),
                Ok(document) => match kind {
                    Kind::Deleted => Entry::Delete(document),
                    _ => Entry::Put { document, added: matches!(kind, Kind::Added) },
                },
            },
            Kind::Bookmark => bookmark(cursor)?,
            Kind::Error => Entry::Failed(Status::read(cursor.raw()?)),
            Kind::Unknown(text) => {
                let detail = match text.and_then(|text| text.decode()) {
                    Some(text) => format!("an entry of type {:?}", bounded(&text)),
                    None => "an entry without a type".into(),
                };
                let known = match self.document(cursor)? {
                    Err(unreadable) => kinds::rejection(unreadable),
                    Ok(document) => Entry::Delete(document).into_rejection(),
                };
                Entry::Rejected(known.because(Reason::UnknownEntry, detail))
            }
        });
        Ok(())
    }

    /// Reads an object; of one that is no good, walks over the rest of it to see whether the line is whole.
    fn document(&mut self, cursor: &mut Cursor<'a>) -> Result<Result<Document, Unreadable>, SyntaxError> {
        let mut start = cursor.clone();
        let document = self.kinds.read_at(cursor, self.line);
        if let Err(unreadable) = &document {
            // Remembered first: if the rest cannot be walked, this is what is known.
            self.entry = Some(Entry::Rejected(kinds::rejection(unreadable.clone())));
            start.skip()?;
            *cursor = start;
        }
        Ok(document)
    }
}

/// A bookmark's object has a version and nothing that identifies it.
fn bookmark(cursor: &mut Cursor<'_>) -> Result<Entry, SyntaxError> {
    let mut version = None;
    let mut complete = false;
    kinds::members_if_any(cursor, |cursor, name| match name {
        b"metadata" => kinds::members_if_any(cursor, |cursor, name| match name {
            b"resourceVersion" => {
                version = kinds::text(cursor)?;
                Ok(())
            }
            b"annotations" => kinds::members_if_any(cursor, |cursor, name| {
                let value = kinds::text(cursor)?;
                complete |= name == INITIAL_EVENTS_END && value.as_deref() == Some("true");
                Ok(())
            }),
            _ => cursor.skip().map(drop),
        }),
        _ => cursor.skip().map(drop),
    })?;
    Ok(match version {
        Some(version) => Entry::Bookmark { version: Version::from(&*version), complete },
        None => rejected(Reason::Malformed, "a bookmark without a resourceVersion".into()),
    })
}

fn rejected(reason: Reason, detail: String) -> Entry {
    Entry::Rejected(Rejection::new(None, reason, detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use watchkeeper_core::{Key, Projection};

    fn pods() -> Kinds {
        Kinds::one(Projection::default().complete_kind("v1", "Pod"))
    }

    fn read(line: &str) -> Entry {
        Entry::read(Line::Whole(line.as_bytes()), &mut pods())
    }

    fn rejection(entry: Entry) -> Rejection {
        match entry {
            Entry::Rejected(rejection) => rejection,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_delete_that_cannot_be_read_names_nobody_so_that_nobody_is_kept() {
        let line = format!(
            r#"{{"type":"DELETED","object":{{"metadata":{{"name":"a","namespace":"n"}},"x":"{}""#,
            "x".repeat(100)
        );
        let entry = Entry::read(Line::TooLong(line.as_bytes()), &mut pods());
        assert_eq!(rejection(entry).key, None);
        let line = line.replace("DELETED", "MODIFIED");
        let entry = Entry::read(Line::TooLong(line.as_bytes()), &mut pods());
        assert_eq!(rejection(entry).key, Some(Key::new(Some("n"), "a")));
    }

    const OBJECT: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","resourceVersion":"7"},"x":1}"#;

    #[test]
    fn the_three_kinds_of_change_are_told_apart_whatever_the_order_of_the_members() {
        for object in [
            format!(r#"{{"type":"ADDED","object":{OBJECT}}}"#),
            format!(r#" {{ "object" : {OBJECT} , "new": [1], "type" : "ADDED" }} "#),
        ] {
            match read(&object) {
                Entry::Put { document, added: true } => assert_eq!(&*document.body, OBJECT.as_bytes()),
                other => panic!("{other:?}"),
            }
        }
        let modified = read(&format!(r#"{{"type":"MODIFIED","object":{OBJECT}}}"#));
        assert!(matches!(modified, Entry::Put { added: false, .. }));
        let deleted = read(&format!(r#"{{"type":"DELETED","object":{OBJECT}}}"#));
        assert!(matches!(deleted, Entry::Delete(document) if document.header.version == Version::from(7)));
    }

    #[test]
    fn bookmarks_carry_a_version_and_perhaps_the_end_of_the_initial_entries() {
        let bookmark = |metadata: &str| {
            read(&format!(
                r#"{{"type":"BOOKMARK","object":{{"kind":"Pod","metadata":{metadata},"spec":{{}}}}}}"#
            ))
        };
        for (metadata, expected) in [
            (r#"{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}"#, true),
            (
                r#"{"annotations":{"k8s.io/initial-events-end":"false","a":"true"},"resourceVersion":"9"}"#,
                false,
            ),
            (r#"{"annotations":null,"resourceVersion":"9"}"#, false),
        ] {
            match bookmark(metadata) {
                Entry::Bookmark { version, complete } => {
                    assert_eq!((version, complete), (Version::from(9), expected));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(rejection(bookmark("{}")).reason, Reason::Malformed);
        assert_eq!(rejection(bookmark("null")).reason, Reason::Malformed);
    }

    #[test]
    fn what_cannot_be_understood_is_rejected_with_what_is_known_of_it() {
        let cases = [
            ("garbage", Reason::Malformed, false),
            ("{}", Reason::UnknownEntry, false),
            (r#"{"type":"ADDED"}"#, Reason::Nameless, false),
            (r#"{"type":"ADDED","object":null}"#, Reason::Malformed, false),
            (r#"{"type":"ADDED","object":{"metadata":{}}}"#, Reason::Nameless, false),
            (
                r#"{"type":"ADDED","object":{"kind":"Table","metadata":{"name":"a"}}}"#,
                Reason::WrongKind,
                false,
            ),
            (
                r#"{"type":"ADDED","object":{"metadata":{"name":"a"},"kind":"Table"}}"#,
                Reason::WrongKind,
                false,
            ),
            (
                r#"{"type":"RENAMED","object":{"metadata":{"name":"a","resourceVersion":"7"}}}"#,
                Reason::UnknownEntry,
                true,
            ),
            (r#"{"type":7,"object":{"metadata":{"name":"a"}}}"#, Reason::UnknownEntry, true),
            (
                r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"},"x":tru}}"#,
                Reason::Malformed,
                true,
            ),
            (r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}}"#, Reason::Malformed, true),
            (r#"{"type":"ADDED","object":{"metadata":{"name":"a"},"x":[1,"#, Reason::Malformed, true),
        ];
        for (line, reason, named) in cases {
            let rejection = rejection(read(line));
            assert_eq!(rejection.reason, reason, "{line}");
            assert_eq!(rejection.key, named.then(|| Key::new(None, "a")), "{line}");
        }
    }

    #[test]
    fn an_entry_that_is_too_large_is_named_from_its_beginning() {
        let line = format!(r#"{{"type":"MODIFIED","object":{OBJECT}}}"#);
        let cut = line.find(r#""x""#).unwrap();
        let rejection = rejection(Entry::read(Line::TooLong(&line.as_bytes()[..cut]), &mut pods()));
        assert_eq!(rejection.reason, Reason::TooLarge);
        assert_eq!(rejection.key, Some(Key::new(Some("n"), "a")));
        assert_eq!(rejection.position, Some(Version::from(7)));
    }

    #[test]
    fn invalid_utf8_is_rejected_with_its_key() {
        let line = b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"},\"x\":\"\xff\"}}";
        let rejection = rejection(Entry::read(Line::Whole(line), &mut pods()));
        assert_eq!((rejection.reason, rejection.key), (Reason::Malformed, Some(Key::new(None, "a"))));
    }

    #[test]
    fn metadata_may_come_as_itself_or_within_whole_objects() {
        let whole = Projection::default().metadata_only().complete_kind("v1", "Pod");
        let partial =
            Projection::default().metadata_only().expect_kind("meta.k8s.io/v1", "PartialObjectMetadata");
        let mut kinds = Kinds::either(partial, whole);
        let as_metadata =
            r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}"#;
        let as_pod = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{}}"#;
        let as_table = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}"#;
        for (object, body) in [
            (as_metadata, Some(as_metadata)),
            (as_pod, Some(r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#)),
            (as_table, None),
            (as_metadata, Some(as_metadata)),
        ] {
            let line = format!(r#"{{"type":"ADDED","object":{object}}}"#);
            match (Entry::read(Line::Whole(line.as_bytes()), &mut kinds), body) {
                (Entry::Put { document, .. }, Some(body)) => assert_eq!(&*document.body, body.as_bytes()),
                (Entry::Rejected(rejection), None) => assert_eq!(rejection.reason, Reason::WrongKind),
                (other, _) => panic!("{other:?}"),
            }
        }
    }
}
