//! Valid requests, to begin with.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use watchkeeper_conformance::{Exchange, Exchanges};
use watchkeeper_kinds::Kind;

/// What is changed: the requests of `conformance/differential`, and one object or more of every kind.
#[derive(Debug)]
pub struct Corpus {
    /// Files of requests that belong together, in their order.
    pub sessions: Vec<Vec<Exchange>>,
    /// Objects, by the path that they are sent to.
    pub objects: Vec<(String, Vec<Value>)>,
}

/// A definition that uses most of what definitions can say.
pub(crate) const DEFINITION: &str = include_str!("../corpus/definition.json");
/// An object of it.
pub(crate) const THING: &str = include_str!("../corpus/thing.json");

impl Corpus {
    /// Reads the corpus from the source of this workspace.
    pub fn read() -> std::io::Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../differential");
        let mut files: Vec<_> =
            std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
        files.retain(|path| path.extension().is_some_and(|extension| extension == "http"));
        files.sort();
        let mut sessions = Vec::new();
        let mut objects: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for file in files {
            let mut exchanges = Exchanges::parse(&std::fs::read_to_string(file)?).exchanges;
            exchanges.retain(|exchange| !exchange.anonymous);
            for exchange in exchanges.iter().filter(|exchange| exchange.method == "POST") {
                if let Ok(object @ Value::Object(_)) = serde_json::from_str(&exchange.body) {
                    let path = exchange.path.split('?').next().unwrap_or_default();
                    objects.entry(path.to_owned()).or_default().push(object);
                }
            }
            sessions.push(exchanges);
        }
        for kind in watchkeeper_kinds::all().iter().filter(|kind| kind.verbs.names().contains(&"create")) {
            let bare =
                json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": "a"}});
            objects.entry(path(kind)).or_default().push(bare);
        }
        Ok(Self { sessions, objects: objects.into_iter().collect() })
    }
}

/// Where objects of a kind are created.
fn path(kind: &Kind) -> String {
    let root = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
    let scope = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
    format!("{root}/{}{scope}/{}", kind.version, kind.plural)
}

/// The kind whose objects are created at this path.
pub(crate) fn kind(of: &str) -> Option<&'static Kind> {
    watchkeeper_kinds::all().iter().find(|kind| path(kind) == of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_can_be_created_is_in_the_corpus() {
        let corpus = Corpus::read().unwrap();
        assert!(corpus.sessions.len() > 10);
        let kinds = corpus.objects.iter().filter(|(path, _)| kind(path).is_some()).count();
        assert!(kinds > 60, "{kinds} kinds");
        serde_json::from_str::<Value>(DEFINITION).unwrap();
        serde_json::from_str::<Value>(THING).unwrap();
    }
}
