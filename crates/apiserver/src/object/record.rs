//! Objects as they are stored: the bytes that will be served.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::{Map, Value};
use watchkeeper_core::json::{Cursor, SyntaxError};
use watchkeeper_storage::{Entry, Revision};

/// The fingerprint of an object that is not what it would be read as, whatever the schema is.
pub(crate) const UNKNOWN: u64 = 0;

/// The version of the layout.
const FORMAT: u8 = 1;

/// Format, hole, fingerprint.
const HEADER: usize = 1 + 4 + 8;

/// How the JSON begins, up to the version itself.
const START: &[u8] = br#"{"apiVersion":""#;

/// The field of the metadata that the digits are in. It stands where its name belongs: after the labels.
const VERSION: &str = "resourceVersion";

/// The most digits a revision has.
const DIGITS: usize = 20;

/// An object as it is stored: its JSON without the digits of its `resourceVersion`, which is the revision of the commit
/// that wrote it and is known only afterwards.
///
/// Serving an object is copying two slices with the digits between them; nothing is parsed. The layout is one byte of
/// format, four bytes of where the digits go, eight bytes of fingerprint, and the JSON, numbers little-endian.
///
/// The fingerprint is that of the schema the object was written under. As long as it is still the schema's, the bytes are
/// what the object would be read as; otherwise it has to be pruned and defaulted again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    before: &'a [u8],
    after: &'a [u8],
    pub(crate) fingerprint: u64,
    pub(crate) revision: Revision,
}

/// The labels of an object, borrowed from its bytes.
#[derive(Debug, Default)]
pub(crate) struct Labels<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl Labels<'_> {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_ref())
    }
}

/// Bytes that no record consists of: something else wrote to the storage.
#[derive(Debug, thiserror::Error)]
#[error("{key} does not hold an object of a format this version knows")]
pub(crate) struct NotARecord {
    key: String,
}

impl<'a> Record<'a> {
    /// Reads a stored entry.
    pub(crate) fn read(entry: &'a Entry) -> Result<Self, NotARecord> {
        Self::parse(&entry.value, entry.modified).ok_or_else(|| NotARecord { key: entry.key.to_string() })
    }

    /// Reads bytes that [`encode`] made, as of a revision.
    pub(crate) fn parse(bytes: &'a [u8], revision: Revision) -> Option<Self> {
        let (format, rest) = bytes.split_first()?;
        let (hole, rest) = rest.split_first_chunk::<4>()?;
        let (fingerprint, json) = rest.split_first_chunk::<8>()?;
        let (before, after) = json.split_at_checked(u32::from_le_bytes(*hole) as usize)?;
        let fingerprint = u64::from_le_bytes(*fingerprint);
        (*format == FORMAT).then_some(Self { before, after, fingerprint, revision })
    }

    /// Whether two states say the same, whatever their revisions and the schemas they were written under.
    pub(crate) fn says_the_same_as(&self, other: &Self) -> bool {
        self.before == other.before && self.after == other.after
    }

    /// The same object, as of another revision: how a deletion tells of it.
    pub(crate) fn at(self, revision: Revision) -> Self {
        Self { revision, ..self }
    }

    /// Writes the JSON as it is served.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut digits = itoa_buffer();
        out.extend_from_slice(self.before);
        out.extend_from_slice(write_digits(self.revision, &mut digits));
        out.extend_from_slice(self.after);
    }

    /// The `apiVersion` it was stored with.
    pub(crate) fn api_version(&self) -> Option<&'a str> {
        let rest = self.before.strip_prefix(START)?;
        let end = rest.iter().position(|byte| *byte == b'"')?;
        std::str::from_utf8(&rest[..end]).ok()
    }

    /// Writes the JSON as [`write`](Self::write) does, as another version of the kind.
    pub(crate) fn write_as(&self, api_version: &str, out: &mut Vec<u8>) {
        match self.api_version() {
            Some(stored) if stored != api_version => {
                out.extend_from_slice(START);
                out.extend_from_slice(api_version.as_bytes());
                Self { before: &self.before[START.len() + stored.len()..], ..*self }.write(out);
            }
            _ => self.write(out),
        }
    }

    /// Writes the JSON as [`write_as`](Self::write_as) does, with `kind` first: how built-in kinds are served.
    pub(crate) fn write_kind_first(&self, api_version: &str, out: &mut Vec<u8>) {
        let Some((kind, rest)) = self.kind() else { return self.write_as(api_version, out) };
        out.extend_from_slice(br#"{"kind":"#);
        out.extend_from_slice(kind);
        out.extend_from_slice(br#","apiVersion":""#);
        out.extend_from_slice(api_version.as_bytes());
        out.push(b'"');
        Self { before: rest, ..*self }.write(out);
    }

    /// The kind with its quotes, and what follows it.
    fn kind(&self) -> Option<(&'a [u8], &'a [u8])> {
        let length = self.typed_part()?;
        let start = START.len() + self.api_version()?.len() + br#"","kind":"#.len();
        // The comma belongs to what follows.
        Some((self.before.get(start..length - 1)?, self.before.get(length - 1..)?))
    }

    /// Writes the JSON as [`write`](Self::write) does, without `apiVersion` and `kind`: in lists of built-in kinds, the
    /// list says that for all of them.
    pub(crate) fn write_untyped(&self, out: &mut Vec<u8>) {
        match self.typed_part() {
            Some(length) => {
                out.push(b'{');
                Self { before: &self.before[length..], ..*self }.write(out);
            }
            None => self.write(out),
        }
    }

    /// How many bytes say which version and kind it is, up to the first field that does not.
    fn typed_part(&self) -> Option<usize> {
        const KIND: &[u8] = br#"","kind":""#;
        let rest = &self.before[START.len() + self.api_version()?.len()..];
        let end = rest.strip_prefix(KIND)?.iter().position(|byte| *byte == b'"')?;
        // After the quote comes a comma: the metadata is still to come.
        Some(self.before.len() - rest.len() + KIND.len() + end + 2)
    }

    /// The most bytes that [`write`](Self::write) writes.
    pub(crate) fn size(&self) -> usize {
        self.before.len() + DIGITS + self.after.len()
    }

    /// The JSON as it is served.
    pub(crate) fn json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size());
        self.write(&mut out);
        out
    }

    /// Its labels.
    ///
    /// Nothing that comes after them is looked at. They come before the version.
    pub(crate) fn labels(&self) -> Result<Labels<'a>, SyntaxError> {
        let mut json = Cursor::new(self.before);
        for field in ["metadata", "labels"] {
            json.expect(b'{', "an object")?;
            while json.name()?.raw != field.as_bytes() {
                // Between these quotes are the digits that are not stored, and labels do not follow.
                if json.position() + 1 == self.before.len() {
                    return Ok(Labels::default());
                }
                json.skip()?;
                json.expect(b',', "a comma")?;
            }
        }
        let mut labels = Labels::default();
        if json.peek()? != b'{' {
            return Ok(labels);
        }
        json.expect(b'{', "an object")?;
        if json.closes_at_once(b'}')? {
            return Ok(labels);
        }
        loop {
            if let (Some(name), Some(value)) = (json.name()?.decode(), json.string()?.decode()) {
                labels.0.push((name, value));
            }
            if !json.more(b'}')? {
                return Ok(labels);
            }
        }
    }

    /// The object.
    pub(crate) fn object(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.json())
    }
}

fn itoa_buffer() -> [u8; DIGITS] {
    [0; DIGITS]
}

/// The decimal digits of a number, at the end of the buffer.
fn write_digits(mut number: u64, buffer: &mut [u8; DIGITS]) -> &[u8] {
    let mut at = DIGITS;
    loop {
        at -= 1;
        buffer[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &buffer[at..];
        }
    }
}

/// Makes the stored form of an object; whatever `resourceVersion` it has is left out.
pub(crate) fn encode(object: &Value, fingerprint: u64) -> Bytes {
    let mut json = Json { bytes: Vec::with_capacity(1024), hole: 0 };
    json.bytes.extend_from_slice(&[0; HEADER]);
    json.object(object);
    let hole = u32::try_from(json.hole - HEADER).unwrap_or(u32::MAX);
    json.bytes[0] = FORMAT;
    json.bytes[1..5].copy_from_slice(&hole.to_le_bytes());
    json.bytes[5..HEADER].copy_from_slice(&fingerprint.to_le_bytes());
    // Copied, not shrunk: what shrinks leaves a hole behind it, and there are as many of these as there are objects.
    Bytes::copy_from_slice(&json.bytes)
}

struct Json {
    bytes: Vec<u8>,
    hole: usize,
}

impl Json {
    fn object(&mut self, object: &Value) {
        let none = Map::new();
        let fields = object.as_object().unwrap_or(&none);
        self.bytes.extend_from_slice(START);
        // No version has a character that JSON would escape.
        self.bytes.extend_from_slice(
            fields.get("apiVersion").and_then(Value::as_str).unwrap_or_default().as_bytes(),
        );
        self.bytes.push(b'"');
        let mut first = false;
        if let Some(kind) = fields.get("kind") {
            self.field("kind", &mut first);
            self.value(kind);
        }
        self.field("metadata", &mut first);
        self.metadata(fields.get("metadata").and_then(Value::as_object).unwrap_or(&none));
        let others =
            fields.iter().filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
        for (name, value) in others {
            self.field(name, &mut first);
            self.value(value);
        }
        self.bytes.push(b'}');
    }

    fn metadata(&mut self, metadata: &Map<String, Value>) {
        self.bytes.push(b'{');
        let mut first = true;
        let is_before = |name: &str| name < VERSION;
        for (name, value) in metadata.iter().filter(|(name, _)| is_before(name)) {
            self.field(name, &mut first);
            self.value(value);
        }
        self.field(VERSION, &mut first);
        self.bytes.push(b'"');
        self.hole = self.bytes.len();
        self.bytes.push(b'"');
        for (name, value) in metadata.iter().filter(|(name, _)| !is_before(name) && *name != VERSION) {
            self.field(name, &mut first);
            self.value(value);
        }
        self.bytes.push(b'}');
    }

    fn field(&mut self, name: &str, first: &mut bool) {
        if !std::mem::take(first) {
            self.bytes.push(b',');
        }
        self.value(&Value::String(name.to_owned()));
        self.bytes.push(b':');
    }

    fn value(&mut self, value: &Value) {
        // Writing a value to a vector cannot fail: there is no I/O, and all keys are strings.
        let _ = serde_json::to_writer(&mut self.bytes, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_comes_back_with_the_revision_as_its_version() {
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "a", "resourceVersion": "7", "uid": "u"},
            "spec": {"metadata": {"resourceVersion": "inner"}, "text": "\"resourceVersion\":\"\""},
        });
        let bytes = encode(&object, 42);
        for revision in [0, 9, 10, 123_456, u64::MAX] {
            let record = Record::parse(&bytes, revision).unwrap();
            let mut expected = object.clone();
            expected["metadata"]["resourceVersion"] = revision.to_string().into();
            assert_eq!(record.object().unwrap(), expected);
            assert_eq!(record.fingerprint, 42);
            assert!(record.json().len() <= record.size());
        }
    }

    #[test]
    fn labels_are_found_wherever_they_are() {
        let labels = json!({"app": "web", "quoted": "a \"b\" \u{1f980}", "empty": ""});
        for object in [
            json!({"apiVersion": "v1", "kind": "Widget", "metadata": {
                "annotations": {"labels": "{\"app\":\"no\"}"}, "labels": labels, "name": "a"}}),
            json!({"apiVersion": "v1", "data": {"metadata": {"labels": {"app": "no"}}}, "metadata": {
                "labels": labels, "resourceVersion": "7"}, "spec": {"labels": {"app": "no"}}}),
        ] {
            let bytes = encode(&object, 0);
            let found = Record::parse(&bytes, 3).unwrap().labels().unwrap();
            for (name, value) in labels.as_object().unwrap() {
                assert_eq!(found.get(name), value.as_str());
            }
            assert_eq!(found.get("nope"), None);
        }
        for metadata in
            [json!({}), json!({"labels": {}}), json!({"labels": null}), json!({"name": "a", "uid": "labels"})]
        {
            let bytes = encode(&json!({"metadata": metadata, "spec": {"labels": {"app": "no"}}}), 0);
            let found = Record::parse(&bytes, 3).unwrap().labels().unwrap();
            assert_eq!(found.get("app"), None);
        }
    }

    #[test]
    fn labels_are_found_where_the_metadata_was_stored_last() {
        let (before, after) = (
            r#"{"apiVersion":"v1","spec":{"labels":{"app":"no"}},"metadata":{"labels":{"app":"web"},"resourceVersion":""#,
            "\"}}",
        );
        let record =
            Record { before: before.as_bytes(), after: after.as_bytes(), fingerprint: 0, revision: 3 };
        assert_eq!(record.labels().unwrap().get("app"), Some("web"));
    }

    #[test]
    fn an_object_without_metadata_gets_a_version_all_the_same() {
        let bytes = encode(&json!({"apiVersion": "v1", "a": 1}), 0);
        let record = Record::parse(&bytes, 3).unwrap();
        let expected = json!({"apiVersion": "v1", "metadata": {"resourceVersion": "3"}, "a": 1});
        assert_eq!(record.object().unwrap(), expected);
    }

    #[test]
    fn an_object_can_be_served_as_another_version() {
        let bytes =
            encode(&json!({"apiVersion": "example.com/v1", "a": {"apiVersion": "example.com/v1"}}), 0);
        let record = Record::parse(&bytes, 3).unwrap();
        assert_eq!(record.api_version(), Some("example.com/v1"));
        for version in ["example.com/v1", "example.com/v1beta1"] {
            let mut out = Vec::new();
            record.write_as(version, &mut out);
            let object: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(object["apiVersion"], version);
            assert_eq!(object["a"]["apiVersion"], "example.com/v1");
            assert_eq!(object["metadata"]["resourceVersion"], "3");
        }
    }

    #[test]
    fn an_item_of_a_list_does_not_say_its_kind() {
        for object in [
            json!({"apiVersion": "v1", "kind": "Secret", "data": {}}),
            json!({"apiVersion": "v1", "kind": "Secret"}),
        ] {
            let bytes = encode(&object, 0);
            let mut out = Vec::new();
            Record::parse(&bytes, 3).unwrap().write_untyped(&mut out);
            let item: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(item["metadata"]["resourceVersion"], "3");
            assert!(item.get("kind").is_none() && item.get("apiVersion").is_none());
            assert_eq!(item.get("data"), object.get("data"));
        }
    }

    #[test]
    fn a_built_in_object_begins_with_its_kind_and_others_are_in_the_order_of_names() {
        let object =
            json!({"apiVersion": "v1", "kind": "Secret", "data": {}, "metadata": {"name": "a", "uid": "u"}});
        let bytes = encode(&object, 0);
        let record = Record::parse(&bytes, 3).unwrap();
        let mut out = Vec::new();
        record.write_kind_first("v2", &mut out);
        let metadata = r#""metadata":{"name":"a","resourceVersion":"3","uid":"u"},"data":{}}"#;
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!(r#"{{"kind":"Secret","apiVersion":"v2",{metadata}"#)
        );
        let text = String::from_utf8(record.json()).unwrap();
        assert_eq!(text, format!(r#"{{"apiVersion":"v1","kind":"Secret",{metadata}"#));
        let bytes = encode(&json!({"apiVersion": "v1"}), 0);
        let mut out = Vec::new();
        Record::parse(&bytes, 3).unwrap().write_kind_first("v1", &mut out);
        assert_eq!(out, br#"{"apiVersion":"v1","metadata":{"resourceVersion":"3"}}"#, "it has none");
    }

    #[test]
    fn bytes_of_another_format_are_refused() {
        let good = encode(&json!({}), 0);
        assert!(Record::parse(&[], 1).is_none());
        assert!(Record::parse(&good[..HEADER - 1], 1).is_none());
        assert!(Record::parse(b"{}", 1).is_none());
        let mut other = good.to_vec();
        other[0] = 2;
        assert!(Record::parse(&other, 1).is_none());
        let mut far = good.to_vec();
        far[1..5].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(Record::parse(&far, 1).is_none());
    }
}
