use crate::columns;
use crate::kind::row::kind;
use crate::validate::field::{Errors, Field};
use crate::validate::rbac;
use crate::{Kind, NameRule};

pub(crate) const KIND: Kind =
    kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "rolebinding")
        .named(NameRule::PathSegment)
        .created_on_update()
        .validate_with(validate)
        .type_defaults(&[("Subject", rbac::default_subject)])
        .validate_update(rbac::keep_role)
        .table(columns::rbac::BINDING);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    rbac::binding(object, true, errors);
}
