//! A kind: what can be seen of it, its functions, and the words its row is written in.

pub(crate) mod row;
pub(crate) mod strategy;

use crate::definition;
use crate::resolve;
use serde_json::Value;
use strategy::Strategy;
use watchkeeper_schema::Schema;
use watchkeeper_schema::metadata::{dns_label_problems, dns_subdomain_problems};
use watchkeeper_table::Printer;
use watchkeeper_table::layout::Layout;

/// One built-in kind in one version: what discovery says of it, and how its objects are written and found.
#[derive(Debug)]
pub struct Kind {
    /// The API group, `""` for the core group.
    pub group: &'static str,
    /// The version, `v1`.
    pub version: &'static str,
    /// The kind, `Deployment`.
    pub kind: &'static str,
    /// The resource, `deployments`.
    pub plural: &'static str,
    /// One of it, `deployment`.
    pub singular: &'static str,
    /// The short names, `deploy`.
    pub short_names: &'static [&'static str],
    /// The categories that the kind is in, `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The verbs of the resource.
    pub verbs: Verbs,
    /// The subresources, by name.
    pub subresources: &'static [SubresourceInfo],
    /// The rule for the names of objects.
    pub name_rule: NameRule,
    /// Whether `metadata.generation` is kept. The prepare functions set it; setting `deletionTimestamp` counts it up
    /// once more.
    pub generation: bool,
    /// Whether an update needs no `resourceVersion`.
    pub unconditional_update: bool,
    /// Whether an update of an object that is not there creates it.
    pub create_on_update: bool,
    /// The fields that field selectors may name besides `metadata.name` and, if namespaced, `metadata.namespace`.
    pub selectable_fields: &'static [SelectableField],
    /// The paths of the numbers of the scale subresource.
    pub scale: Option<ScalePaths>,
    /// The group and version whose objects these are another view of: events of `events.k8s.io` are stored as core
    /// events. The kind and the resource have the same name there.
    pub stored_as: Option<(&'static str, &'static str)>,
    /// The folder below `/registry/` in which kube-apiserver stores objects, as its messages show it.
    pub upstream_folder: &'static str,
    /// The warning that clients of the kind are given.
    pub deprecation: Option<&'static str>,
    /// Whether the answer to a deletion is the last state of the object, rather than that it is gone.
    pub returns_deleted: bool,
    /// Whether dependents stay when an object is deleted and nobody says what becomes of them, for the sake of clients that
    /// are older than garbage collection.
    pub orphans_by_default: bool,
    /// The number of times that kube-apiserver checks the metadata of an update.
    pub metadata_checks: MetadataChecks,
    /// The table that lists are shown as.
    pub(crate) table: Layout,
    /// The functions of the kind.
    pub(crate) strategy: Strategy,
}

/// The number of times that kube-apiserver checks the metadata of an update, besides the checks of every kind.
/// Clients see repeated causes in the Status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataChecks {
    /// The number of checks of the change of the metadata.
    pub on_change: usize,
    /// The number of checks of the new metadata.
    pub on_object: usize,
    /// Whether the change is checked once more when a subresource is written.
    pub on_subresource: bool,
}

impl MetadataChecks {
    /// Those of most kinds.
    pub(crate) const USUAL: Self = Self { on_change: 1, on_object: 1, on_subresource: true };
}

/// The verbs of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbs {
    /// Everything: create, delete, deletecollection, get, list, patch, update, watch.
    All,
    /// Objects are questions that are answered and not kept.
    CreateOnly,
    /// Everything but `deletecollection`: namespaces go one by one.
    NoDeleteCollection,
    /// Objects are made up when they are asked for.
    ReadOnly,
}

impl Verbs {
    /// The verbs in the order discovery lists them.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::All => &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            Self::CreateOnly => &["create"],
            Self::ReadOnly => &["get", "list"],
            Self::NoDeleteCollection => &["create", "delete", "get", "list", "patch", "update", "watch"],
        }
    }
}

/// A subresource of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubresourceInfo {
    /// The last part of the path, `status`.
    pub name: &'static str,
    /// The type that is read and written there, if not the kind itself. Discovery then names its group and version.
    pub speaks: Option<Speaks>,
    /// The verbs, in the order in which discovery lists them.
    pub verbs: &'static [&'static str],
}

/// The type that a subresource reads and writes, if it is not that of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speaks {
    /// The group, `autoscaling`.
    pub group: &'static str,
    /// The version, `v1`.
    pub version: &'static str,
    /// The kind, `Scale`.
    pub kind: &'static str,
}

/// The rule for the names of objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain.
    DnsSubdomain,
    /// A DNS label.
    DnsLabel,
    /// Anything that can be a part of a path.
    PathSegment,
    /// An IP address in its shortest form.
    Address,
    /// Anything.
    Any,
}

impl NameRule {
    /// The problems of a name.
    pub fn problems(self, name: &str) -> Vec<String> {
        match self {
            Self::DnsSubdomain => dns_subdomain_problems(name),
            Self::DnsLabel => dns_label_problems(name),
            Self::PathSegment => path_segment_problems(name),
            Self::Address => crate::address::problem(name).into_iter().collect(),
            Self::Any => Vec::new(),
        }
    }
}

fn path_segment_problems(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    let bad = ["/", "%"].into_iter().filter(|bad| name.contains(bad));
    bad.map(|bad| format!("may not contain '{bad}'")).collect()
}

/// A field that field selectors may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectableField {
    /// The name in the selector, `spec.nodeName`.
    pub label: &'static str,
    /// The path of the value, if it is not the label.
    pub path: &'static str,
    /// The path of the value if there is none at `path`.
    pub or: Option<&'static str>,
    /// The value of an object that has none there.
    pub absent: &'static str,
}

/// The paths of the `scale` subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The number that is asked for.
    pub spec_replicas: &'static str,
    /// The number there is.
    pub status_replicas: &'static str,
    /// The selector of what is counted: a label selector, or a map of labels.
    pub selector: &'static str,
}

impl Kind {
    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.into() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The kind of its lists.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// The subresource with this name.
    pub fn subresource(&self, name: &str) -> Option<&'static SubresourceInfo> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether there is a status subresource, so that main writes leave the status alone.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// The printer of rows of a table.
    pub fn printer(&self) -> Printer {
        Printer::of(self.table)
    }

    /// A warning about an object that is accepted, and that replaces `old`.
    pub fn warning(&self, new: &Value, old: Option<&Value>) -> Option<&'static str> {
        self.strategy.warning.and_then(|warning| warning(new, old))
    }

    /// The grace period in seconds with which an object is deleted, if the client asks for this one; `None` for kinds whose objects
    /// are deleted at once.
    pub fn grace_period(&self, object: &Value, asked: Option<i64>) -> Option<i64> {
        self.strategy.grace_period.map(|seconds| seconds(object, asked))
    }

    /// Sets the fields of an object that say that it is being deleted, beside its metadata.
    pub fn prepare_for_delete(&self, object: &mut Value) {
        if let Some(prepare) = self.strategy.prepare_delete {
            prepare(object);
        }
    }

    /// Whether something else than finalizers in its metadata keeps an object from being deleted.
    pub fn is_held(&self, object: &Value) -> bool {
        self.strategy.is_held.is_some_and(|is_held| is_held(object))
    }

    /// The fields, as paths, that writers of a part of an object do not come to own; `None` if they are those that are usual
    /// for the part.
    pub fn reset_fields(&self, part: crate::Subresource) -> Option<&'static [&'static [&'static str]]> {
        self.strategy.resets.iter().find(|(of, _)| *of == part).map(|(_, fields)| *fields)
    }

    /// The name of its definition in OpenAPI documents: `io.k8s.api.apps.v1.Deployment`.
    pub fn definition_name(&self) -> String {
        definition::name(self.group, self.version, self.kind)
    }

    /// The OpenAPI schema of its objects with every reference followed, without descriptions, and with the extensions
    /// that say how lists and maps are merged (`x-kubernetes-patch-merge-key`, `x-kubernetes-patch-strategy`,
    /// `x-kubernetes-list-type`, `x-kubernetes-list-map-keys`, `x-kubernetes-map-type`).
    ///
    /// Where a type contains itself, the inner one accepts anything. Read on first use and kept.
    pub fn definition(&self) -> &'static Value {
        resolve::definition(self)
    }

    /// [`definition`](Self::definition) as a schema. Read on first use and kept.
    ///
    /// It knows names and types of fields; for reading an object of a built-in kind, [`coerce`](Self::coerce) is nearer to
    /// what kube-apiserver does.
    pub fn schema(&self) -> &'static Schema {
        resolve::schema(self)
    }
}
