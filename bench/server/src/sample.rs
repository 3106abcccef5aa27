//! The objects: small custom resources, about 600 bytes on the wire with what the server adds.

use memchr::memmem;
use serde_json::json;

/// Where definitions are created.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Objects with the same shard are one in this many.
pub(crate) const SHARDS: usize = 10;

/// A custom resource: its plural name is all that sets one apart from another.
#[derive(Clone)]
pub(crate) struct Kind {
    plural: String,
}

impl Kind {
    pub(crate) fn new(plural: impl Into<String>) -> Self {
        Self { plural: plural.into() }
    }

    /// The definition: a schema, a status, a column, as most have them.
    pub(crate) fn definition(&self) -> String {
        let Self { plural } = self;
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": {
                "size": {"type": "integer", "minimum": 0},
                "text": {"type": "string", "maxLength": 200},
            }},
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
        }});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.bench.example.com")},
            "spec": {
                "group": "bench.example.com",
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
    pub(crate) fn all(&self, query: &str) -> String {
        format!("/apis/bench.example.com/v1/{}?{query}", self.plural)
    }

    /// Where they are created.
    pub(crate) fn collection(&self) -> String {
        self.within("default")
    }

    /// Where one of them is.
    pub(crate) fn path(&self, number: usize) -> String {
        format!("{}/{}", self.collection(), name(number))
    }

    /// Where they are created in another namespace.
    pub(crate) fn within(&self, namespace: &str) -> String {
        format!("/apis/bench.example.com/v1/namespaces/{namespace}/{}", self.plural)
    }

    /// One of them that belongs to another.
    pub(crate) fn owned(&self, number: usize, owner: usize, uid: &str) -> String {
        let (plural, owner) = (&self.plural, name(owner));
        let references = format!(
            r#""metadata":{{"ownerReferences":[{{"apiVersion":"bench.example.com/v1","kind":"{plural}","name":"{owner}","uid":"{uid}"}}],"#
        );
        self.object(number, 1, None).replacen(r#""metadata":{"#, &references, 1)
    }

    /// One of them, to be created, or to take the place of the one with this version.
    pub(crate) fn object(&self, number: usize, size: usize, version: Option<&str>) -> String {
        let (plural, name, shard) = (&self.plural, name(number), number % SHARDS);
        let version = version.map(|version| format!(r#","resourceVersion":"{version}""#)).unwrap_or_default();
        format!(
            r#"{{"apiVersion":"bench.example.com/v1","kind":"{plural}","metadata":{{"name":"{name}","labels":{{"shard":"{shard}"}}{version}}},"spec":{{"size":{size},"text":"as small as most of them are"}}}}"#
        )
    }
}

fn name(number: usize) -> String {
    format!("object-{number:07}")
}

/// The version of the first object in an answer.
pub(crate) fn version(answer: &[u8]) -> Option<&str> {
    text_after(answer, br#""resourceVersion":""#)
}

/// The uid of the first object in an answer.
pub(crate) fn uid(answer: &[u8]) -> Option<&str> {
    text_after(answer, br#""uid":""#)
}

fn text_after<'a>(answer: &'a [u8], key: &[u8]) -> Option<&'a str> {
    let rest = &answer[memmem::find(answer, key)? + key.len()..];
    std::str::from_utf8(&rest[..memchr::memchr(b'"', rest)?]).ok()
}

/// How many objects there are in a list: each has one uid.
pub(crate) fn objects(list: &[u8]) -> usize {
    memmem::find_iter(list, br#""uid":""#).count()
}

/// The value of a metric that has no labels.
pub(crate) fn metric(text: &str, name: &str) -> Option<f64> {
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
