use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use crate::json::{Cursor, MAX_DEPTH, SyntaxError, Text};
use crate::projection::{Kind, Node, Projection};
use crate::{Key, Uid, Version};

/// One object as a source delivers it, with its identity decoded and its body encoded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Document {
    /// Identity and metadata, readable without decoding the body.
    pub header: Header,
    /// The object as JSON, reduced by the [`Projection`] it was read with.
    pub body: Box<[u8]>,
    /// The range of `metadata` in the body.
    pub metadata: Range<u32>,
}

/// The identity of an object, and the metadata that most filters need.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The key of the object.
    pub key: Key,
    /// The uid of the object, if the source tells incarnations apart.
    pub uid: Option<Uid>,
    /// The version of the state. [Empty](Version::is_empty) if the source has no versions.
    pub version: Version,
    /// The generation, which grows when the desired state changes; 0 if the object has none.
    pub generation: i64,
    /// Whether the object is being deleted and waits for finalizers.
    pub deleting: bool,
    /// The uids of the owners.
    pub owners: Box<[Uid]>,
}

/// The error of bytes that are not an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Not JSON.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// Not UTF-8.
    #[error("invalid UTF-8")]
    Encoding,
    /// Without `metadata.name`.
    #[error("no metadata.name")]
    Nameless,
    /// Not of the [kind expected](Projection::expect_kind).
    #[error("an object of another kind")]
    WrongKind,
    /// 4 GiB or more.
    #[error("larger than 4 GiB")]
    TooLarge,
}

/// Bytes that are not an object, with the identity that could be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Unreadable {
    /// The error.
    #[source]
    pub error: ReadError,
    /// The identity that was read before the error.
    pub known: Known,
}

/// The identity of an object that cannot be read, as far as it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Known {
    /// The key of the object.
    pub key: Option<Key>,
    /// The version of the object.
    pub version: Option<Version>,
}

impl Header {
    /// A header with a key and a version, and nothing else.
    pub fn new(key: Key, version: Version) -> Self {
        Self { key, uid: None, version, generation: 0, deleting: false, owners: Box::default() }
    }
}

impl Document {
    /// Reads one object from exactly these bytes.
    pub fn read(bytes: &[u8], projection: &Projection) -> Result<Self, Unreadable> {
        let mut cursor = Cursor::new(bytes);
        let document = Self::read_at(&mut cursor, bytes, projection)?;
        cursor.end().map_err(|error| Unreadable {
            error: error.into(),
            known: Known {
                key: Some(document.header.key.clone()),
                version: Some(document.header.version.clone()),
            },
        })?;
        Ok(document)
    }

    /// Reads the object at the cursor, which is over `bytes`, and leaves the cursor behind it.
    pub fn read_at(
        cursor: &mut Cursor<'_>,
        bytes: &[u8],
        projection: &Projection,
    ) -> Result<Self, Unreadable> {
        let mut reader = Reader { cursor, projection, found: Found::default(), cuts: Vec::new() };
        match reader.read(bytes) {
            Ok(document) => Ok(document),
            Err(error) => {
                let known = Known { key: reader.found.certain_key(), version: reader.found.version.take() };
                Err(Unreadable { error, known })
            }
        }
    }

    /// An object whose name is not in its body: a row, a file without `metadata`. The body has to be JSON.
    pub fn named(key: Key, version: Version, body: Vec<u8>) -> Self {
        let header = Header::new(key, version);
        Self { header, body: body.into_boxed_slice(), metadata: 0..0 }
    }

    /// Reads the identity of an object from its first bytes.
    pub fn peek(prefix: &[u8], projection: &Projection) -> Known {
        match Self::read(prefix, projection) {
            Ok(Self { header, .. }) => Known { key: Some(header.key), version: Some(header.version) },
            Err(unreadable) => unreadable.known,
        }
    }
}

/// Walks an object once, collecting what the header needs and which bytes to leave out.
struct Reader<'c, 'a, 'p> {
    cursor: &'c mut Cursor<'a>,
    projection: &'p Projection,
    found: Found<'a>,
    /// Ascending, not overlapping.
    cuts: Vec<Range<usize>>,
}

#[derive(Default)]
struct Found<'a> {
    name: Option<Cow<'a, str>>,
    namespace: Option<Cow<'a, str>>,
    uid: Option<Uid>,
    version: Option<Version>,
    generation: i64,
    deleting: bool,
    owners: Vec<Uid>,
    metadata: Option<Range<usize>>,
    says_api_version: bool,
    says_kind: bool,
}

impl Found<'_> {
    /// The key, if what was not read cannot change it.
    fn certain_key(&self) -> Option<Key> {
        self.key().filter(|_| self.namespace.is_some() || self.metadata.is_some())
    }

    fn key(&self) -> Option<Key> {
        self.name.as_deref().map(|name| Key::new(self.namespace.as_deref(), name))
    }
}

/// Whose members are walked: the names mean something only in the first two places.
#[derive(Clone, Copy)]
enum Place {
    Top,
    Metadata,
    Elsewhere,
}

impl<'a> Reader<'_, 'a, '_> {
    fn read(&mut self, bytes: &[u8]) -> Result<Document, ReadError> {
        self.cursor.peek()?;
        let start = self.cursor.position();
        self.object(Place::Top, Some(&self.projection.root))?;
        let span = start..self.cursor.position();
        if span.len() >= u32::MAX as usize {
            return Err(ReadError::TooLarge);
        }
        let object = bytes.get(span.clone()).unwrap_or_default();
        std::str::from_utf8(object).map_err(|_| ReadError::Encoding)?;
        let key = self.found.key().ok_or(ReadError::Nameless)?;
        let found = std::mem::take(&mut self.found);
        let (body, metadata) =
            assemble(bytes, span, &self.cuts, self.missing_kind(&found).as_deref(), found.metadata.clone());
        let header = Header {
            key,
            uid: found.uid,
            version: found.version.unwrap_or_else(|| Version::from("")),
            generation: found.generation,
            deleting: found.deleting,
            owners: found.owners.into(),
        };
        Ok(Document { header, body, metadata })
    }

    /// The members that say the kind, as far as they are missing and wanted.
    fn missing_kind(&self, found: &Found<'_>) -> Option<String> {
        let kind = self.projection.kind.as_ref().filter(|kind| kind.complete)?;
        let mut members = String::new();
        if !found.says_api_version {
            let _ = write!(members, r#""apiVersion":"{}","#, kind.api_version);
        }
        if !found.says_kind {
            let _ = write!(members, r#""kind":"{}","#, kind.kind);
        }
        (!members.is_empty()).then_some(members)
    }

    /// Walks the members of an object and decides for each whether its bytes stay.
    fn object(&mut self, place: Place, node: Option<&Node>) -> Result<(), ReadError> {
        self.cursor.expect(b'{', "an object")?;
        if self.cursor.closes_at_once(b'}')? {
            return Ok(());
        }
        let mut comma_after_kept = None;
        loop {
            self.cursor.peek()?;
            let start = self.cursor.position();
            let name = self.cursor.name()?;
            let child = node.and_then(|node| node.child(name.raw));
            let keep = self.member(place, name, child)?;
            let end = self.cursor.position();
            let more = self.cursor.more(b'}')?;
            if keep {
                comma_after_kept = more.then(|| self.cursor.position() - 1);
            } else if more {
                self.cuts.push(start..self.cursor.position());
            } else {
                self.cut_last_member(comma_after_kept.unwrap_or(start)..end);
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// The last member goes with the comma before it, and with whatever was already cut behind that comma.
    fn cut_last_member(&mut self, cut: Range<usize>) {
        while self.cuts.last().is_some_and(|last| last.start >= cut.start) {
            self.cuts.pop();
        }
        self.cuts.push(cut);
    }

    /// Consumes a member's value and says whether to keep it.
    fn member(&mut self, place: Place, name: Text<'_>, node: Option<&Node>) -> Result<bool, ReadError> {
        let dropped = node.is_some_and(|node| node.dropped);
        match place {
            Place::Top => return self.top_member(name, node),
            Place::Metadata => {
                if self.metadata_member(name)? {
                    return Ok(!dropped);
                }
            }
            Place::Elsewhere => {}
        }
        match node {
            Some(node) if !dropped => self.value(node, MAX_DEPTH)?,
            _ => self.skip()?,
        }
        Ok(!dropped)
    }

    fn top_member(&mut self, name: Text<'_>, node: Option<&Node>) -> Result<bool, ReadError> {
        match name.raw {
            b"apiVersion" => {
                self.found.says_api_version = true;
                self.check_kind(|kind| &kind.api_version)?;
            }
            b"kind" => {
                self.found.says_kind = true;
                self.check_kind(|kind| &kind.kind)?;
            }
            b"metadata" if self.cursor.peek()? == b'{' => {
                let start = self.cursor.position();
                self.object(Place::Metadata, node)?;
                self.found.metadata = Some(start..self.cursor.position());
            }
            _ if self.projection.only_metadata => {
                self.cursor.skip()?;
                return Ok(false);
            }
            _ => return self.member(Place::Elsewhere, name, node),
        }
        Ok(true)
    }

    fn check_kind(&mut self, expected: impl Fn(&Kind) -> &str) -> Result<(), ReadError> {
        let said = self.cursor.string_or_other()?;
        match (said, &self.projection.kind) {
            (Some(said), Some(kind)) if said.raw != expected(kind).as_bytes() => Err(ReadError::WrongKind),
            _ => Ok(()),
        }
    }

    /// Reads the fields of `metadata` that the header needs; says whether it consumed the value.
    fn metadata_member(&mut self, name: Text<'_>) -> Result<bool, ReadError> {
        match name.raw {
            b"name" => self.found.name = self.text()?.filter(|name| !name.is_empty()),
            b"namespace" => self.found.namespace = self.text()?,
            b"uid" => self.found.uid = self.text()?.filter(|uid| !uid.is_empty()).map(|uid| Uid::from(&*uid)),
            b"resourceVersion" => self.found.version = self.text()?.map(|version| Version::from(&*version)),
            b"deletionTimestamp" => self.found.deleting = self.text()?.is_some(),
            b"generation" => self.found.generation = self.integer()?,
            b"ownerReferences" => self.owners()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn skip(&mut self) -> Result<(), ReadError> {
        self.cursor.skip()?;
        Ok(())
    }

    fn text(&mut self) -> Result<Option<Cow<'a, str>>, ReadError> {
        match self.cursor.string_or_other()? {
            None => Ok(None),
            Some(text) => text.decode().map(Some).ok_or(ReadError::Encoding),
        }
    }

    fn integer(&mut self) -> Result<i64, ReadError> {
        let number = self.cursor.raw()?;
        Ok(std::str::from_utf8(number).ok().and_then(|number| number.parse().ok()).unwrap_or(0))
    }

    fn owners(&mut self) -> Result<(), ReadError> {
        if self.cursor.peek()? != b'[' {
            return self.skip();
        }
        self.elements(|reader| {
            if reader.cursor.peek()? != b'{' {
                return reader.skip();
            }
            reader.cursor.expect(b'{', "an object")?;
            if reader.cursor.closes_at_once(b'}')? {
                return Ok(());
            }
            loop {
                if reader.cursor.name()?.raw == b"uid" {
                    let uid = reader.text()?;
                    reader.found.owners.extend(uid.map(|uid| Uid::from(&*uid)));
                } else {
                    reader.cursor.skip()?;
                }
                if !reader.cursor.more(b'}')? {
                    return Ok(());
                }
            }
        })
    }

    /// Walks a value below which something is to be dropped.
    fn value(&mut self, node: &Node, depth: u32) -> Result<(), ReadError> {
        match self.cursor.peek()? {
            b'{' => self.object(Place::Elsewhere, Some(node)),
            b'[' if depth == 0 => Err(SyntaxError::TooDeep { at: self.cursor.position() }.into()),
            b'[' => self.elements(|reader| reader.value(node, depth - 1)),
            _ => self.skip(),
        }
    }

    fn elements(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        self.cursor.expect(b'[', "a list")?;
        if self.cursor.closes_at_once(b']')? {
            return Ok(());
        }
        loop {
            each(self)?;
            if !self.cursor.more(b']')? {
                return Ok(());
            }
        }
    }
}

/// Copies what stays into one allocation of exactly the right size.
fn assemble(
    bytes: &[u8],
    span: Range<usize>,
    cuts: &[Range<usize>],
    prefix: Option<&str>,
    metadata: Option<Range<usize>>,
) -> (Box<[u8]>, Range<u32>) {
    let cut: usize = cuts.iter().map(ExactSizeIterator::len).sum();
    let prefix_len = prefix.map_or(0, str::len);
    let mut body = Vec::with_capacity(span.len() - cut + prefix_len);
    let mut from = span.start;
    if let Some(prefix) = prefix {
        body.push(b'{');
        body.extend_from_slice(prefix.as_bytes());
        from += 1;
    }
    for cut in cuts {
        body.extend_from_slice(&bytes[from..cut.start]);
        from = cut.end;
    }
    body.extend_from_slice(&bytes[from..span.end]);

    let moved = |at: usize| {
        let before: usize = cuts.iter().take_while(|cut| cut.end <= at).map(ExactSizeIterator::len).sum();
        (at - span.start - before + prefix_len) as u32
    };
    let metadata = metadata.map_or(0..0, |metadata| moved(metadata.start)..moved(metadata.end));
    (body.into_boxed_slice(), metadata)
}

#[cfg(test)]
mod tests;
