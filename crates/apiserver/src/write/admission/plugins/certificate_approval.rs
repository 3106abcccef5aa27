//! A CertificateSigningRequest is approved or denied by those who may `approve` for its signer.

use std::sync::Arc;

use serde_json::Value;

use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done};
use crate::access::Access;
use crate::write::certificates;

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("CertificateApproval", |handles| Box::new(CertificateApproval(Arc::clone(&handles.access))));

struct CertificateApproval(Arc<Access>);

impl Plugin for CertificateApproval {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        scope.verb == Verb::Update
            && scope.subresource == "approval"
            && scope.is_below(certificates::GROUP, certificates::PLURAL)
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        _: &'a Value,
        _: &'a mut Vec<String>,
    ) -> Admitted<'a> {
        done(certificates::check_signer(&self.0, attributes, "approve"))
    }
}
