use crate::Kind;
use crate::kind::row::kind;
use crate::validate::field::{Errors, Field};
use crate::validate::{containers, selector};
use watchkeeper_table::layout::Layout;

pub(crate) const KIND: Kind =
    kind("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", "csistoragecapacity")
        .conditional()
        .immutable(&["nodeTopology", "storageClassName"])
        .validate_with(validate)
        .table(Layout::CREATED);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    selector::selector(&object.get("nodeTopology"), errors);
    let class = object.get("storageClassName");
    for problem in watchkeeper_schema::metadata::dns_subdomain_problems(class.text()) {
        class.invalid(problem, errors);
    }
    containers::not_negative(&object.get("capacity"), errors);
}
