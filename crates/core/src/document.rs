use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use crate::json::{Cursor, MAX_DEPTH, SyntaxError, Text};
use crate::projection::{Kind, Node, Projection};
use crate::{Key, Uid, Version};

/// One object as a source delivers it: what identifies it is read, its body is still encoded.
#[derive(Clone, Debug)]
pub struct Document {
    /// What is known without decoding the body.
    pub header: Header,
    /// The object as JSON, reduced by the [`Projection`] it was read with.
    pub body: Box<[u8]>,
    /// Where in the body the value of `metadata` stands.
    pub metadata: Range<u32>,
}

/// What identifies an object and what most filters ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which object.
    pub key: Key,
    /// Which incarnation of it, if the source tells incarnations apart.
    pub uid: Option<Uid>,
    /// Which state of it. [Empty](Version::is_empty) if the source has no versions.
    pub version: Version,
    /// Moves when the desired state moves; 0 if the object has none.
    pub generation: i64,
    /// Whether its deletion was asked for and waits for finalizers.
    pub deleting: bool,
    /// The uids of its owners.
    pub owners: Box<[Uid]>,
}

/// Why bytes are not an object.
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

/// Bytes that are not an object, with what could be made out of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Unreadable {
    /// What is wrong.
    #[source]
    pub error: ReadError,
    /// What was read before that was found.
    pub known: Known,
}

/// What could be made out of an object that cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Which object.
    pub key: Option<Key>,
    /// Which state of it.
    pub version: Option<Version>,
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

    /// What can be made out of the beginning of an object that is cut off.
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"shop",
        "uid":"0b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a10","resourceVersion":"512","generation":3,
        "deletionTimestamp":"2026-01-01T00:00:00Z","managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{}}}],
        "ownerReferences":[{"kind":"ReplicaSet","name":"web","uid":"u-1"},{"uid":"u-2","controller":true}]},
        "spec":{"containers":[{"name":"a","env":[1]},{"env":[2],"name":"b"}]}}"#;

    #[test]
    fn the_header_is_read_and_managed_fields_are_gone() {
        let document = Document::read(POD.as_bytes(), &Projection::default()).unwrap();
        let header = &document.header;
        assert_eq!(header.key, Key::new(Some("shop"), "web-0"));
        assert_eq!(header.version, Version::from(512));
        assert_eq!(header.uid, Some(Uid::from("0b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a10")));
        assert_eq!((header.generation, header.deleting), (3, true));
        assert_eq!(*header.owners, [Uid::from("u-1"), Uid::from("u-2")]);

        let mut expected: Value = serde_json::from_str(POD).unwrap();
        expected["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(serde_json::from_slice::<Value>(&document.body).unwrap(), expected);
        let span = document.metadata.start as usize..document.metadata.end as usize;
        assert_eq!(serde_json::from_slice::<Value>(&document.body[span]).unwrap(), expected["metadata"]);
    }

    #[test]
    fn an_object_without_a_kind_is_given_one_if_asked() {
        let json = br#"{"metadata":{"name":"a"},"data":{}}"#;
        let document = Document::read(json, &Projection::default().complete_kind("v1", "ConfigMap")).unwrap();
        let value: Value = serde_json::from_slice(&document.body).unwrap();
        assert_eq!(
            value,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {}})
        );
        let span = document.metadata.start as usize..document.metadata.end as usize;
        assert_eq!(&document.body[span], br#"{"name":"a"}"#);

        let json = br#"{"apiVersion":"v1","metadata":{"name":"a"}}"#;
        let document = Document::read(json, &Projection::default().complete_kind("v1", "ConfigMap")).unwrap();
        assert_eq!(&*document.body, br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}"#);
    }

    #[test]
    fn an_object_of_another_kind_is_refused() {
        let projection = Projection::default().expect_kind("v1", "Secret");
        let unreadable = Document::read(POD.as_bytes(), &projection).unwrap_err();
        assert_eq!(unreadable.error, ReadError::WrongKind);
    }

    #[test]
    fn what_is_known_of_a_broken_object_is_told() {
        let cut = POD.find("\"namespace\"").unwrap();
        let known = Document::peek(&POD.as_bytes()[..cut], &Projection::default());
        assert_eq!(known.key, None, "it may have a namespace yet");
        let cut = POD.find("generation").unwrap();
        let known = Document::peek(&POD.as_bytes()[..cut], &Projection::default());
        assert_eq!(known.key, Some(Key::new(Some("shop"), "web-0")));
        assert_eq!(known.version, Some(Version::from(512)));
        assert_eq!(Document::peek(b"{\"meta", &Projection::default()), Known::default());
    }

    #[test]
    fn an_object_needs_a_name_and_has_to_be_an_object() {
        for (json, error) in [
            (&b"{\"metadata\":{\"name\":\"\"}}"[..], ReadError::Nameless),
            (b"{}", ReadError::Nameless),
            (b"{\"metadata\":[]}", ReadError::Nameless),
            (b"{\"metadata\":{\"name\":7}}", ReadError::Nameless),
            (b"{\"metadata\":{\"name\":\"\xff\"}}", ReadError::Encoding),
            (b"{\"metadata\":{\"name\":\"a\"},\"x\":\"\xc3\"}", ReadError::Encoding),
            (b"[]", SyntaxError::Unexpected { at: 0, expected: "an object" }.into()),
            (
                b"{\"metadata\":{\"name\":\"a\"}}x",
                SyntaxError::Unexpected { at: 25, expected: "the end" }.into(),
            ),
        ] {
            let unreadable = Document::read(json, &Projection::default()).unwrap_err();
            assert_eq!(unreadable.error, error, "{}", String::from_utf8_lossy(json));
        }
    }

    #[test]
    fn depth_is_limited_on_the_way_to_a_dropped_field_too() {
        let json = format!(r#"{{"metadata":{{"name":"a"}},"a":{}"#, "[".repeat(1_000_000));
        let unreadable = Document::read(json.as_bytes(), &Projection::default().drop("/a/b")).unwrap_err();
        assert!(matches!(unreadable.error, ReadError::Syntax(SyntaxError::TooDeep { .. })));
    }

    #[test]
    fn odd_types_in_metadata_are_passed_over() {
        let json =
            br#"{"metadata":{"name":"a","uid":null,"namespace":null,"generation":"x","ownerReferences":[1,{},
            {"uid":null}],"resourceVersion":null,"deletionTimestamp":null}}"#;
        let header = Document::read(json, &Projection::default()).unwrap().header;
        assert!(
            header.version.is_empty() && header.uid.is_none() && !header.deleting && header.owners.is_empty()
        );
    }

    /// The slow and obvious way to do what a projection does.
    fn project(value: &mut Value, pointer: &[&str]) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| project(item, pointer)),
            Value::Object(members) => match pointer {
                [last] => drop(members.remove(*last)),
                [first, rest @ ..] => {
                    if let Some(child) = members.get_mut(*first) {
                        project(child, rest);
                    }
                }
                [] => {}
            },
            _ => {}
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-d]", inner), 0..5)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        #[test]
        fn dropping_bytes_equals_dropping_fields(
            spec in any_value(),
            pointers in prop::collection::vec(prop::collection::vec("[a-d]", 1..4), 0..4),
            pretty in any::<bool>(),
        ) {
            let object = json!({"metadata": {"name": "x", "managedFields": spec}, "a": spec, "b": {"a": spec, "c": 1}});
            let mut projection = Projection::default();
            let mut expected = object.clone();
            project(&mut expected, &["metadata", "managedFields"]);
            for pointer in &pointers {
                projection = projection.drop(&format!("/{}", pointer.join("/")));
                project(&mut expected, &pointer.iter().map(String::as_str).collect::<Vec<_>>());
            }
            let bytes = if pretty { serde_json::to_vec_pretty(&object) } else { serde_json::to_vec(&object) }.unwrap();
            let document = Document::read(&bytes, &projection).unwrap();
            prop_assert_eq!(serde_json::from_slice::<Value>(&document.body).unwrap(), expected);
            let span = document.metadata.start as usize..document.metadata.end as usize;
            prop_assert_eq!(&document.body[span.start..span.start + 1], b"{");
            prop_assert_eq!(&document.body[span.end - 1..span.end], b"}");
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0..200usize) {
            let _ = Document::read(&bytes, &Projection::default());
            let mut damaged = POD.as_bytes().to_vec();
            let end = (at + bytes.len()).min(damaged.len());
            damaged.splice(at..end, bytes);
            if let Ok(document) = Document::read(&damaged, &Projection::default()) {
                prop_assert!(serde_json::from_slice::<Value>(&document.body).is_ok());
            }
        }
    }
}
