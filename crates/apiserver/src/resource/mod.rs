//! One resource in one version, as it is served.

mod frames;
mod object_ref;
mod plugin_set;
mod reading;
mod rules;

use std::sync::{Arc, OnceLock};

use watchkeeper_kinds::Kind;
use watchkeeper_schema::Shape;
use watchkeeper_storage::Revision;
use watchkeeper_table::Printer;
use watchkeeper_table::layout::Layout;

use crate::crd::{Definition, Version};
use crate::status_error::Subject;

pub(crate) use frames::{Frame, Frames};
pub(crate) use object_ref::ObjectRef;
pub(crate) use plugin_set::{AdmissionPlan, PluginSet, Slot};
pub(crate) use reading::Unreadable;

/// An installed CustomResourceDefinition, and where it is stored.
pub(crate) struct InstalledCrd {
    pub(crate) definition: Definition,
    pub(crate) key: String,
    /// The revision it was written at.
    pub(crate) revision: Revision,
    /// What was written, as a hash: after a backup was restored, one revision may stand for two states.
    pub(crate) digest: u64,
}

/// Where all objects are stored.
pub(crate) const ROOT: &str = "/registry/";

/// One resource in one version: what its objects are called, where they are stored, and what rules they follow.
///
/// Resources are immutable; a definition that changes makes new ones.
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// `group/version`, or the version alone in the core group.
    pub(crate) api_version: String,
    /// What the keys of all its objects begin with. Versions share it.
    pub(crate) prefix: String,
    pub(crate) nature: Nature,
    printer: Printer,
    /// Read when it is first needed.
    shape: OnceLock<Shape>,
    /// Recent changes, encoded as this version.
    pub(crate) frames: Frames,
    /// Which admission plug-ins handle its writes.
    pub(crate) admission: AdmissionPlan,
}

/// Where the rules of a resource come from.
pub(crate) enum Nature {
    /// From the table of built-in kinds.
    Builtin(&'static Kind),
    /// From a CustomResourceDefinition: the definition, and which of its versions.
    Custom(Arc<InstalledCrd>, usize),
}

impl Resource {
    /// A built-in resource.
    pub(crate) fn builtin(kind: &'static Kind) -> Self {
        let (stored_group, _) = kind.stored_as.unwrap_or((kind.group, kind.version));
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Self {
            group: kind.group.into(),
            version: kind.version.into(),
            plural: kind.plural.into(),
            singular: kind.singular.into(),
            kind: kind.kind.into(),
            list_kind: kind.list_kind(),
            short_names: texts(kind.short_names),
            categories: texts(kind.categories),
            namespaced: kind.namespaced,
            api_version: api_version(kind.group, kind.version),
            prefix: prefix(stored_group, kind.plural),
            nature: Nature::Builtin(kind),
            printer: kind.printer(),
            shape: OnceLock::new(),
            frames: Frames::default(),
            admission: AdmissionPlan::default(),
        }
    }

    /// One version of a custom resource.
    pub(crate) fn custom(installed: &Arc<InstalledCrd>, index: usize) -> Self {
        let definition = &installed.definition;
        let version = &definition.versions[index];
        let names = &definition.names;
        Self {
            group: definition.group.clone(),
            version: version.name.clone(),
            plural: names.plural.clone(),
            singular: names.singular.clone(),
            kind: names.kind.clone(),
            list_kind: names.list_kind.clone(),
            short_names: names.short_names.clone(),
            categories: names.categories.clone(),
            namespaced: definition.namespaced,
            api_version: api_version(&definition.group, &version.name),
            prefix: prefix(&definition.group, &names.plural),
            nature: Nature::Custom(Arc::clone(installed), index),
            // A definition whose columns make no sense is refused when it is written.
            printer: Printer::custom(&version.columns).unwrap_or_else(|_| Printer::of(Layout::PLAIN)),
            shape: OnceLock::new(),
            frames: Frames::default(),
            admission: AdmissionPlan::default(),
        }
    }

    /// The resource, as failures name it.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject { group: &self.group, name: &self.plural }
    }

    /// The kind, as failures name it.
    pub(crate) fn kind_subject(&self) -> Subject<'_> {
        // What is another view of something else is named as that.
        let stored = self.builtin_kind().and_then(|kind| kind.stored_as);
        Subject { group: stored.map_or(&self.group, |(group, _)| group), name: &self.kind }
    }

    /// The key of an object.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> String {
        match namespace {
            Some(namespace) => format!("{}{namespace}/{name}", self.prefix),
            None => format!("{}{name}", self.prefix),
        }
    }

    /// What the keys of a list begin with.
    pub(crate) fn prefix_in(&self, namespace: Option<&str>) -> String {
        match namespace {
            Some(namespace) => format!("{}{namespace}/", self.prefix),
            None => self.prefix.clone(),
        }
    }

    /// The only key under a prefix that an object of this name can have; there are several if the prefix is that of all
    /// namespaces.
    pub(crate) fn only_key(&self, prefix: &str, name: &str) -> Option<String> {
        (!self.namespaced || prefix != self.prefix).then(|| format!("{prefix}{name}"))
    }

    /// The namespace and the name in a key.
    pub(crate) fn split_key<'a>(&self, key: &'a str) -> (Option<&'a str>, &'a str) {
        let rest = key.strip_prefix(self.prefix.as_str()).unwrap_or(key);
        match rest.split_once('/') {
            Some((namespace, name)) if self.namespaced => (Some(namespace), name),
            _ => (None, rest),
        }
    }

    /// How lists of it are shown as tables.
    pub(crate) fn printer(&self) -> &Printer {
        &self.printer
    }

    /// The version of a custom resource.
    pub(crate) fn custom_version(&self) -> Option<(&InstalledCrd, &Version)> {
        match &self.nature {
            Nature::Builtin(_) => None,
            Nature::Custom(installed, index) => Some((installed, &installed.definition.versions[*index])),
        }
    }

    /// The built-in kind.
    pub(crate) fn builtin_kind(&self) -> Option<&'static Kind> {
        match self.nature {
            Nature::Builtin(kind) => Some(kind),
            Nature::Custom(..) => None,
        }
    }

    /// Whether its objects define other resources.
    pub(crate) fn is_crd(&self) -> bool {
        self.group == "apiextensions.k8s.io" && self.plural == "customresourcedefinitions"
    }

    /// Whether these are events, by either of their names.
    pub(crate) fn is_events(&self) -> bool {
        self.plural == "events" && matches!(&*self.group, "" | "events.k8s.io")
    }

    /// Whether this is a built-in resource of the core group with this name.
    pub(crate) fn is_core(&self, plural: &str) -> bool {
        self.group.is_empty() && self.plural == plural
    }
}

/// `group/version`, or the version alone in the core group.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    match group {
        "" => version.into(),
        group => format!("{group}/{version}"),
    }
}

/// What the keys of a resource begin with.
pub(crate) fn prefix(group: &str, plural: &str) -> String {
    format!("{ROOT}{}/{plural}/", if group.is_empty() { "core" } else { group })
}
