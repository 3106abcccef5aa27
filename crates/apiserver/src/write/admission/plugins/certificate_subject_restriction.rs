//! No client certificate is requested for the group of administrators.

use serde_json::Value;

use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done};
use crate::authentication::MASTERS;
use crate::write::certificates;

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("CertificateSubjectRestriction", |_| Box::new(CertificateSubjectRestriction));

/// The signer of client certificates.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        scope.verb == Verb::Create && scope.is_of(certificates::GROUP, certificates::PLURAL)
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: &'a Value,
        _: &'a mut Vec<String>,
    ) -> Admitted<'a> {
        let is_dangerous = object["spec"]["signerName"] == CLIENT_SIGNER
            && watchkeeper_kinds::requested_organizations(object).iter().any(|group| group == MASTERS);
        done(match is_dangerous {
            true => {
                let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
                Err(attributes.forbidden(&why))
            }
            false => Ok(()),
        })
    }
}
