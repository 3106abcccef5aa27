use crate::Kind;
use crate::kind::row::kind;
use crate::validate::devices::{configuration, selectors};
use crate::validate::field::{Errors, Field};

pub(crate) const KIND: Kind = kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", "deviceclass")
    .cluster_wide()
    .generation()
    .returns_deleted()
    .validate_with(validate);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
    selectors(spec, errors);
    for config in spec.get("config").items() {
        configuration(&config, errors);
    }
}
