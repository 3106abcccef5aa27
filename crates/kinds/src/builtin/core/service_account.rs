use crate::Kind;
use crate::kind::row::{TOKEN, kind};
use serde_json::Value;

pub(crate) const KIND: Kind = kind("", "v1", "ServiceAccount", "serviceaccounts", "serviceaccount")
    .short(&["sa"])
    .with(&[TOKEN])
    .returns_deleted()
    .warn(warning);

fn warning(account: &Value, old: Option<&Value>) -> Option<&'static str> {
    let is_set = |account: &Value| {
        !account["metadata"]["annotations"]["kubernetes.io/enforce-mountable-secrets"].is_null()
    };
    (is_set(account) && !old.is_some_and(is_set)).then_some(
        "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets",
    )
}
