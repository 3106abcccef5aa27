//! The objects: custom resources, the smallest of them about 600 bytes on the wire with what the server adds.

use memchr::memmem;
use serde_json::json;

/// Where definitions are created.
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Objects with the same shard are one in this many.
pub const SHARDS: usize = 10;

/// The group of all kinds.
pub const GROUP: &str = "bench.example.com";
/// The smallest object on the wire, and what each part adds to it.
const SMALLEST: usize = 600;
const PART: usize = 147;

/// A custom resource: its plural name, which is its kind too, and the size of its objects are all that sets one apart from
/// another.
#[derive(Clone, Debug)]
pub struct Kind {
    plural: String,
    /// How many parts the spec of an object has.
    parts: usize,
}

impl Kind {
    /// With objects as small as they can be.
    pub fn new(plural: impl Into<String>) -> Self {
        Self { plural: plural.into(), parts: 0 }
    }

    /// With objects of about so many bytes on the wire, what the server adds included. They are made of what most are made
    /// of: a list of small structures with strings, numbers and lists in them.
    pub fn of_size(plural: impl Into<String>, bytes: usize) -> Self {
        Self { plural: plural.into(), parts: (bytes.saturating_sub(SMALLEST) + PART / 2) / PART }
    }

    /// Its plural name and its kind.
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// The definition: a schema, a status, a column, as most have them.
    pub fn definition(&self) -> String {
        let Self { plural, .. } = self;
        let part = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"},
            "image": {"type": "string"},
            "weight": {"type": "integer"},
            "enabled": {"type": "boolean"},
            "arguments": {"type": "array", "items": {"type": "string"}},
        }});
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": {
                "size": {"type": "integer", "minimum": 0},
                "text": {"type": "string", "maxLength": 200},
                "parts": {"type": "array", "items": part},
            }},
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
        }});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{GROUP}")},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"plural": plural, "kind": plural},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                }],
            },
        })
        .to_string()
    }

    /// Where all of them are, with a query.
    pub fn all(&self, query: &str) -> String {
        format!("/apis/{GROUP}/v1/{}?{query}", self.plural)
    }

    /// Where they are created.
    pub fn collection(&self) -> String {
        self.within("default")
    }

    /// Where one of them is.
    pub fn path(&self, number: usize) -> String {
        format!("{}/{}", self.collection(), name(number))
    }

    /// Where they are created in another namespace.
    pub fn within(&self, namespace: &str) -> String {
        format!("/apis/{GROUP}/v1/namespaces/{namespace}/{}", self.plural)
    }

    /// One of them that belongs to another.
    pub fn owned(&self, number: usize, owner: usize, uid: &str) -> String {
        let (plural, owner) = (&self.plural, name(owner));
        let references = format!(
            r#""metadata":{{"ownerReferences":[{{"apiVersion":"{GROUP}/v1","kind":"{plural}","name":"{owner}","uid":"{uid}"}}],"#
        );
        self.object(number, 1, None).replacen(r#""metadata":{"#, &references, 1)
    }

    /// One of them, to be created, or to take the place of the one with this version.
    pub fn object(&self, number: usize, size: usize, version: Option<&str>) -> String {
        let (plural, name, shard) = (&self.plural, name(number), number % SHARDS);
        let version = version.map(|version| format!(r#","resourceVersion":"{version}""#)).unwrap_or_default();
        let parts = self.listed(number);
        format!(
            r#"{{"apiVersion":"{GROUP}/v1","kind":"{plural}","metadata":{{"name":"{name}","labels":{{"shard":"{shard}"}}{version}}},"spec":{{"size":{size},"text":"as small as most of them are"{parts}}}}}"#
        )
    }

    /// The parts of an object, no two of which are the same.
    fn listed(&self, number: usize) -> String {
        if self.parts == 0 {
            return String::new();
        }
        let parts = (0..self.parts).map(|part| {
            // As many digits for all.
            let weight = 1_000_000 + number * 31 + part;
            format!(
                r#"{{"name":"part-{part:03}","image":"images.example.com/team-{:02}/program:v{:04}","weight":{weight},"enabled":{},"arguments":["--level={:03}","--verbose"]}}"#,
                number % 50,
                weight % 10_000,
                weight.is_multiple_of(2),
                weight % 1_000,
            )
        });
        format!(r#","parts":[{}]"#, parts.collect::<Vec<_>>().join(","))
    }
}

fn name(number: usize) -> String {
    format!("object-{number:07}")
}

/// The version of the first object in an answer.
pub fn version(answer: &[u8]) -> Option<&str> {
    after(answer, br#""resourceVersion":""#)
}

/// The uid of the first object in an answer.
pub fn uid(answer: &[u8]) -> Option<&str> {
    after(answer, br#""uid":""#)
}

/// The text that follows a key in an answer, up to the next quotation mark.
pub fn after<'a>(answer: &'a [u8], key: &[u8]) -> Option<&'a str> {
    let rest = &answer[memmem::find(answer, key)? + key.len()..];
    std::str::from_utf8(&rest[..memchr::memchr(b'"', rest)?]).ok()
}

/// How many objects there are in a list: each has one uid.
pub fn objects(list: &[u8]) -> usize {
    memmem::find_iter(list, br#""uid":""#).count()
}

/// The value of a metric that has no labels.
pub fn metric(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_json_and_can_be_found_again() {
        let kind = Kind::new("widgets");
        let object: serde_json::Value =
            serde_json::from_str(&kind.object(42, 7, Some("9"))).unwrap_or_default();
        assert_eq!(object["metadata"]["labels"]["shard"], "2");
        assert_eq!(object["metadata"]["resourceVersion"], "9");
        assert_eq!(object["spec"]["size"], 7);
        let path = "/apis/bench.example.com/v1/namespaces/default/widgets/object-0000042";
        assert_eq!(kind.path(42), path);
        assert_eq!(object["metadata"]["name"], "object-0000042");
    }

    #[test]
    fn an_object_is_as_large_as_it_is_said_to_be() {
        // What the server adds is the same for all.
        let added = SMALLEST - Kind::new("widgets").object(42, 7, None).len();
        for wanted in [1_000, 5_000] {
            let object = Kind::of_size("widgets", wanted).object(1_234, 7, None);
            let json: serde_json::Value = serde_json::from_str(&object).unwrap_or_default();
            assert!(json["spec"]["parts"][1]["weight"].is_u64(), "{object}");
            let found = object.len() + added;
            assert!(found.abs_diff(wanted) <= PART, "{found} for {wanted}");
        }
    }

    #[test]
    fn an_object_can_belong_to_another() {
        let object = Kind::new("widgets").owned(42, 1, "abc");
        let object: serde_json::Value = serde_json::from_str(&object).unwrap_or_default();
        assert_eq!(object["metadata"]["ownerReferences"][0]["name"], "object-0000001");
        assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "abc");
        assert_eq!(object["metadata"]["name"], "object-0000042");
    }

    #[test]
    fn the_version_of_an_answer_is_read_without_parsing_it() {
        assert_eq!(version(br#"{"metadata":{"resourceVersion":"12","uid":"a"}}"#), Some("12"));
        assert_eq!(version(br#"{"metadata":{}}"#), None);
        assert_eq!(uid(br#"{"metadata":{"resourceVersion":"12","uid":"a"}}"#), Some("a"));
    }

    #[test]
    fn objects_are_counted_by_their_uids() {
        assert_eq!(objects(br#"{"metadata":{},"items":[{"uid":"a"},{"uid":"b"}]}"#), 2);
    }

    #[test]
    fn a_metric_is_found_by_its_whole_name() {
        let text = "# HELP commits Commits\ncommits_total 7\ncommits 12\n";
        assert_eq!(metric(text, "commits"), Some(12.0));
        assert_eq!(metric(text, "syncs"), None);
    }
}
