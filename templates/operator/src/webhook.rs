//! What is asked of a Gadget before it is stored. Functions over typed objects: the server is told by the manager.

use watchkeeper::prelude::*;

use crate::kind::Gadget;

/// Adds the webhooks to a manager.
#[must_use]
pub fn webhooks(manager: Manager) -> Manager {
    manager.webhook(Webhook::of::<Gadget>().default(default).validate(validate))
}

/// Sets what is missing, or not as it is kept. Fields that are not changed here stay as they were sent.
fn default(object: &mut Gadget, _: &AdmissionRequest) {
    object.spec.message = object.spec.message.trim().to_owned();
}

/// Says everything that is wrong, field by field, and warns of what is not wrong but surprising.
fn validate(new: &Gadget, old: Option<&Gadget>, _: &AdmissionRequest) -> Verdict {
    let mut verdict = Verdict::allow();
    let message = &new.spec.message;
    if message.contains('\u{0}') {
        verdict.invalid("spec.message", message.as_str(), "must not contain NUL");
    }
    if old.is_some_and(|old| old.spec.message.len() > 2 * message.len()) {
        verdict.warn("spec.message: is less than half of what it was");
    }
    verdict
}
