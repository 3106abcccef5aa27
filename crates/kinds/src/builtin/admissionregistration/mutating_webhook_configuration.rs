use crate::Kind;
use crate::columns;
use crate::kind::row::kind;
use crate::prepare::differs;
use crate::validate::field::{Errors, Field};
use crate::validate::webhooks;

pub(crate) const KIND: Kind = kind(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    "mutatingwebhookconfiguration",
)
.categories(&["api-extensions"])
.cluster_wide()
.conditional()
.generation_counts(|new, old| differs("webhooks", new, old))
.validate_with(validate)
.metadata_checks(0, 1)
.table(columns::policies::WEBHOOKS);

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    webhooks::webhooks(&object.get("webhooks"), true, errors);
}
