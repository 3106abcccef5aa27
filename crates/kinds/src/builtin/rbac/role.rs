use crate::kind::row::kind;
use crate::validate::field::{Errors, Field};
use crate::validate::rbac;
use crate::{Kind, NameRule};
use watchkeeper_table::layout::Layout;

pub(crate) const KIND: Kind = kind("rbac.authorization.k8s.io", "v1", "Role", "roles", "role")
    .named(NameRule::PathSegment)
    .created_on_update()
    .validate_with(validate)
    .table(Layout::CREATED);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    rbac::role(object, true, errors);
}
