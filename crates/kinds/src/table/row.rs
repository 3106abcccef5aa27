//! The words the table is written in.

use crate::kind::{Kind, NameRule, ScalePaths, SelectableField, Speaks, Subresource, Verbs};

/// A namespaced kind with all verbs, a DNS subdomain as name, updated without conditions, and nothing else.
pub(super) const fn kind(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
) -> Kind {
    Kind {
        group,
        version,
        kind,
        plural,
        singular,
        short_names: &[],
        categories: &[],
        namespaced: true,
        verbs: Verbs::All,
        subresources: &[],
        name_rule: NameRule::DnsSubdomain,
        generation: false,
        unconditional_update: true,
        create_on_update: false,
        selectable_fields: &[],
        scale: None,
        stored_as: None,
        graceful_delete: false,
    }
}

impl Kind {
    pub(super) const fn short(self, short_names: &'static [&'static str]) -> Self {
        Self { short_names, ..self }
    }

    pub(super) const fn categories(self, categories: &'static [&'static str]) -> Self {
        Self { categories, ..self }
    }

    pub(super) const fn in_all(self) -> Self {
        self.categories(&["all"])
    }

    pub(super) const fn cluster_wide(self) -> Self {
        Self { namespaced: false, ..self }
    }

    pub(super) const fn verbs(self, verbs: Verbs) -> Self {
        Self { verbs, ..self }
    }

    pub(super) const fn with(self, subresources: &'static [Subresource]) -> Self {
        Self { subresources, ..self }
    }

    pub(super) const fn named(self, name_rule: NameRule) -> Self {
        Self { name_rule, ..self }
    }

    pub(super) const fn generation(self) -> Self {
        Self { generation: true, ..self }
    }

    pub(super) const fn graceful(self) -> Self {
        Self { graceful_delete: true, ..self }
    }

    pub(super) const fn conditional(self) -> Self {
        Self { unconditional_update: false, ..self }
    }

    pub(super) const fn created_on_update(self) -> Self {
        Self { create_on_update: true, ..self }
    }

    pub(super) const fn selectable(self, selectable_fields: &'static [SelectableField]) -> Self {
        Self { selectable_fields, ..self }
    }

    pub(super) const fn scaled(self, selector: &'static str) -> Self {
        let paths =
            ScalePaths { spec_replicas: "spec.replicas", status_replicas: "status.replicas", selector };
        Self { scale: Some(paths), ..self }
    }

    pub(super) const fn stored_as(self, group: &'static str, version: &'static str) -> Self {
        Self { stored_as: Some((group, version)), ..self }
    }
}

/// A field whose path is its label.
pub(super) const fn field(label: &'static str, absent: &'static str) -> SelectableField {
    SelectableField { label, path: label, absent }
}

/// A field that is somewhere else than its label says.
pub(super) const fn field_at(
    label: &'static str,
    path: &'static str,
    absent: &'static str,
) -> SelectableField {
    SelectableField { label, path, absent }
}

const READ_AND_WRITE: &[&str] = &["get", "patch", "update"];

const fn own(name: &'static str, verbs: &'static [&'static str]) -> Subresource {
    Subresource { name, speaks: None, verbs }
}

const fn foreign(
    name: &'static str,
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
) -> Subresource {
    Subresource { name, speaks: Some(Speaks { group, version, kind }), verbs }
}

pub(super) const STATUS: Subresource = own("status", READ_AND_WRITE);
pub(super) const APPROVAL: Subresource = own("approval", READ_AND_WRITE);
pub(super) const FINALIZE: Subresource = own("finalize", &["update"]);
pub(super) const EPHEMERAL_CONTAINERS: Subresource = own("ephemeralcontainers", READ_AND_WRITE);
pub(super) const RESIZE: Subresource = own("resize", READ_AND_WRITE);
pub(super) const SCALE: Subresource = foreign("scale", "autoscaling", "v1", "Scale", READ_AND_WRITE);
pub(super) const EVICTION: Subresource = foreign("eviction", "policy", "v1", "Eviction", &["create"]);
pub(super) const BINDING: Subresource = foreign("binding", "", "v1", "Binding", &["create"]);
pub(super) const TOKEN: Subresource =
    foreign("token", "authentication.k8s.io", "v1", "TokenRequest", &["create"]);
