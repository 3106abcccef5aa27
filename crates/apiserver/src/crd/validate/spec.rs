use crate::crd::canonical::canonical;
use crate::crd::field::{flag, get, list, optional_text, text};
use serde_json::Value;

/// A spec as kube-apiserver looks at it: what all versions say alike stands at the top and no longer in the versions.
///
/// This is why an error in the schema of a definition with one version is reported at `spec.validation.openAPIV3Schema`,
/// a field its author has never written.
pub(super) struct Spec<'a> {
    pub(super) group: &'a str,
    pub(super) scope: &'a str,
    pub(super) names: &'a Value,
    pub(super) conversion: Option<&'a Value>,
    pub(super) preserve_unknown: bool,
    /// What all versions say.
    pub(super) shared: Parts<'a>,
    /// `None` if there is no list of versions at all.
    pub(super) versions: Option<Vec<Version<'a>>>,
}

/// One version, without what all versions say.
pub(super) struct Version<'a> {
    pub(super) name: &'a str,
    pub(super) served: bool,
    pub(super) storage: bool,
    pub(super) deprecated: bool,
    pub(super) warning: Option<&'a str>,
    pub(super) parts: Parts<'a>,
}

/// What can be said for each version or for all.
#[derive(Clone, Copy, Default)]
pub(super) struct Parts<'a> {
    pub(super) schema: Option<&'a Value>,
    pub(super) subresources: Option<&'a Value>,
    pub(super) columns: Option<&'a [Value]>,
    pub(super) selectable: Option<&'a [Value]>,
}

impl<'a> Parts<'a> {
    fn read(version: &'a Value) -> Self {
        let list = |field| get(version, field).map(|_| list(version, field));
        Self {
            schema: get(version, "schema"),
            subresources: get(version, "subresources"),
            columns: list("additionalPrinterColumns"),
            selectable: list("selectableFields"),
        }
    }

    pub(super) fn openapi(&self) -> Option<&'a Value> {
        self.schema.and_then(|schema| get(schema, "openAPIV3Schema"))
    }

    pub(super) fn has_status(&self) -> bool {
        self.subresources.is_some_and(|subresources| get(subresources, "status").is_some())
    }
}

impl<'a> Spec<'a> {
    pub(super) fn read(definition: &'a Value) -> Self {
        let spec = get(definition, "spec").unwrap_or(&Value::Null);
        let versions =
            get(spec, "versions").map(|_| list(spec, "versions").iter().map(Version::read).collect());
        let mut spec = Self {
            group: text(spec, "group"),
            scope: text(spec, "scope"),
            names: get(spec, "names").unwrap_or(&Value::Null),
            conversion: get(spec, "conversion"),
            preserve_unknown: flag(spec, "preserveUnknownFields"),
            shared: Parts::default(),
            versions,
        };
        spec.share();
        spec
    }

    pub(super) fn versions(&self) -> &[Version<'a>] {
        self.versions.as_deref().unwrap_or_default()
    }

    /// Moves to the top what all versions say alike.
    fn share(&mut self) {
        let versions = self.versions.as_deref_mut().unwrap_or_default();
        let Some(first) = versions.first().map(|version| version.parts) else {
            return;
        };
        let all = |same: &dyn Fn(&Parts<'a>) -> bool| versions.iter().all(|version| same(&version.parts));
        let same_value =
            |one: Option<&Value>, other: Option<&Value>| one.map(canonical) == other.map(canonical);
        let same_list = |one: Option<&[Value]>, other: Option<&[Value]>| {
            one.unwrap_or_default().iter().map(canonical).eq(other.unwrap_or_default().iter().map(canonical))
        };
        let schema = all(&|parts| same_value(parts.schema, first.schema));
        let subresources = all(&|parts| same_value(parts.subresources, first.subresources));
        let columns = all(&|parts| same_list(parts.columns, first.columns));
        let selectable = all(&|parts| same_list(parts.selectable, first.selectable));
        self.shared = Parts {
            schema: first.schema.filter(|_| schema),
            subresources: first.subresources.filter(|_| subresources),
            columns: first.columns.filter(|_| columns),
            selectable: first.selectable.filter(|_| selectable),
        };
        for version in versions {
            let parts = &mut version.parts;
            parts.schema = parts.schema.filter(|_| !schema);
            parts.subresources = parts.subresources.filter(|_| !subresources);
            parts.columns = parts.columns.filter(|_| !columns);
            parts.selectable = parts.selectable.filter(|_| !selectable);
        }
    }
}

impl<'a> Version<'a> {
    fn read(version: &'a Value) -> Self {
        Self {
            name: text(version, "name"),
            served: flag(version, "served"),
            storage: flag(version, "storage"),
            deprecated: flag(version, "deprecated"),
            warning: optional_text(version, "deprecationWarning"),
            parts: Parts::read(version),
        }
    }
}
