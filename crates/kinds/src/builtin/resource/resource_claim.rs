use crate::kind::row::{STATUS, kind};
use crate::validate::devices;
use crate::validate::field::{Errors, Field};
use crate::{Kind, Subresource};

pub(crate) const KIND: Kind =
    kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", "resourceclaim")
        .with(&[STATUS])
        .returns_deleted()
        .immutable(&["spec"])
        .type_defaults(devices::TYPE_DEFAULTS)
        .validate_with(validate)
        .status_keeps(&["labels", "annotations", "ownerReferences", "finalizers"])
        .resets(&[(Subresource::Status, &[&["metadata"], &["spec"]])])
        .table(table::TABLE);

fn validate(object: &Field<'_>, old: Option<&Field<'_>>, errors: &mut Errors) {
    if old.is_none() {
        devices::claim(&object.get("spec"), errors);
    }
}

mod table {
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout =
        Layout::new(&[NAME, text("State", "Whether devices are allocated, and for whom."), AGE], |view| {
            let claim = view.object;
            let (is_deleted, is_allocated) =
                (claim.has("metadata.deletionTimestamp"), claim.has("status.allocation"));
            let states = [
                ("deleted", is_deleted),
                ("pending", !is_deleted && !is_allocated),
                ("allocated", is_allocated),
                ("reserved", is_allocated && !claim.list("status.reservedFor").is_empty()),
            ];
            let states: Vec<&str> = states.into_iter().filter_map(|(name, is)| is.then_some(name)).collect();
            vec![view.name(), states.join(",").into(), view.age()]
        });
}
