//! Pods stay for five minutes on a node that is not ready or cannot be reached.

use serde_json::{Value, json};

use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done};
use crate::write::Draft;

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("DefaultTolerationSeconds", |_| Box::new(DefaultTolerationSeconds));

/// How long a Pod tolerates a node in trouble, as upstream.
const TOLERATION_SECONDS: i64 = 300;

struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        matches!(scope.verb, Verb::Create | Verb::Update) && scope.is_of("", "pods")
    }

    fn mutate<'a>(&'a self, _: &'a Attributes<'a>, draft: &'a mut Draft) -> Admitted<'a> {
        tolerate(&mut draft.object);
        done(Ok(()))
    }
}

fn tolerate(pod: &mut Value) {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    let tolerations = spec.entry("tolerations").or_insert(json!([]));
    let Value::Array(tolerations) = tolerations else { return };
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerates = |toleration: &Value| {
            let any_key = matches!(toleration["key"].as_str(), None | Some(""));
            let any_effect = matches!(toleration["effect"].as_str(), None | Some("" | "NoExecute"));
            any_effect && (any_key || toleration["key"] == taint)
        };
        if !tolerations.iter().any(tolerates) {
            tolerations.push(json!({
                "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
}
