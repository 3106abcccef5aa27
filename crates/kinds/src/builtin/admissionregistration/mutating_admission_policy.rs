use crate::Kind;
use crate::kind::row::kind;
use crate::validate::field::{Errors, Field};
use crate::validate::policies::common;
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingAdmissionPolicy",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicy",
)
.categories(&["api-extensions"])
.cluster_wide()
.generation()
.conditional()
.validate_with(validate)
.metadata_checks(0, 1)
.table(table::TABLE);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = object.get("spec");
    common(&spec, true, errors);
    let mutations = spec.get("mutations");
    mutations.required_as("mutations must contain at least one item", errors);
    for mutation in mutations.items() {
        let kind = mutation.get("patchType");
        let (used, unused) = match kind.text() {
            "JSONPatch" => ("jsonPatch", "applyConfiguration"),
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
            "" => {
                errors.push(FieldError::required(&kind.at, ""));
                continue;
            }
            _ => {
                kind.one_of(&["ApplyConfiguration", "JSONPatch"], errors);
                continue;
            }
        };
        let patch = mutation.get(used);
        if !patch.is_set() {
            let detail = format!("must be specified when patchType is {}", kind.text());
            errors.push(FieldError::required(&patch.at, detail));
        } else if patch.get("expression").text().trim().is_empty() {
            errors.push(FieldError::required(&patch.get("expression").at, ""));
        }
        if mutation.get(unused).is_set() {
            let detail = format!("must not be specified when patchType is {}", kind.text());
            errors.push(FieldError::invalid(&mutation.get(unused).at, format!("{{{unused}}}"), detail));
        }
    }
    let again = spec.get("reinvocationPolicy");
    if again.required(errors) {
        again.one_of(&["IfNeeded", "Never"], errors);
    }
}

mod table {
    use crate::columns::policies::{PARAMETERS, policy};
    use watchkeeper_table::layout::{AGE, Layout, NAME, integer};

    pub(super) const TABLE: Layout =
        Layout::new(&[NAME, integer("Mutations", "How many changes are made."), PARAMETERS, AGE], |view| {
            policy(view, "spec.mutations")
        });
}
