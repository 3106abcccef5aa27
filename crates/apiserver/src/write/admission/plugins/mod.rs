//! The plug-ins, each in a file of upstream's name.

pub(super) mod certificate_approval;
pub(super) mod certificate_signing;
pub(super) mod certificate_subject_restriction;
pub(super) mod default_ingress_class;
pub(super) mod default_storage_class;
pub(super) mod default_toleration_seconds;
pub(super) mod limit_ranger;
pub(super) mod namespace_lifecycle;
pub(super) mod owner_references_permission_enforcement;
pub(super) mod persistent_volume_claim_resize;
pub(crate) mod pod_security;
pub(super) mod priority;
pub(crate) mod resource_quota;
pub(super) mod runtime_class;
pub(super) mod service_account;
pub(super) mod storage_object_in_use_protection;
pub(super) mod taint_nodes_by_condition;

use super::listers::Lister;
use super::pod_resources;
use super::{Admitted, Attributes, Make, Plugin, PluginHandles, Scope, Verb, done};
