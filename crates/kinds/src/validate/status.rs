//! What controllers may say of the things they look after.

use super::field::{Errors, Field};
use watchkeeper_schema::FieldError;

/// The numbers in a status.
pub(crate) struct Counts {
    /// Those that are not below zero, in the order in which they are looked at.
    pub(crate) not_negative: &'static [&'static str],
    /// Those of which there are not more than there are replicas.
    pub(crate) of_replicas: &'static [&'static str],
    /// What the number of ready replicas is called, when more are said to be available.
    pub(crate) ready: &'static str,
}

impl Counts {
    /// Those of a replica set.
    pub(crate) const REPLICA_SET: Self = Self {
        not_negative: &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
        of_replicas: &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        ready: "readyReplicas",
    };

    pub(crate) fn validate(&self, status: &Field<'_>, errors: &mut Errors) {
        for name in self.not_negative {
            status.get(name).not_negative(errors);
        }
        let number = |name: &str| status.get(name).number().unwrap_or_default();
        let mut compare = |name: &str, limit: &str, called: &str| {
            if number(name) > number(limit) {
                let detail = format!("cannot be greater than {called}");
                errors.push(FieldError::invalid(&status.get(name).at, number(name), detail));
            }
        };
        self.of_replicas.iter().for_each(|name| compare(name, "replicas", "status.replicas"));
        if !self.of_replicas.is_empty() {
            compare("availableReplicas", "readyReplicas", self.ready);
        }
    }
}
