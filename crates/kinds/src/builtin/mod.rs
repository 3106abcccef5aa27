//! The built-in kinds, one file each.
//!
//! The file of a kind has its row, `KIND`, and its functions. To add a kind, write its file, and add it here twice: as a
//! module, and to the list.

pub(crate) mod core {
    pub(crate) mod binding;
    pub(crate) mod component_status;
    pub(crate) mod config_map;
    pub(crate) mod endpoints;
    pub(crate) mod event;
    pub(crate) mod limit_range;
    pub(crate) mod namespace;
    pub(crate) mod node;
    pub(crate) mod persistent_volume;
    pub(crate) mod persistent_volume_claim;
    pub(crate) mod pod;
    pub(crate) mod pod_template;
    pub(crate) mod replication_controller;
    pub(crate) mod resource_quota;
    pub(crate) mod secret;
    pub(crate) mod service;
    pub(crate) mod service_account;
}

pub(crate) mod admissionregistration {
    pub(crate) mod mutating_admission_policy;
    pub(crate) mod mutating_admission_policy_binding;
    pub(crate) mod mutating_webhook_configuration;
    pub(crate) mod validating_admission_policy;
    pub(crate) mod validating_admission_policy_binding;
    pub(crate) mod validating_webhook_configuration;
}

pub(crate) mod apiextensions {
    pub(crate) mod custom_resource_definition;
}

pub(crate) mod apiregistration {
    pub(crate) mod api_service;
}

pub(crate) mod apps {
    pub(crate) mod controller_revision;
    pub(crate) mod daemon_set;
    pub(crate) mod deployment;
    pub(crate) mod replica_set;
    pub(crate) mod stateful_set;
}

pub(crate) mod authentication {
    pub(crate) mod self_subject_review;
    pub(crate) mod token_review;
}

pub(crate) mod authorization {
    pub(crate) mod local_subject_access_review;
    pub(crate) mod self_subject_access_review;
    pub(crate) mod self_subject_rules_review;
    pub(crate) mod subject_access_review;
}

pub(crate) mod autoscaling {
    pub(crate) mod horizontal_pod_autoscaler;
    pub(crate) mod horizontal_pod_autoscaler_v1;
}

pub(crate) mod batch {
    pub(crate) mod cron_job;
    pub(crate) mod job;
}

pub(crate) mod certificates {
    pub(crate) mod certificate_signing_request;
}

pub(crate) mod coordination {
    pub(crate) mod lease;
}

pub(crate) mod discovery {
    pub(crate) mod endpoint_slice;
}

pub(crate) mod events {
    pub(crate) mod event;
}

pub(crate) mod flowcontrol {
    pub(crate) mod bootstrap;
    mod conditions;
    pub(crate) mod flow_schema;
    pub(crate) mod priority_level_configuration;
    mod rules;
    mod table;
}

pub(crate) mod networking {
    pub(crate) mod ingress;
    pub(crate) mod ingress_class;
    pub(crate) mod ip_address;
    pub(crate) mod network_policy;
    pub(crate) mod service_cidr;
}

pub(crate) mod node {
    pub(crate) mod runtime_class;
}

pub(crate) mod policy {
    pub(crate) mod pod_disruption_budget;
}

pub(crate) mod rbac {
    pub(crate) mod cluster_role;
    pub(crate) mod cluster_role_binding;
    pub(crate) mod role;
    pub(crate) mod role_binding;
}

pub(crate) mod resource {
    pub(crate) mod device_class;
    pub(crate) mod resource_claim;
    pub(crate) mod resource_claim_template;
    pub(crate) mod resource_slice;
}

pub(crate) mod scheduling {
    pub(crate) mod priority_class;
}

pub(crate) mod storage {
    pub(crate) mod csi_driver;
    pub(crate) mod csi_node;
    pub(crate) mod csi_storage_capacity;
    pub(crate) mod storage_class;
    pub(crate) mod volume_attachment;
    pub(crate) mod volume_attributes_class;
}

pub(crate) mod not_served;

use crate::Kind;

/// How many kinds there are.
pub(crate) const COUNT: usize = KINDS.len();

static ALL: &[Kind] = KINDS;

pub(crate) fn all() -> &'static [Kind] {
    ALL
}

/// The row of a kind.
pub(crate) fn place(kind: &Kind) -> usize {
    let is_it = |row: &Kind| (row.group, row.version, row.kind) == (kind.group, kind.version, kind.kind);
    ALL.iter().position(is_it).unwrap_or_default()
}

/// In the order of discovery: the core group, then the others by name. The first version of a group is the one that clients
/// are told to prefer.
const KINDS: &[Kind] = &[
    core::binding::KIND,
    core::component_status::KIND,
    core::config_map::KIND,
    core::endpoints::KIND,
    core::event::KIND,
    core::limit_range::KIND,
    core::namespace::KIND,
    core::node::KIND,
    core::persistent_volume_claim::KIND,
    core::persistent_volume::KIND,
    core::pod::KIND,
    core::pod_template::KIND,
    core::replication_controller::KIND,
    core::resource_quota::KIND,
    core::secret::KIND,
    core::service_account::KIND,
    core::service::KIND,
    admissionregistration::mutating_admission_policy::KIND,
    admissionregistration::mutating_admission_policy_binding::KIND,
    admissionregistration::mutating_webhook_configuration::KIND,
    admissionregistration::validating_admission_policy::KIND,
    admissionregistration::validating_admission_policy_binding::KIND,
    admissionregistration::validating_webhook_configuration::KIND,
    apiextensions::custom_resource_definition::KIND,
    apiregistration::api_service::KIND,
    apps::controller_revision::KIND,
    apps::daemon_set::KIND,
    apps::deployment::KIND,
    apps::replica_set::KIND,
    apps::stateful_set::KIND,
    authentication::self_subject_review::KIND,
    authentication::token_review::KIND,
    authorization::local_subject_access_review::KIND,
    authorization::self_subject_access_review::KIND,
    authorization::self_subject_rules_review::KIND,
    authorization::subject_access_review::KIND,
    autoscaling::horizontal_pod_autoscaler::KIND,
    autoscaling::horizontal_pod_autoscaler_v1::KIND,
    batch::cron_job::KIND,
    batch::job::KIND,
    certificates::certificate_signing_request::KIND,
    coordination::lease::KIND,
    discovery::endpoint_slice::KIND,
    events::event::KIND,
    flowcontrol::flow_schema::KIND,
    flowcontrol::priority_level_configuration::KIND,
    networking::ingress_class::KIND,
    networking::ingress::KIND,
    networking::ip_address::KIND,
    networking::network_policy::KIND,
    networking::service_cidr::KIND,
    node::runtime_class::KIND,
    policy::pod_disruption_budget::KIND,
    rbac::cluster_role_binding::KIND,
    rbac::cluster_role::KIND,
    rbac::role_binding::KIND,
    rbac::role::KIND,
    resource::device_class::KIND,
    resource::resource_claim::KIND,
    resource::resource_claim_template::KIND,
    resource::resource_slice::KIND,
    scheduling::priority_class::KIND,
    storage::csi_driver::KIND,
    storage::csi_node::KIND,
    storage::csi_storage_capacity::KIND,
    storage::storage_class::KIND,
    storage::volume_attachment::KIND,
    storage::volume_attributes_class::KIND,
];
