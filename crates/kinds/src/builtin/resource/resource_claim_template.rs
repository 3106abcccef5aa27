use crate::Kind;
use crate::kind::row::kind;
use crate::validate::devices;
use crate::validate::field::{Errors, Field};

pub(crate) const KIND: Kind =
    kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", "resourceclaimtemplate")
        .returns_deleted()
        .immutable(&["spec"])
        .type_defaults(devices::TYPE_DEFAULTS)
        .validate_with(validate);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    devices::claim(&object.get("spec").get("spec"), errors);
}
