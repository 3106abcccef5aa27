use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Requested, Resource, Undeclared, Verbs};

/// The rights that a program needs in a cluster: for every resource and subresource the verbs, the namespaces, and the reasons.
///
/// They are collected while the manager is built. [`complete`](Self::complete) says whether they are all: if a program
/// sends undeclared requests on purpose, its rights cannot be derived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rights {
    /// Every right once, sorted.
    #[serde(default)]
    list: Vec<Right>,
    /// Set if the program may send what it has not declared.
    #[serde(default, skip_serializing_if = "is_false")]
    incomplete: bool,
}

/// A right that a program needs in a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Right {
    /// The resource.
    pub resource: Resource,
    /// The subresource: `status`; empty for the objects themselves.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// The verbs.
    pub verbs: Verbs,
    /// The names of the objects that the right is limited to; empty means all. Objects that are created, listed or watched have no names yet: see [`roles`](crate::roles).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Whether lists and watches ask for these names only (`metadata.name`), so that RBAC can limit them, too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub selects_names: bool,
    /// The namespaces.
    #[serde(default, skip_serializing_if = "Namespaces::are_all")]
    pub namespaces: Namespaces,
    /// The condition under which the right is needed.
    #[serde(default, skip_serializing_if = "When::is_always")]
    pub when: When,
    /// The parts of the program that need the right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
}

/// The namespaces in which a right is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Namespaces {
    /// All namespaces, and objects without one.
    #[default]
    All,
    /// The namespace that the program runs in.
    Own,
    /// These namespaces.
    These(Vec<String>),
}

/// The condition under which a right is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum When {
    /// The right is always needed.
    #[default]
    Always,
    /// The right is needed if the program installs its definitions and webhook configurations itself.
    InstallingDefinitions,
    /// The right is needed if the program keeps its webhook configurations and their certificates up to date itself.
    ConfiguringWebhooks,
    /// The right is needed if a leader is elected.
    ElectingLeader,
}

impl Right {
    /// Makes a right to these verbs on all objects of a resource.
    pub fn of(resource: Resource, verbs: Verbs, because: impl Into<String>) -> Self {
        Self {
            resource,
            subresource: String::new(),
            verbs,
            names: Vec::new(),
            selects_names: false,
            namespaces: Namespaces::All,
            when: When::Always,
            because: vec![because.into()],
        }
    }

    /// Limits the right to a subresource.
    #[must_use]
    pub fn on(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = subresource.into();
        self
    }

    /// The name of the resource in rules of RBAC: `pods`, `pods/status`.
    pub fn target(&self) -> String {
        target(&self.resource.plural, &self.subresource)
    }

    fn covers(&self, request: &Requested<'_>) -> bool {
        let namespace = match &self.namespaces {
            Namespaces::All => true,
            // Where the program runs is known to whoever started it; it is a namespace in any case.
            Namespaces::Own => !request.namespace.is_empty() || !self.resource.namespaced,
            // A Role in some namespaces does not allow what is asked of all of them.
            Namespaces::These(names) => names.iter().any(|name| name == request.namespace),
        };
        self.resource.group == request.group
            && self.resource.plural == request.resource
            && self.subresource == request.subresource
            && self.verbs.contains(request.verb)
            && namespace
            && (self.names.is_empty()
                || request.name.is_empty()
                || self.names.iter().any(|name| name == request.name))
    }
}

impl Rights {
    /// Adds a right. One that differs from another in its verbs only is added to that.
    pub fn add(&mut self, right: Right) {
        let same = self.list.iter_mut().find(|other| {
            other.resource.group == right.resource.group
                && other.resource.plural == right.resource.plural
                && other.subresource == right.subresource
                && other.names == right.names
                && other.selects_names == right.selects_names
                && other.namespaces == right.namespaces
                && other.when == right.when
        });
        match same {
            Some(same) => {
                same.verbs = same.verbs | right.verbs;
                for reason in right.because {
                    if !same.because.contains(&reason) {
                        same.because.push(reason);
                    }
                }
            }
            None => self.list.push(right),
        }
        self.list.sort_by(|one, other| order(one).cmp(&order(other)));
    }

    /// Notes that the program also sends requests that it has not declared.
    pub fn set_incomplete(&mut self) {
        self.incomplete = true;
    }

    /// Limits all rights about a resource to namespaces, as its cache is.
    pub fn limit(&mut self, group: &str, plural: &str, namespaces: &[String]) {
        let limited = std::mem::take(&mut self.list);
        for mut right in limited {
            let it = right.resource.group == group && right.resource.plural == plural;
            if it && right.namespaces == Namespaces::All && right.resource.namespaced {
                right.namespaces = Namespaces::These(namespaces.to_vec());
            }
            self.add(right);
        }
    }

    /// Limits all rights in all namespaces to some namespaces. Rights to resources without namespaces stay as they are.
    pub fn limit_all(&mut self, namespaces: &[String]) {
        for mut right in std::mem::take(&mut self.list) {
            if right.namespaces == Namespaces::All && right.resource.namespaced {
                right.namespaces = Namespaces::These(namespaces.to_vec());
            }
            self.add(right);
        }
    }

    /// Whether these are all rights that the program needs.
    pub fn complete(&self) -> bool {
        !self.incomplete
    }

    /// All rights, sorted by group, resource and subresource.
    pub fn iter(&self) -> impl Iterator<Item = &Right> {
        self.list.iter()
    }

    /// Refuses a request that was not declared.
    pub fn check(&self, request: &Requested<'_>) -> Result<(), Undeclared> {
        if self.incomplete || request.is_free() || self.list.iter().any(|right| right.covers(request)) {
            return Ok(());
        }
        Err(Undeclared::new(request, &self.list))
    }

    /// The rights that none of these requests needed, each with the verbs that were not used.
    pub fn unused<'a>(&self, requests: impl IntoIterator<Item = Requested<'a>>) -> Vec<Right> {
        let mut used: BTreeMap<usize, Verbs> = BTreeMap::new();
        for request in requests {
            for (index, right) in self.list.iter().enumerate() {
                if right.covers(&request) {
                    let verbs = used.entry(index).or_default();
                    *verbs = *verbs | request.verb;
                }
            }
        }
        let rest = self.list.iter().enumerate().map(|(index, right)| {
            let verbs = right.verbs.without(used.get(&index).copied().unwrap_or_default());
            Right { verbs, ..right.clone() }
        });
        // Finalizers of owners are asked for by a plug-in of the server, not by requests.
        rest.filter(|right| !right.verbs.is_empty() && right.subresource != "finalizers").collect()
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<I: IntoIterator<Item = Right>>(rights: I) -> Self {
        let mut all = Self::default();
        rights.into_iter().for_each(|right| all.add(right));
        all
    }
}

impl Namespaces {
    fn are_all(&self) -> bool {
        *self == Self::All
    }
}

impl When {
    fn is_always(&self) -> bool {
        *self == Self::Always
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

pub(crate) fn target(plural: &str, subresource: &str) -> String {
    match subresource {
        "" => plural.to_owned(),
        subresource => format!("{plural}/{subresource}"),
    }
}

fn order(right: &Right) -> (&str, &str, &str, When, &Namespaces, &[String]) {
    let Right { resource, subresource, names, namespaces, when, .. } = right;
    (&resource.group, &resource.plural, subresource, *when, namespaces, names)
}
