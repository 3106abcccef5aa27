//! How kube-apiserver writes objects to etcd, read as what this server stores.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use watchkeeper_kinds::{Kind, all, find_kind, protobuf};
use watchkeeper_storage::Foreign;

use crate::object::record;
use crate::resource::prefix as own_prefix;

/// What a value that is encrypted begins with; the name of the provider follows.
const ENCRYPTED: &[u8] = b"k8s:enc:";

/// Folders that hold no objects of the API: who serves it, and which numbers are given away.
const INTERNAL: [&str; 4] = ["masterleases", "peerserverleases", "ranges", "controllers.coordination.k8s.io"];

/// Reads what a kube-apiserver has written to etcd: `/registry/pods/default/web` and its kin, built-in kinds in protobuf or JSON, custom
/// resources in JSON.
///
/// An object of a kind or version that this server does not have is left out, and so is one that is encrypted: that is counted, by what
/// it was, and [`left_out`](Self::left_out) tells. What is left out for a new reason after that is logged. Nothing of an object is ever in a message.
#[derive(Default)]
pub struct UpstreamLayout {
    left_out: Mutex<BTreeMap<String, usize>>,
    /// Whether somebody has asked what was left out.
    is_told: AtomicBool,
}

impl UpstreamLayout {
    /// A layout that has left out nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The kinds of entries that could not be read, with their numbers: `secrets: encrypted by aescbc:v1:key1`.
    pub fn left_out(&self) -> Vec<(String, usize)> {
        self.is_told.store(true, Relaxed);
        self.left_out.lock().iter().map(|(what, count)| (what.clone(), *count)).collect()
    }

    fn leave_out(&self, path: &str, why: &str) {
        let folder = match builtin(path) {
            Some((kind, _)) => kind.plural.to_owned(),
            None => path.split('/').take(2).collect::<Vec<_>>().join("/"),
        };
        let what = format!("{folder}: {why}");
        let mut left_out = self.left_out.lock();
        if self.is_told.load(Relaxed) && !left_out.contains_key(&what) {
            tracing::warn!("from now on, objects are not shown: {what}");
        }
        *left_out.entry(what).or_default() += 1;
    }

    /// The object in a value that is kept under this path.
    fn read(path: &str, value: &[u8]) -> Result<Value, String> {
        if let Some(rest) = value.strip_prefix(ENCRYPTED) {
            return Err(format!("encrypted by {}", provider(rest)));
        }
        let object = if protobuf::is_envelope(value) {
            protobuf::decode(value).map_err(|error| match error {
                watchkeeper_kinds::Error::UnknownKind { api_version, kind } => {
                    format!("{kind} of {api_version} is not served by this version")
                }
                _ => "protobuf that cannot be read".to_owned(),
            })?
        } else {
            serde_json::from_slice(value).map_err(|_| "neither protobuf nor JSON".to_owned())?
        };
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version.is_empty() || kind.is_empty() || !object["metadata"].is_object() {
            return Err("not an object of the API".into());
        }
        let Some((folder, _)) = builtin(path) else { return Ok(object) };
        if (api_version, kind) == ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition") {
            return Ok(definition_of_v1(object));
        }
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        match find_kind(group, version, kind).filter(|kind| kind.upstream_folder == folder.upstream_folder) {
            Some(kind) if kind.stored_as.is_some() => Ok(kind.to_stored(object)),
            Some(_) => Ok(object),
            None => Err(format!("{kind} of {api_version} is not served by this version")),
        }
    }
}

impl Foreign for UpstreamLayout {
    fn key(&self, prefix: &str, key: &[u8]) -> Option<String> {
        let rest = path_of(prefix, key)?;
        let (group, plural, name) = match builtin(rest) {
            Some((kind, name)) => {
                let (group, _) = kind.stored_as.unwrap_or((kind.group, kind.version));
                (group, kind.plural, name)
            }
            None => {
                let (group, rest) = rest.split_once('/')?;
                let (plural, name) = rest.split_once('/')?;
                // The groups of custom resources are domains.
                if INTERNAL.contains(&group) || !group.contains('.') {
                    return None;
                }
                (group, plural, name)
            }
        };
        (!name.is_empty()).then(|| format!("{}{name}", own_prefix(group, plural)))
    }

    fn value(&self, prefix: &str, key: &[u8], value: &[u8]) -> Option<Bytes> {
        let path = path_of(prefix, key)?;
        match Self::read(path, value) {
            // Whatever schema it was written under, it is read by the present one.
            Ok(object) => Some(record::encode(&object, record::UNKNOWN)),
            Err(why) => {
                self.leave_out(path, &why);
                None
            }
        }
    }
}

/// A definition as kube-apiserver stores it to this day, in a version that it does not serve any more: what all versions have in common stands
/// beside them there, and in each of them here.
fn definition_of_v1(mut definition: Value) -> Value {
    definition["apiVersion"] = "apiextensions.k8s.io/v1".into();
    let Some(spec) = definition["spec"].as_object_mut() else { return definition };
    let schema = spec.remove("validation");
    let shared = [("schema", schema)].into_iter().chain(
        ["subresources", "additionalPrinterColumns", "selectableFields"]
            .map(|name| (name, spec.remove(name))),
    );
    let shared: Vec<(&str, Value)> =
        shared.filter_map(|(name, value)| value.map(|value| (name, value))).collect();
    let only = spec.remove("version");
    let mut versions = match spec.remove("versions") {
        Some(Value::Array(versions)) if !versions.is_empty() => versions,
        _ => vec![serde_json::json!({"name": only, "served": true, "storage": true})],
    };
    for version in versions.iter_mut().filter_map(Value::as_object_mut) {
        for (name, value) in &shared {
            version.entry(*name).or_insert_with(|| value.clone());
        }
        let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
        for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
            if let Some(path) = column.remove("JSONPath") {
                column.insert("jsonPath".into(), path);
            }
        }
    }
    spec.insert("versions".into(), versions.into());
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
        let (client, reviewed) =
            (conversion.remove("webhookClientConfig"), conversion.remove("conversionReviewVersions"));
        if conversion.get("strategy").is_some_and(|strategy| strategy == "Webhook") {
            conversion.insert(
                "webhook".into(),
                serde_json::json!({"clientConfig": client, "conversionReviewVersions": reviewed}),
            );
        }
    }
    definition
}

/// The provider and the name of the key of an encrypted value, which come before the ciphertext: `aescbc:v1:key1`.
fn provider(rest: &[u8]) -> String {
    let parts = rest.split(|byte| *byte == b':').take(if rest.starts_with(b"kms:v2") { 2 } else { 3 });
    let texts: Vec<_> = parts.map(|part| String::from_utf8_lossy(&part[..part.len().min(64)])).collect();
    texts.join(":").chars().filter(|char| char.is_ascii_graphic()).collect()
}

/// The built-in kind whose folder a path begins with, and the rest of the path.
fn builtin(path: &str) -> Option<(&'static Kind, &str)> {
    all().iter().filter(|kind| kind.stored_as.is_none()).find_map(|kind| {
        let rest = path.strip_prefix(kind.upstream_folder)?.strip_prefix('/')?;
        // Of kinds without namespaces, the name is all of it.
        (rest.contains('/') == kind.namespaced).then_some((kind, rest))
    })
}

/// A key without the prefix of all of them.
fn path_of<'a>(prefix: &str, key: &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(key.strip_prefix(prefix.as_bytes())?).ok()?.strip_prefix('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::record::Record;
    use serde_json::json;

    fn shown(layout: &UpstreamLayout, key: &str, value: &[u8]) -> Option<(String, Value)> {
        let own = layout.key("/registry", key.as_bytes())?;
        let bytes = layout.value("/registry", key.as_bytes(), value)?;
        let object = Record::parse(&bytes, 7)?.object().unwrap();
        Some((own, object))
    }

    #[test]
    fn keys_of_kube_apiserver_are_those_of_the_same_objects_here() {
        let layout = UpstreamLayout::new();
        for (theirs, ours) in [
            ("/registry/pods/default/web", Some("/registry/core/pods/default/web")),
            ("/registry/minions/node-1", Some("/registry/core/nodes/node-1")),
            (
                "/registry/services/specs/default/kubernetes",
                Some("/registry/core/services/default/kubernetes"),
            ),
            ("/registry/services/endpoints/default/a", Some("/registry/core/endpoints/default/a")),
            ("/registry/deployments/default/a", Some("/registry/apps/deployments/default/a")),
            ("/registry/events/default/a.17", Some("/registry/core/events/default/a.17")),
            ("/registry/namespaces/default", Some("/registry/core/namespaces/default")),
            (
                "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com",
                Some("/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"),
            ),
            ("/registry/example.com/widgets/default/a", Some("/registry/example.com/widgets/default/a")),
            ("/registry/example.com/gadgets/a", Some("/registry/example.com/gadgets/a")),
            ("/registry/masterleases/10.0.0.1", None),
            ("/registry/ranges/serviceips", None),
            ("/elsewhere/pods/default/web", None),
            ("/registry/health", None),
        ] {
            assert_eq!(layout.key("/registry", theirs.as_bytes()).as_deref(), ours, "{theirs}");
        }
        assert_eq!(layout.key("/registry", b"/registry/pods/default/\xff"), None);
    }

    #[test]
    fn objects_are_read_from_protobuf_and_from_json() {
        let layout = UpstreamLayout::new();
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}, "data": {"k": "v"}});
        let key = "/registry/configmaps/b/a";
        for value in [protobuf::encode(&map).unwrap(), map.to_string().into_bytes()] {
            let (own, object) = shown(&layout, key, &value).unwrap();
            assert_eq!(own, "/registry/core/configmaps/b/a");
            assert_eq!(object["data"], map["data"]);
            assert_eq!(object["metadata"]["resourceVersion"], "7");
        }
        let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"n": 1}});
        let (_, object) =
            shown(&layout, "/registry/example.com/widgets/b/a", widget.to_string().as_bytes()).unwrap();
        assert_eq!(object["spec"]["n"], 1);
        // Of a plural that is somebody else's, too.
        let pod = json!({"apiVersion": "example.com/v1", "kind": "Pod", "metadata": {"name": "a"}});
        assert!(shown(&layout, "/registry/example.com/pods/b/a", pod.to_string().as_bytes()).is_some());
        assert!(layout.left_out().is_empty());
    }

    #[test]
    fn definitions_are_read_from_the_version_that_kube_apiserver_stores_them_in() {
        let layout = UpstreamLayout::new();
        let stored = json!({
            "apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "version": "v1", "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "validation": {"openAPIV3Schema": {"type": "object"}},
                "additionalPrinterColumns": [{"name": "N", "type": "string", "JSONPath": ".spec.n"}],
                "versions": [{"name": "v1", "served": true, "storage": true}],
                "conversion": {"strategy": "Webhook", "webhookClientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v1"]},
            },
        });
        let key = "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com";
        let (_, read) = shown(&layout, key, stored.to_string().as_bytes()).unwrap();
        assert_eq!(read["apiVersion"], "apiextensions.k8s.io/v1");
        assert_eq!(
            read["spec"],
            json!({
                "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                    "additionalPrinterColumns": [{"name": "N", "type": "string", "jsonPath": ".spec.n"}],
                }],
                "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v1"]}},
            })
        );
    }

    #[test]
    fn what_cannot_be_shown_is_named_and_nothing_of_it_is_told() {
        let layout = UpstreamLayout::new();
        let secret = "/registry/secrets/default/a";
        for (key, value) in [
            (secret, &b"k8s:enc:aescbc:v1:key1:\x00\x01hidden"[..]),
            (secret, b"k8s:enc:aescbc:v1:key1:\x00\x02hidden"),
            (secret, b"k8s:enc:kms:v2:\x0a\x00hidden"),
            (secret, b"k8s\0hidden"),
            (secret, b"hidden"),
            (secret, b"{\"apiVersion\":\"v9\",\"kind\":\"Secret\",\"metadata\":{}}"),
            (secret, b"{\"hidden\":1}"),
            (secret, b""),
        ] {
            assert!(shown(&layout, key, value).is_none(), "{}", value.escape_ascii());
        }
        let told = layout.left_out();
        let count = |text: &str| told.iter().find(|(what, _)| what.contains(text)).map(|(_, count)| *count);
        assert_eq!(count("secrets: encrypted by aescbc:v1:key1"), Some(2));
        assert_eq!(count("secrets: encrypted by kms:v2"), Some(1));
        assert_eq!(count("Secret of v9 is not served"), Some(1));
        assert!(!format!("{told:?}").contains("hidden"), "{told:?}");
    }
}
