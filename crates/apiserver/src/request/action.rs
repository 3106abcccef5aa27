//! What a request asks the server to do, as one value.
//!
//! An [`Action`] is derived once, from the method, the path and the query. It is what is authorized, and it is all that
//! [`route`](crate::handlers::route) and the handlers after it get to see of the method and the path: nobody can do something else
//! than what was judged by reading them a second time, in another way.

use http::Method;

use super::list_options::ListOptions;
use super::path::{Prefix, ResourceTarget, Scope, Target};
use super::query::Query;
use super::rejected::Rejected;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Something is done with objects.
    Resource(ResourceAction),
    /// Anything else: discovery, documents, health.
    Page(PageAction),
}

/// A verb, and what it is applied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResourceAction {
    pub(crate) verb: Verb,
    /// Whether only the headers of the answer are wanted: `HEAD` is judged as `GET`.
    pub(crate) is_head: bool,
    /// The group; empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) scope: Scope,
    /// The plural name of the resource.
    pub(crate) resource: String,
    /// The name of the object in the path; without it, the whole collection is meant.
    pub(crate) name: Option<String>,
    /// The name that a list or a watch is limited to by its field selector. Rules about one name allow such lists, so
    /// whoever serves the action restricts it to this name.
    pub(crate) selected: Option<String>,
    pub(crate) subresource: Option<String>,
    /// What follows the subresource in the path.
    pub(crate) rest: Option<String>,
    /// Whether the verb stands in the path, in front of the resource: `/api/v1/watch/pods`.
    pub(crate) is_prefixed: bool,
}

/// A path that leads to no object, and the method as rules about paths name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageAction {
    pub(crate) verb: &'static str,
    /// The path with nothing escaped, as rules name it.
    pub(crate) path: String,
    /// The same path, taken apart. Never [`Target::Resource`].
    pub(crate) target: Target,
}

/// What is done with objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// A path that says `watch` with a method that does not read. It is judged as a watch, and at most served as one.
    Miswatch,
    /// A path that says `proxy`. It is judged as that and never served.
    Proxy,
    /// A method that means nothing here. It is judged as the empty verb and never served.
    Unknown,
}

impl Verb {
    /// The verb of a method on a path. `is_watch` is whether the query asks to watch.
    fn of(method: &Method, prefix: Option<Prefix>, has_name: bool, is_watch: bool) -> Self {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        match (prefix, method.as_str(), has_name) {
            (Some(Prefix::Watch), ..) if reads => Self::Watch,
            (Some(Prefix::Watch), ..) => Self::Miswatch,
            (Some(Prefix::Proxy), ..) => Self::Proxy,
            (None, "GET" | "HEAD", false) if is_watch => Self::Watch,
            (None, "GET" | "HEAD", false) => Self::List,
            (None, "GET" | "HEAD", true) => Self::Get,
            (None, "DELETE", false) => Self::DeleteCollection,
            (None, "DELETE", true) => Self::Delete,
            (None, "POST", _) => Self::Create,
            (None, "PUT", _) => Self::Update,
            (None, "PATCH", _) => Self::Patch,
            _ => Self::Unknown,
        }
    }

    /// The verb in the words of authorization rules.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch | Self::Miswatch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Proxy => "proxy",
            Self::Unknown => "",
        }
    }

    /// Whether it is judged as a watch.
    pub(crate) fn is_watch(self) -> bool {
        matches!(self, Self::Watch | Self::Miswatch)
    }

    /// What the same method means for one object.
    pub(crate) fn of_one(self) -> Self {
        match self {
            Self::List => Self::Get,
            Self::DeleteCollection => Self::Delete,
            verb => verb,
        }
    }

    /// Whether the body of the request says something.
    pub(crate) fn has_body(self) -> bool {
        use Verb::{Create, Delete, DeleteCollection, Patch, Update};
        matches!(self, Create | Update | Patch | Delete | DeleteCollection)
    }
}

impl Action {
    /// Reads what a request asks for. `path` is as it was sent.
    pub(crate) fn of(method: &Method, path: &str, query: &Query) -> Result<Self, Rejected> {
        Ok(match Target::parse(path)? {
            Target::Resource(target) => Self::Resource(ResourceAction::of(method, target, query)),
            target => Self::Page(PageAction {
                verb: lowercase(method),
                // It was read already, so it can be.
                path: super::unescaped_segment(path).unwrap_or_default(),
                target,
            }),
        })
    }

    /// Whether the body of the request says something.
    pub(crate) fn has_body(&self) -> bool {
        matches!(self, Self::Resource(action) if action.verb.has_body())
    }

    /// Whether the answer goes on for as long as the client listens.
    pub(crate) fn is_watch(&self) -> bool {
        matches!(self, Self::Resource(action) if action.verb.is_watch())
    }
}

impl ResourceAction {
    fn of(method: &Method, target: ResourceTarget, query: &Query) -> Self {
        let ResourceTarget { group, version, scope, resource, name, subresource, rest, prefix } = target;
        let is_watch = query.flag("watch").unwrap_or_default();
        let verb = Verb::of(method, prefix, name.is_some(), is_watch);
        // Only what is read as a list can be limited by a selector, and not if the verb comes from the path.
        let reads_list = matches!(verb, Verb::List | Verb::Watch) && name.is_none() && prefix.is_none();
        let selected = reads_list.then(|| selected(query)).flatten();
        let is_head = *method == Method::HEAD;
        let is_prefixed = prefix.is_some();
        Self {
            verb,
            is_head,
            group,
            version,
            scope,
            resource,
            name,
            selected,
            subresource,
            rest,
            is_prefixed,
        }
    }
}

/// The name that a field selector asks for.
fn selected(query: &Query) -> Option<String> {
    if !query.get("fieldSelector")?.contains("metadata.name") {
        return None;
    }
    let fields = ListOptions::from_query(query).ok()?.field_selector;
    let name = fields.required("metadata.name")?;
    let is_name = !matches!(name, "" | "." | "..") && !name.contains(['/', '%']);
    is_name.then(|| name.to_owned())
}

/// A method as rules about paths name it.
fn lowercase(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "get",
        "HEAD" => "head",
        "POST" => "post",
        "PUT" => "put",
        "PATCH" => "patch",
        "DELETE" => "delete",
        "OPTIONS" => "options",
        "TRACE" => "trace",
        "CONNECT" => "connect",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::recorded;
    use proptest::prelude::*;

    fn action(method: &str, path: &str) -> ResourceAction {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        match Action::of(&method, path, &Query::parse(query)) {
            Ok(Action::Resource(action)) => action,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn verbs_are_those_of_kube_apiserver() {
        for case in recorded(include_str!("cases/paths.jsonl")) {
            let method = Method::from_bytes(case["method"].as_str().unwrap().as_bytes()).unwrap();
            let action = Action::of(&method, case["path"].as_str().unwrap(), &Query::default());
            if let Ok(Action::Resource(action)) = action {
                assert_eq!(case["verb"], action.verb.text(), "{case}");
            }
        }
    }

    #[test]
    fn a_watch_is_a_verb_in_the_query_or_in_the_path() {
        assert_eq!(action("GET", "/api/v1/pods?watch=1").verb, Verb::Watch);
        assert_eq!(action("GET", "/api/v1/pods/x?watch=1").verb, Verb::Get);
        assert_eq!(action("GET", "/api/v1/watch/pods/x").verb, Verb::Watch);
    }

    #[test]
    fn what_writes_is_no_watch_whatever_its_path_says() {
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "FROBNICATE"] {
            let action = action(method, "/api/v1/watch/namespaces/x/pods/y");
            assert_eq!((action.verb, action.verb.text()), (Verb::Miswatch, "watch"));
            assert!(!action.verb.has_body());
        }
    }

    #[test]
    fn a_selector_names_an_object_for_lists_only() {
        let name = |method: &str, path: &str| action(method, path).selected;
        let query = "fieldSelector=metadata.name%3Dx";
        assert_eq!(name("GET", &format!("/api/v1/pods?{query}")), Some("x".into()));
        assert_eq!(name("GET", &format!("/api/v1/pods?watch=1&{query}")), Some("x".into()));
        assert_eq!(name("GET", &format!("/api/v1/watch/pods?{query}")), None);
        assert_eq!(name("DELETE", &format!("/api/v1/namespaces/n/pods?{query}")), None);
        assert_eq!(name("GET", &format!("/api/v1/watch/namespaces/n/pods/y?{query}")), None);
        assert_eq!(name("GET", "/api/v1/pods?fieldSelector=metadata.name!%3Dx"), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::request::cases(512)))]

        /// What reads may be sent with any path, what writes only where no prefix says otherwise.
        #[test]
        fn only_what_is_judged_as_a_write_has_a_body(
            method in prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "X"]),
            path in "/(api|apis/g)/v(/(namespaces|watch|proxy|status|[a-z%0-9/.]{0,3})){0,6}/?",
        ) {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            if let Ok(action) = Action::of(&method, &path, &Query::default()) {
                let Action::Resource(resource) = &action else {
                    prop_assert!(!action.has_body());
                    return Ok(());
                };
                let writes = ["create", "update", "patch", "delete", "deletecollection"];
                prop_assert_eq!(action.has_body(), writes.contains(&resource.verb.text()));
            }
        }
    }
}
