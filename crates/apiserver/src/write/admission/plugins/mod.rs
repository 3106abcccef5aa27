//! The plug-ins, each in a file of upstream's name.

pub(super) mod certificate_approval;
pub(super) mod certificate_signing;
pub(super) mod certificate_subject_restriction;
pub(super) mod default_toleration_seconds;
pub(super) mod namespace_lifecycle;
pub(super) mod priority;
pub(super) mod storage_object_in_use_protection;
pub(super) mod taint_nodes_by_condition;

use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done};
