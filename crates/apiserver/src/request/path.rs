use super::escape::{Part, unescape};
use super::rejected::Rejected;
use watchkeeper_go::quote;

/// What a path leads to.
///
/// The path is decoded as a whole and then split, so an escaped slash separates like any other; slashes at the end say
/// nothing. Empty segments, `.` and `..` are segments like others: no such thing exists, but it is not for the path to
/// say so. Whether the group, the version and the resource exist is not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// `/`: the list of paths.
    Root,
    /// `/api`: the versions of the core group.
    Core,
    /// `/apis`: the groups.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/VERSION`, where the group is empty, or `/apis/GROUP/VERSION`.
    Version {
        /// The group; empty for the core group.
        group: String,
        /// The version.
        version: String,
    },
    /// An object or a collection.
    Resource(ResourceTarget),
    /// Any other path, decoded.
    Other(String),
}

/// A path below a group and version: `[namespaces/NAMESPACE/]RESOURCE[/NAME[/SUBRESOURCE[/REST]]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourceTarget {
    /// The group; empty for the core group.
    pub(crate) group: String,
    /// The version.
    pub(crate) version: String,
    /// In which namespace.
    pub(crate) scope: Scope,
    /// The plural name of the resource.
    pub(crate) resource: String,
    /// The name of the object; without it, the whole collection is meant.
    pub(crate) name: Option<String>,
    /// The subresource.
    pub(crate) subresource: Option<String>,
    /// What follows the subresource and its slash, with everything in it kept.
    pub(crate) rest: Option<String>,
    /// The verb in front of the resource, in old clients' paths.
    pub(crate) prefix: Option<Prefix>,
}

/// In which namespace something is, by its path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// In none, or in all of them.
    #[default]
    Cluster,
    /// In this one: `namespaces/NAMESPACE/RESOURCE`. The name may be empty, and then all of them are meant.
    Namespace(String),
    /// `namespaces/NAME` and its subresources: a namespace, which is judged as if it were in itself.
    Itself(String),
}

impl Scope {
    /// The namespace in which the request is judged; empty for none.
    pub(crate) fn judged_in(&self) -> &str {
        match self {
            Self::Cluster => "",
            Self::Namespace(namespace) | Self::Itself(namespace) => namespace,
        }
    }
}

/// A verb as a part of the path: `/api/v1/watch/pods`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// Watch what follows.
    Watch,
    /// Pass the request on: nothing answers this any more.
    Proxy,
}

impl Target {
    /// Reads the path of a URL, as it was sent.
    pub(crate) fn parse(path: &str) -> Result<Self, Rejected> {
        let decoded = unescape(path, Part::Path)
            .map_err(|bad| Rejected::BadRequest(format!("invalid URL escape {}", quote(bad))))?;
        let Some(path) = decoded.strip_prefix('/') else {
            return Ok(if decoded.is_empty() { Self::Root } else { Self::Other(decoded) });
        };
        if path.starts_with('/') {
            return Ok(Self::Other(decoded));
        }
        let segments: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        Ok(match segments.as_slice() {
            [""] => Self::Root,
            ["api"] => Self::Core,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group((*group).into()),
            ["api", version] => Self::Version { group: String::new(), version: (*version).into() },
            ["apis", group, version] => Self::Version { group: (*group).into(), version: (*version).into() },
            ["api", version, parts @ ..] => Self::Resource(ResourceTarget::parse("", version, parts, path)?),
            ["apis", group, version, parts @ ..] => {
                Self::Resource(ResourceTarget::parse(group, version, parts, path)?)
            }
            _ => Self::Other(decoded),
        })
    }
}

impl ResourceTarget {
    /// Reads the segments after the version, which are the last of `path`, slashes at its end apart.
    fn parse(group: &str, version: &str, parts: &[&str], path: &str) -> Result<Self, Rejected> {
        let (prefix, parts) = match parts {
            ["watch", parts @ ..] => (Some(Prefix::Watch), parts),
            ["proxy", parts @ ..] => (Some(Prefix::Proxy), parts),
            parts => (None, parts),
        };
        if parts.is_empty() {
            let message = format!("unable to determine kind and namespace from url, /{path}");
            return Err(Rejected::Internal(message));
        }
        let (scope, parts) = match parts {
            ["namespaces", "", "status" | "finalize", ..] | ["namespaces", ""] => (Scope::Cluster, parts),
            ["namespaces", name, "status" | "finalize", ..] | ["namespaces", name] => {
                (Scope::Itself((*name).into()), parts)
            }
            ["namespaces", namespace, parts @ ..] => (Scope::Namespace((*namespace).into()), parts),
            parts => (Scope::Cluster, parts),
        };
        let subresource = parts.get(2).filter(|_| prefix != Some(Prefix::Proxy));
        Ok(Self {
            group: group.into(),
            version: version.into(),
            scope,
            resource: parts.first().copied().unwrap_or_default().into(),
            name: unless_empty(parts.get(1)),
            subresource: unless_empty(subresource),
            rest: subresource.and_then(|_| after(path, parts.get(3..).unwrap_or_default())),
            prefix,
        })
    }
}

fn unless_empty(segment: Option<&&str>) -> Option<String> {
    segment.filter(|segment| !segment.is_empty()).map(|segment| (*segment).to_owned())
}

/// What of `path` remains from the segments `rest` on, its last ones; with the slashes at the end.
fn after(path: &str, rest: &[&str]) -> Option<String> {
    let trimmed = path.trim_end_matches('/');
    let separators = rest.len().saturating_sub(1);
    let length = rest.iter().map(|segment| segment.len()).sum::<usize>() + separators;
    if rest.is_empty() {
        // A slash may follow, and that is an empty rest.
        return path[trimmed.len()..].strip_prefix('/').map(str::to_owned);
    }
    path.get(trimmed.len().checked_sub(length)?..).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::recorded;
    use proptest::prelude::*;

    fn resource(path: &str) -> ResourceTarget {
        match Target::parse(path) {
            Ok(Target::Resource(target)) => target,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn paths_are_read_as_kube_apiserver_reads_them() {
        for case in recorded(include_str!("cases/paths.jsonl")) {
            let path = case["path"].as_str().unwrap();
            let parsed = Target::parse(path);
            if let Some(error) = case["error"].as_str() {
                let message = parsed.unwrap_err().message();
                assert!(error.ends_with(&message), "{path}: {message}");
                continue;
            }
            let parsed = parsed.unwrap();
            // The real server finds nothing there, though its request info does not say so.
            if path.starts_with("//") {
                assert_eq!(parsed, Target::Other(path.into()));
                continue;
            }
            let Target::Resource(target) = parsed else {
                assert_eq!(case["is_resource"], false, "{path}: {parsed:?}");
                continue;
            };
            assert_eq!(case["is_resource"], true, "{path}: {target:?}");
            for (field, value) in [
                ("group", target.group.as_str()),
                ("version", &target.version),
                ("namespace", target.scope.judged_in()),
                ("resource", &target.resource),
                ("name", target.name.as_deref().unwrap_or_default()),
                ("subresource", target.subresource.as_deref().unwrap_or_default()),
            ] {
                assert_eq!(case[field], value, "{path}: {field}");
            }
            if let Some(rest) = &target.rest {
                let parts: Vec<&str> =
                    case["parts"].as_array().unwrap()[3..].iter().filter_map(|part| part.as_str()).collect();
                assert_eq!(rest.trim_end_matches('/'), parts.join("/"), "{path}");
            }
        }
    }

    #[test]
    fn discovery_paths_are_told_apart() {
        let version =
            |group: &str, version: &str| Target::Version { group: group.into(), version: version.into() };
        for (path, target) in [
            ("", Target::Root),
            ("/", Target::Root),
            ("/api", Target::Core),
            ("/api/", Target::Core),
            ("/apis", Target::Groups),
            ("/apis/apps/", Target::Group("apps".into())),
            ("/api/v1", version("", "v1")),
            ("/apis/apps/v1/", version("apps", "v1")),
            ("/healthz/ping", Target::Other("/healthz/ping".into())),
            ("/openapi/v3/apis/apps/v1", Target::Other("/openapi/v3/apis/apps/v1".into())),
            ("//", Target::Other("//".into())),
            ("*", Target::Other("*".into())),
        ] {
            assert_eq!(Target::parse(path), Ok(target), "{path}");
        }
    }

    #[test]
    fn what_follows_a_subresource_is_kept_as_it_is() {
        let rest = |path: &str| resource(path).rest;
        assert_eq!(rest("/api/v1/namespaces/x/pods/y/proxy"), None);
        assert_eq!(rest("/api/v1/namespaces/x/pods/y/proxy/"), Some(String::new()));
        assert_eq!(rest("/api/v1/namespaces/x/pods/y/proxy//"), Some("/".into()));
        assert_eq!(rest("/api/v1/nodes/n/proxy/a//b%20c/"), Some("a//b c/".into()));
    }

    #[test]
    fn a_namespace_is_told_apart_from_what_claims_to_be_in_one() {
        let scope = |path: &str| resource(path).scope;
        assert_eq!(scope("/api/v1/namespaces"), Scope::Cluster);
        assert_eq!(scope("/api/v1/namespaces/x"), Scope::Itself("x".into()));
        assert_eq!(scope("/api/v1/namespaces/x/finalize"), Scope::Itself("x".into()));
        assert_eq!(scope("/api/v1/namespaces/x/namespaces"), Scope::Namespace("x".into()));
        assert_eq!(scope("/api/v1/namespaces/x/namespaces/x"), Scope::Namespace("x".into()));
        assert_eq!(scope("/api/v1/namespaces//pods"), Scope::Namespace(String::new()));
        assert_eq!(scope("/api/v1/namespaces//status"), Scope::Cluster);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::request::cases(512)))]

        #[test]
        fn any_path_is_read_or_rejected(path in any::<String>()) {
            let _ = Target::parse(&path);
        }

        #[test]
        fn any_path_below_a_version_is_read_or_rejected(path in "/(api|apis/g)/v(/(namespaces|watch|proxy|status|[a-z%0-9/.]{0,3})){0,6}/?") {
            if let Ok(Target::Resource(target)) = Target::parse(&path) {
                prop_assert_eq!(target.version, "v");
                let size = target.rest.map_or(0, |rest| rest.len());
                prop_assert!(size <= path.len());
            }
        }

        #[test]
        fn an_object_is_found_again_by_its_path(group in "[a-z.]{0,9}", namespace in proptest::option::of("[a-z-]{1,9}"), name in "[a-z:é%]{1,9}") {
            let escaped: String = name.bytes().map(|byte| format!("%{byte:02x}")).collect();
            let root = if group.is_empty() { "/api".into() } else { format!("/apis/{group}") };
            let scope = namespace.as_ref().map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
            let target = resource(&format!("{root}/v1/{scope}things/{escaped}/scale"));
            prop_assert_eq!(target, ResourceTarget {
                group,
                version: "v1".into(),
                scope: namespace.map_or(Scope::Cluster, Scope::Namespace),
                resource: "things".into(),
                name: Some(name),
                subresource: Some("scale".into()),
                rest: None,
                prefix: None,
            });
        }
    }
}
