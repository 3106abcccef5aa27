//! The status of a CertificateSigningRequest is written by those who may `sign` for its signer.

use std::sync::Arc;

use serde_json::Value;

use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done};
use crate::access::Access;
use crate::write::certificates;

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("CertificateSigning", |handles| Box::new(CertificateSigning(Arc::clone(&handles.access))));

struct CertificateSigning(Arc<Access>);

impl Plugin for CertificateSigning {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        scope.verb == Verb::Update
            && scope.subresource == "status"
            && scope.is_below(certificates::GROUP, certificates::PLURAL)
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: &'a Value,
        _: &'a mut Vec<String>,
    ) -> Admitted<'a> {
        if attributes.old.is_some_and(|old| old["status"] == object["status"]) {
            return done(Ok(()));
        }
        done(certificates::check_signer(&self.0, attributes, "sign"))
    }
}
