use std::fmt::{self, Write};

use serde_json::{Map, Value};

use crate::{About, Request};

/// A rule of a role: verbs on resources, or on paths that lead to no resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The verbs; `*` is all of them.
    pub verbs: Vec<String>,
    /// The API groups; `*` is all of them, an empty text is the core group.
    pub api_groups: Vec<String>,
    /// The resources, each with its subresource (`pods/log`) or without; `*` is all of them, `*/scale` one subresource of
    /// all.
    pub resources: Vec<String>,
    /// The names of objects; without any, all of them.
    pub resource_names: Vec<String>,
    /// The paths; a `*` at the end stands for anything.
    pub non_resource_urls: Vec<String>,
}

impl Rule {
    /// Reads a rule as objects have it. What is not there, or not a list of texts, is empty.
    pub fn read(rule: &Value) -> Self {
        let texts = |field: &str| {
            let texts = rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        Self {
            verbs: texts("verbs"),
            api_groups: texts("apiGroups"),
            resources: texts("resources"),
            resource_names: texts("resourceNames"),
            non_resource_urls: texts("nonResourceURLs"),
        }
    }

    /// Reads the rules of a role.
    pub fn read_all(rules: &Value) -> Vec<Self> {
        rules.as_array().into_iter().flatten().map(Self::read).collect()
    }

    /// The rule, as objects have it.
    pub fn value(&self) -> Value {
        let mut fields = Map::new();
        for (name, texts) in [
            ("apiGroups", &self.api_groups),
            ("nonResourceURLs", &self.non_resource_urls),
            ("resourceNames", &self.resource_names),
            ("resources", &self.resources),
        ] {
            if !texts.is_empty() {
                fields.insert(name.into(), texts.as_slice().into());
            }
        }
        fields.insert("verbs".into(), self.verbs.as_slice().into());
        Value::Object(fields)
    }

    /// Whether the rule allows a request.
    pub fn allows(&self, request: &Request<'_>) -> bool {
        let verb = has(&self.verbs, "*") || has(&self.verbs, request.verb);
        verb && match request.about {
            About::Path(path) => self.non_resource_urls.iter().any(|url| matches_path(url, path)),
            About::Resource { group, resource, subresource, name, .. } => {
                (has(&self.api_groups, "*") || has(&self.api_groups, group))
                    && self.resources.iter().any(|known| matches_resource(known, resource, subresource))
                    && (self.resource_names.is_empty() || has(&self.resource_names, name))
            }
        }
    }
}

pub(crate) fn has(texts: &[String], text: &str) -> bool {
    texts.iter().any(|known| known == text)
}

/// Whether the path of a rule is, or begins, this path.
pub(crate) fn matches_path(url: &str, path: &str) -> bool {
    url == path || url.ends_with('*') && path.starts_with(url.trim_end_matches('*'))
}

fn matches_resource(known: &str, resource: &str, subresource: &str) -> bool {
    if known == "*" {
        return true;
    }
    if subresource.is_empty() {
        return known == resource;
    }
    let rest = known.strip_suffix(subresource).and_then(|rest| rest.strip_suffix('/'));
    rest.is_some_and(|rest| rest == resource || rest == "*")
}

/// As kube-apiserver words rules that somebody lacks.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        let mut separator = "";
        for (name, texts) in [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ] {
            if !texts.is_empty() {
                write!(f, "{separator}{name}:{}", Texts(texts))?;
                separator = ", ";
            }
        }
        f.write_char('}')
    }
}

/// A list of texts, as Go quotes it.
pub(crate) struct Texts<'a>(pub(crate) &'a [String]);

impl fmt::Display for Texts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (index, text) in self.0.iter().enumerate() {
            write!(f, "{}{text:?}", if index == 0 { "" } else { " " })?;
        }
        f.write_char(']')
    }
}
