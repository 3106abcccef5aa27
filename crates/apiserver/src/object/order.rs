//! The order of fields in JSON, where upstream's types have one: some clients compare or cut texts.

use serde_json::Value;

/// In which order the fields of an object are written: the named ones first, then all others by name.
#[derive(Debug)]
pub(crate) struct Order {
    first: &'static [&'static str],
    /// The order within these fields, or within the items of a list that is there.
    inside: &'static [(&'static str, &'static Order)],
}

const fn order(first: &'static [&'static str]) -> Order {
    Order { first, inside: &[] }
}

/// Objects of built-in kinds, and everything else that has a kind.
static OBJECT: Order = order(&["kind", "apiVersion", "metadata"]);

static STATUS: Order = Order {
    first: &["kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code"],
    inside: &[("details", &DETAILS)],
};
static DETAILS: Order = Order {
    first: &["name", "group", "kind", "uid", "causes", "retryAfterSeconds"],
    inside: &[("causes", &CAUSE)],
};
static CAUSE: Order = order(&["reason", "message", "field"]);

static API_RESOURCE_LIST: Order = Order {
    first: &["kind", "apiVersion", "groupVersion", "resources"],
    inside: &[("resources", &RESOURCE)],
};
static RESOURCE: Order = order(&[
    "name",
    "singularName",
    "namespaced",
    "group",
    "version",
    "kind",
    "verbs",
    "shortNames",
    "categories",
    "storageVersionHash",
]);

static API_GROUP_LIST: Order =
    Order { first: &["kind", "apiVersion", "groups"], inside: &[("groups", &API_GROUP)] };
static API_GROUP: Order =
    order(&["kind", "apiVersion", "name", "versions", "preferredVersion", "serverAddressByClientCIDRs"]);
static API_VERSIONS: Order = order(&["kind", "versions", "serverAddressByClientCIDRs"]);

static DISCOVERY_LIST: Order =
    Order { first: &["kind", "apiVersion", "metadata", "items"], inside: &[("items", &DISCOVERED_GROUP)] };
static DISCOVERED_GROUP: Order = Order {
    first: &["metadata", "versions"],
    inside: &[("metadata", &GROUP_METADATA), ("versions", &DISCOVERED_VERSION)],
};
static GROUP_METADATA: Order = order(&["name", "creationTimestamp"]);
static DISCOVERED_VERSION: Order =
    Order { first: &["version", "resources", "freshness"], inside: &[("resources", &DISCOVERED_RESOURCE)] };
static DISCOVERED_RESOURCE: Order = Order {
    first: &[
        "resource",
        "responseKind",
        "scope",
        "singularResource",
        "verbs",
        "shortNames",
        "categories",
        "subresources",
    ],
    inside: &[("responseKind", &KIND), ("subresources", &DISCOVERED_SUBRESOURCE)],
};
static DISCOVERED_SUBRESOURCE: Order = Order {
    first: &["subresource", "responseKind", "acceptedTypes", "verbs"],
    inside: &[("responseKind", &KIND)],
};
static KIND: Order = order(&["group", "version", "kind"]);

static TABLE: Order = Order {
    first: &["kind", "apiVersion", "metadata", "columnDefinitions", "rows"],
    inside: &[("columnDefinitions", &COLUMN), ("rows", &ROW)],
};
static COLUMN: Order = order(&["name", "type", "format", "description", "priority"]);
static ROW: Order = Order { first: &["cells", "conditions", "object"], inside: &[("object", &OBJECT)] };

/// What `/version` says.
pub(crate) static VERSION: Order = order(&[
    "major",
    "minor",
    "emulationMajor",
    "emulationMinor",
    "minCompatibilityMajor",
    "minCompatibilityMinor",
    "gitVersion",
    "gitCommit",
    "gitTreeState",
    "buildDate",
    "goVersion",
    "compiler",
    "platform",
]);

impl Order {
    /// The order of an object of a built-in kind, or of one of the types that Kubernetes answers with besides.
    pub(crate) fn of(value: &Value) -> &'static Self {
        match value.get("kind").and_then(Value::as_str).unwrap_or_default() {
            "Status" => &STATUS,
            "APIResourceList" => &API_RESOURCE_LIST,
            "APIGroupList" => &API_GROUP_LIST,
            "APIGroup" => &API_GROUP,
            "APIVersions" => &API_VERSIONS,
            "APIGroupDiscoveryList" => &DISCOVERY_LIST,
            "Table" => &TABLE,
            _ => &OBJECT,
        }
    }

    /// Writes a value in this order.
    pub(crate) fn write(&self, value: &Value, out: &mut Vec<u8>) {
        match value {
            Value::Object(fields) => {
                let rest = fields.iter().filter(|(name, _)| !self.first.contains(&name.as_str()));
                let rest = rest.map(|(name, value)| (name.as_str(), value));
                let first = self.first.iter().filter_map(|name| Some((*name, fields.get(*name)?)));
                let mut separator = b'{';
                for (name, value) in first.chain(rest) {
                    out.push(separator);
                    separator = b',';
                    plain(&name, out);
                    out.push(b':');
                    match self.inside.iter().find(|(field, _)| *field == name) {
                        Some((_, order)) => order.write(value, out),
                        None => plain(value, out),
                    }
                }
                out.extend_from_slice(if separator == b'{' { b"{}" } else { b"}" });
            }
            Value::Array(items) => {
                let mut separator = b'[';
                for item in items {
                    out.push(separator);
                    separator = b',';
                    self.write(item, out);
                }
                out.extend_from_slice(if separator == b'[' { b"[]" } else { b"]" });
            }
            value => plain(value, out),
        }
    }
}

fn plain(value: &(impl serde::Serialize + ?Sized), out: &mut Vec<u8>) {
    // Writing to a vector cannot fail: there is no I/O, and all keys are strings.
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(value: &Value) -> String {
        let mut out = Vec::new();
        Order::of(value).write(value, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), *value, "nothing is lost");
        text
    }

    #[test]
    fn a_status_is_in_the_order_of_its_type() {
        let status = json!({
            "apiVersion": "v1", "code": 404, "kind": "Status", "message": "no", "metadata": {}, "reason": "NotFound",
            "details": {"causes": [{"field": "f", "message": "m", "reason": "r"}, {}], "kind": "pods", "name": "a"},
            "status": "Failure",
        });
        assert_eq!(
            written(&status),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","reason":"NotFound","details":{"name":"a","kind":"pods","causes":[{"reason":"r","message":"m","field":"f"},{}]},"code":404}"#
        );
    }

    #[test]
    fn an_object_begins_with_what_it_is() {
        let object = json!({"apiVersion": "v1", "binaryData": {}, "data": {"kind": "x", "a": "y"}, "kind": "ConfigMap", "metadata": {"name": "\"a\""}});
        assert_eq!(
            written(&object),
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"\"a\""},"binaryData":{},"data":{"a":"y","kind":"x"}}"#
        );
        for odd in [json!(null), json!([]), json!({}), json!("kind"), json!([{"kind": "Status"}, 1])] {
            written(&odd);
        }
    }
}
