//! Paths and what can be done at them, in the words of neither version of OpenAPI.

use super::published::{DELETE_OPTIONS, PATCH, STATUS, WATCH_EVENT};
use super::resource::Resource;
use crate::kind::Verbs;
use serde_json::{Value, json};

/// A path with its operations.
pub(super) struct Path {
    pub(super) path: String,
    /// `name` and `namespace`, as far as they are in the path.
    pub(super) parameters: Vec<Parameter>,
    pub(super) operations: Vec<Operation>,
}

pub(super) struct Operation {
    /// `get`, `put`, `post`, `delete`, `patch`.
    pub(super) method: &'static str,
    /// `list`, `deletecollection` and so on.
    pub(super) action: &'static str,
    pub(super) id: String,
    pub(super) description: String,
    pub(super) tag: String,
    pub(super) gvk: Value,
    pub(super) parameters: Vec<Parameter>,
    /// The definition of the body.
    pub(super) body: Option<String>,
    pub(super) body_types: Vec<&'static str>,
    /// The definition of the answer.
    pub(super) answer: String,
    /// The codes of good answers.
    pub(super) codes: &'static [&'static str],
}

#[derive(Clone)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: &'static str,
    pub(super) kind: &'static str,
    pub(super) description: &'static str,
}

const fn query(name: &'static str, kind: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: "query", kind, description }
}

const NAME: Parameter =
    Parameter { name: "name", place: "path", kind: "string", description: "The name of the object." };
const NAMESPACE: Parameter = Parameter {
    name: "namespace",
    place: "path",
    kind: "string",
    description: "The namespace of the object.",
};
const PRETTY: Parameter = query("pretty", "string", "If true, the output is indented.");
const DRY_RUN: Parameter = query("dryRun", "string", "All: go through every stage, but change nothing.");
const FIELD_MANAGER: Parameter = query("fieldManager", "string", "The name of who makes these changes.");
const FIELD_VALIDATION: Parameter = query(
    "fieldValidation",
    "string",
    "What becomes of unknown and duplicate fields: Ignore, Warn or Strict.",
);
const FORCE: Parameter = query("force", "boolean", "Take over fields of others. For apply patches only.");

const WRITE: [Parameter; 4] = [PRETTY, DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];

const LIST: [Parameter; 11] = [
    PRETTY,
    query("allowWatchBookmarks", "boolean", "Whether a watch may send bookmarks."),
    query("continue", "string", "The token of the page before, to go on from there."),
    query("fieldSelector", "string", "Only objects with these fields."),
    query("labelSelector", "string", "Only objects with these labels."),
    query("limit", "integer", "The most objects to answer with."),
    query("resourceVersion", "string", "The version to read at or to watch from."),
    query("resourceVersionMatch", "string", "How the version is meant."),
    query("sendInitialEvents", "boolean", "Whether a watch begins with the objects there are."),
    query("timeoutSeconds", "integer", "The end of the call."),
    query("watch", "boolean", "Stay and be told of changes."),
];

const DELETE: [Parameter; 5] = [
    PRETTY,
    DRY_RUN,
    query("gracePeriodSeconds", "integer", "The seconds an object has to end in."),
    query("orphanDependents", "boolean", "Whether to leave dependents behind. Deprecated."),
    query("propagationPolicy", "string", "What becomes of dependents: Orphan, Background or Foreground."),
];

/// The paths of a resource.
pub(super) fn paths(resource: &Resource) -> Vec<Path> {
    let root = resource.root();
    let (place, mut parameters) = if resource.namespaced {
        (format!("{root}/namespaces/{{namespace}}/{}", resource.plural), vec![NAMESPACE])
    } else {
        (format!("{root}/{}", resource.plural), Vec::new())
    };
    let mut paths = Vec::new();
    let maker = Maker { resource };
    let collection = maker.collection();
    if resource.namespaced && resource.verbs != Verbs::CreateOnly {
        let operations = vec![maker.list("ForAllNamespaces")];
        paths.push(Path { path: format!("{root}/{}", resource.plural), parameters: Vec::new(), operations });
    }
    paths.push(Path { path: place.clone(), parameters: parameters.clone(), operations: collection });
    if resource.verbs == Verbs::CreateOnly {
        return paths;
    }
    parameters.insert(0, NAME);
    paths.push(Path {
        path: format!("{place}/{{name}}"),
        parameters: parameters.clone(),
        operations: maker.object(),
    });
    if resource.verbs == Verbs::ReadOnly {
        return paths;
    }
    for (path, parameters, suffix) in watched(resource, &root) {
        let operations = vec![maker.watch(suffix)];
        paths.push(Path { path, parameters, operations });
    }
    for subresource in &resource.subresources {
        let operations =
            subresource.verbs.iter().filter_map(|verb| maker.subresource(subresource, verb)).collect();
        let path = format!("{place}/{{name}}/{}", subresource.name);
        paths.push(Path { path, parameters: parameters.clone(), operations });
    }
    paths
}

/// The old paths of watches: custom resources never had them.
fn watched(resource: &Resource, root: &str) -> Vec<(String, Vec<Parameter>, &'static str)> {
    let (plural, mut paths) = (&resource.plural, Vec::new());
    if resource.is_custom {
        return paths;
    }
    let (place, mut parameters) = if resource.namespaced {
        paths.push((format!("{root}/watch/{plural}"), Vec::new(), "ListForAllNamespaces"));
        (format!("{root}/watch/namespaces/{{namespace}}/{plural}"), vec![NAMESPACE])
    } else {
        (format!("{root}/watch/{plural}"), Vec::new())
    };
    paths.push((place.clone(), parameters.clone(), "List"));
    parameters.insert(0, NAME);
    paths.push((format!("{place}/{{name}}"), parameters, ""));
    paths
}

struct Maker<'a> {
    resource: &'a Resource,
}

impl Maker<'_> {
    fn operation(&self, method: &'static str, action: &'static str, verb: &str, suffix: &str) -> Operation {
        let resource = self.resource;
        let scope = if resource.namespaced && suffix != "ForAllNamespaces" { "Namespaced" } else { "" };
        let tag = resource.tag();
        let group: String = tag.split('_').map(capital).collect();
        Operation {
            method,
            action,
            id: format!("{verb}{group}{scope}{}{suffix}", resource.kind),
            description: format!("{verb} {}", resource.kind),
            tag,
            gvk: resource.gvk(),
            parameters: Vec::new(),
            body: None,
            body_types: vec!["*/*"],
            answer: resource.object.clone(),
            codes: &["200"],
        }
    }

    fn list(&self, suffix: &str) -> Operation {
        Operation {
            parameters: LIST.to_vec(),
            answer: self.resource.list.clone(),
            ..self.operation("get", "list", "list", suffix)
        }
    }

    fn watch(&self, suffix: &'static str) -> Operation {
        let (action, scope) = match suffix {
            "" => ("watch", ""),
            "List" => ("watchlist", "List"),
            _ => ("watchlist", "ForAllNamespaces"),
        };
        let mut operation = self.operation("get", action, "watch", scope);
        if suffix == "ListForAllNamespaces" {
            operation.id = operation.id.replace("ForAllNamespaces", suffix);
        }
        Operation { parameters: LIST.to_vec(), answer: WATCH_EVENT.into(), ..operation }
    }

    fn collection(&self) -> Vec<Operation> {
        let create = Operation {
            parameters: WRITE.to_vec(),
            body: Some(self.resource.object.clone()),
            codes: &["200", "201", "202"],
            ..self.operation("post", "post", "create", "")
        };
        match self.resource.verbs {
            Verbs::CreateOnly => vec![create],
            Verbs::ReadOnly => vec![self.list("")],
            Verbs::NoDeleteCollection => vec![self.list(""), create],
            Verbs::All => {
                let delete = self.operation("delete", "deletecollection", "deleteCollection", "");
                let parameters = DELETE.iter().chain(LIST[2..8].iter()).cloned().collect();
                let body = Some(DELETE_OPTIONS.to_owned());
                vec![self.list(""), create, Operation { parameters, body, answer: STATUS.into(), ..delete }]
            }
        }
    }

    fn object(&self) -> Vec<Operation> {
        let read = Operation { parameters: vec![PRETTY], ..self.operation("get", "get", "read", "") };
        if self.resource.verbs == Verbs::ReadOnly {
            return vec![read];
        }
        let delete = Operation {
            parameters: DELETE.to_vec(),
            body: Some(DELETE_OPTIONS.into()),
            answer: STATUS.into(),
            codes: &["200", "202"],
            ..self.operation("delete", "delete", "delete", "")
        };
        vec![read, self.replace(""), delete, self.patch("")]
    }

    fn replace(&self, suffix: &str) -> Operation {
        Operation {
            parameters: WRITE.to_vec(),
            body: Some(self.resource.object.clone()),
            codes: &["200", "201"],
            ..self.operation("put", "put", "replace", suffix)
        }
    }

    fn patch(&self, suffix: &str) -> Operation {
        let mut body_types = vec!["application/json-patch+json", "application/merge-patch+json"];
        if !self.resource.is_custom {
            body_types.push("application/strategic-merge-patch+json");
        }
        body_types.push("application/apply-patch+yaml");
        Operation {
            parameters: WRITE.into_iter().chain([FORCE]).collect(),
            body: Some(PATCH.into()),
            body_types,
            codes: &["200", "201"],
            ..self.operation("patch", "patch", "patch", suffix)
        }
    }

    fn subresource(&self, subresource: &super::resource::SubPath, verb: &str) -> Option<Operation> {
        let suffix: String = capital(&subresource.name);
        let operation = match verb {
            "get" => Operation { parameters: vec![PRETTY], ..self.operation("get", "get", "read", &suffix) },
            "update" => Operation { body: Some(subresource.definition.clone()), ..self.replace(&suffix) },
            "patch" => self.patch(&suffix),
            "create" => Operation {
                parameters: WRITE.to_vec(),
                body: Some(subresource.definition.clone()),
                codes: &["200", "201", "202"],
                ..self.operation("post", "post", "create", &suffix)
            },
            _ => return None,
        };
        Some(Operation { answer: subresource.definition.clone(), gvk: subresource.gvk.clone(), ..operation })
    }
}

impl Operation {
    /// The extensions, the same in both versions.
    pub(super) fn extensions(&self) -> Value {
        json!({"x-kubernetes-action": self.action, "x-kubernetes-group-version-kind": self.gvk})
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
