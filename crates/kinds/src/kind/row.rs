//! The words that the row of a kind is written in.

use super::strategy::{
    Conversion, Fields, Fill, GracePeriod, Prepare, Strategy, Validate, ValidateUpdate, Warn,
};
use super::{Kind, MetadataChecks, NameRule, ScalePaths, SelectableField, Speaks, SubresourceInfo, Verbs};
use crate::prepare::Subresource;
use crate::validate::field::{Errors, Field};
use serde_json::Value;
use watchkeeper_table::layout::Layout;

/// A namespaced kind with all verbs, a DNS subdomain as name, updated without conditions, and nothing else.
pub(crate) const fn kind(
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
        upstream_folder: plural,
        deprecation: None,
        returns_deleted: false,
        orphans_by_default: false,
        metadata_checks: MetadataChecks::USUAL,
        table: Layout::PLAIN,
        strategy: Strategy::NONE,
    }
}

impl Kind {
    pub(crate) const fn short(self, short_names: &'static [&'static str]) -> Self {
        Self { short_names, ..self }
    }

    pub(crate) const fn categories(self, categories: &'static [&'static str]) -> Self {
        Self { categories, ..self }
    }

    pub(crate) const fn in_all(self) -> Self {
        self.categories(&["all"])
    }

    pub(crate) const fn cluster_wide(self) -> Self {
        Self { namespaced: false, ..self }
    }

    pub(crate) const fn verbs(self, verbs: Verbs) -> Self {
        Self { verbs, ..self }
    }

    pub(crate) const fn with(self, subresources: &'static [SubresourceInfo]) -> Self {
        Self { subresources, ..self }
    }

    pub(crate) const fn named(self, name_rule: NameRule) -> Self {
        Self { name_rule, ..self }
    }

    pub(crate) const fn generation(self) -> Self {
        Self { generation: true, ..self }
    }

    pub(crate) const fn conditional(self) -> Self {
        Self { unconditional_update: false, ..self }
    }

    pub(crate) const fn created_on_update(self) -> Self {
        Self { create_on_update: true, ..self }
    }

    pub(crate) const fn selectable(self, selectable_fields: &'static [SelectableField]) -> Self {
        Self { selectable_fields, ..self }
    }

    pub(crate) const fn scaled(self, selector: &'static str) -> Self {
        let paths =
            ScalePaths { spec_replicas: "spec.replicas", status_replicas: "status.replicas", selector };
        Self { scale: Some(paths), ..self }
    }

    /// Another view of the objects of a kind with the same name, in a group and version.
    pub(crate) const fn stored_as(
        mut self,
        group: &'static str,
        version: &'static str,
        conversion: Conversion,
    ) -> Self {
        self.stored_as = Some((group, version));
        self.strategy.conversion = Some(conversion);
        self
    }

    pub(crate) const fn upstream_folder(self, upstream_folder: &'static str) -> Self {
        Self { upstream_folder, ..self }
    }

    pub(crate) const fn deprecated(self, warning: &'static str) -> Self {
        Self { deprecation: Some(warning), ..self }
    }

    pub(crate) const fn returns_deleted(self) -> Self {
        Self { returns_deleted: true, ..self }
    }

    pub(crate) const fn orphans_by_default(self) -> Self {
        Self { orphans_by_default: true, ..self }
    }

    pub(crate) const fn table(self, table: Layout) -> Self {
        Self { table, ..self }
    }

    pub(crate) const fn metadata_checks(mut self, on_change: usize, on_object: usize) -> Self {
        self.metadata_checks.on_change = on_change;
        self.metadata_checks.on_object = on_object;
        self
    }

    /// See [`MetadataChecks::on_subresource`].
    pub(crate) const fn no_metadata_checks_of_subresources(mut self) -> Self {
        self.metadata_checks.on_subresource = false;
        self
    }
}

/// The functions of a kind; what they are for is said at the fields of [`Strategy`].
impl Kind {
    pub(crate) const fn unify(mut self, unify: Fill) -> Self {
        self.strategy.unify = Some(unify);
        self
    }

    pub(crate) const fn default_with(mut self, default: Fill) -> Self {
        self.strategy.default = Some(default);
        self
    }

    pub(crate) const fn type_defaults(mut self, defaults: &'static [(&'static str, Fill)]) -> Self {
        self.strategy.type_defaults = defaults;
        self
    }

    pub(crate) const fn keeps_status_on_create(mut self) -> Self {
        self.strategy.keeps_status_on_create = true;
        self
    }

    pub(crate) const fn prepare_create(mut self, prepare: Fill) -> Self {
        self.strategy.prepare_create = Some(prepare);
        self
    }

    pub(crate) const fn prepare_update(mut self, prepare: Prepare) -> Self {
        self.strategy.prepare_update = Some(prepare);
        self
    }

    pub(crate) const fn prepare_status_update(mut self, prepare: Prepare) -> Self {
        self.strategy.prepare_status_update = Some(prepare);
        self
    }

    pub(crate) const fn status_keeps(mut self, fields: &'static [&'static str]) -> Self {
        self.strategy.status_keeps = fields;
        self
    }

    pub(crate) const fn generation_counts(mut self, counts: fn(&Fields, &Fields) -> bool) -> Self {
        self.generation = true;
        self.strategy.counts = counts;
        self
    }

    pub(crate) const fn validate_name(mut self, validate: fn(&Field<'_>, &mut Errors)) -> Self {
        self.strategy.validate_name = Some(validate);
        self
    }

    pub(crate) const fn validate_with(mut self, validate: Validate) -> Self {
        self.strategy.validate = Some(validate);
        self
    }

    pub(crate) const fn immutable(mut self, paths: &'static [&'static str]) -> Self {
        self.strategy.immutable = paths;
        self
    }

    pub(crate) const fn validate_update(mut self, validate: ValidateUpdate) -> Self {
        self.strategy.validate_update = Some(validate);
        self
    }

    /// The same as [`validate_update`](Self::validate_update), before the rules for objects.
    pub(crate) const fn validate_update_first(mut self, validate: ValidateUpdate) -> Self {
        self.strategy.validates_changes_first = true;
        self.validate_update(validate)
    }

    pub(crate) const fn validate_subresources(
        mut self,
        rules: &'static [(Subresource, ValidateUpdate)],
    ) -> Self {
        self.strategy.validate_subresources = rules;
        self
    }

    pub(crate) const fn warn(mut self, warning: Warn) -> Self {
        self.strategy.warning = Some(warning);
        self
    }

    pub(crate) const fn grace_period_with(mut self, seconds: GracePeriod) -> Self {
        self.strategy.grace_period = Some(seconds);
        self
    }

    pub(crate) const fn prepare_delete(mut self, prepare: fn(&mut Value)) -> Self {
        self.strategy.prepare_delete = Some(prepare);
        self
    }

    pub(crate) const fn held_while(mut self, is_held: fn(&Value) -> bool) -> Self {
        self.strategy.is_held = Some(is_held);
        self
    }

    pub(crate) const fn resets(
        mut self,
        fields: &'static [(Subresource, &'static [&'static [&'static str]])],
    ) -> Self {
        self.strategy.resets = fields;
        self
    }

    pub(crate) const fn unsupported_field_as(mut self, answer: fn(&str) -> String) -> Self {
        self.strategy.unsupported_field = Some(answer);
        self
    }
}

/// A field whose path is its label.
pub(crate) const fn field(label: &'static str, absent: &'static str) -> SelectableField {
    SelectableField { label, path: label, or: None, absent }
}

/// A field that is somewhere else than its label says.
pub(crate) const fn field_at(
    label: &'static str,
    path: &'static str,
    absent: &'static str,
) -> SelectableField {
    SelectableField { label, path, or: None, absent }
}

/// A field that is looked for at a second path, if it is not at the first.
pub(crate) const fn field_or(label: &'static str, path: &'static str, or: &'static str) -> SelectableField {
    SelectableField { label, path, or: Some(or), absent: "" }
}

const READ_AND_WRITE: &[&str] = &["get", "patch", "update"];

const fn own(name: &'static str, verbs: &'static [&'static str]) -> SubresourceInfo {
    SubresourceInfo { name, speaks: None, verbs }
}

const fn foreign(
    name: &'static str,
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
) -> SubresourceInfo {
    SubresourceInfo { name, speaks: Some(Speaks { group, version, kind }), verbs }
}

pub(crate) const STATUS: SubresourceInfo = own("status", READ_AND_WRITE);
pub(crate) const APPROVAL: SubresourceInfo = own("approval", READ_AND_WRITE);
pub(crate) const FINALIZE: SubresourceInfo = own("finalize", &["update"]);
pub(crate) const EPHEMERAL_CONTAINERS: SubresourceInfo = own("ephemeralcontainers", READ_AND_WRITE);
pub(crate) const RESIZE: SubresourceInfo = own("resize", READ_AND_WRITE);
pub(crate) const SCALE: SubresourceInfo = foreign("scale", "autoscaling", "v1", "Scale", READ_AND_WRITE);
pub(crate) const EVICTION: SubresourceInfo = foreign("eviction", "policy", "v1", "Eviction", &["create"]);
pub(crate) const BINDING: SubresourceInfo = foreign("binding", "", "v1", "Binding", &["create"]);
pub(crate) const TOKEN: SubresourceInfo =
    foreign("token", "authentication.k8s.io", "v1", "TokenRequest", &["create"]);
