use crate::Kind;
use crate::columns;
use crate::kind::row::kind;
use crate::validate::field::{Errors, Field};
use crate::validate::policies;
use serde_json::Value;

pub(crate) const KIND: Kind = kind(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingAdmissionPolicyBinding",
    "mutatingadmissionpolicybindings",
    "mutatingadmissionpolicybinding",
)
.categories(&["api-extensions"])
.cluster_wide()
.generation()
.conditional()
.validate_with(validate)
.warn(warning)
.metadata_checks(0, 1)
.table(columns::policies::BINDING);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    policies::binding(&object.get("spec"), true, errors);
}

fn warning(_: &Value, _: Option<&Value>) -> Option<&'static str> {
    Some(policies::NOT_EVALUATED)
}
