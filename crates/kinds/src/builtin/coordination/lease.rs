use crate::Kind;
use crate::kind::row::kind;
use crate::validate::field::{Errors, Field};

pub(crate) const KIND: Kind = kind("coordination.k8s.io", "v1", "Lease", "leases", "lease")
    .created_on_update()
    .conditional()
    .validate_with(validate)
    .metadata_checks(1, 0)
    .table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = &object.get("spec");
    let seconds = spec.get("leaseDurationSeconds");
    if seconds.number().is_some_and(|seconds| seconds <= 0) {
        seconds.invalid("must be greater than 0", errors);
    }
    spec.get("leaseTransitions").not_negative(errors);
}

mod table {
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout =
        Layout::new(&[NAME, text("Holder", "Who holds the lease."), AGE], |view| {
            vec![view.name(), view.object.text("spec.holderIdentity").into(), view.age()]
        });
}
