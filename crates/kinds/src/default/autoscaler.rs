use super::{Fields, object, set};
use serde_json::json;

/// If there are rules at all, they are complete.
pub(super) fn behavior(fields: &mut Fields) {
    if let Some(up) = object(fields, "scaleUp") {
        set(up, "stabilizationWindowSeconds", 0);
        set(up, "selectPolicy", "Max");
        let policies = json!([
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ]);
        set(up, "policies", policies);
    }
    if let Some(down) = object(fields, "scaleDown") {
        set(down, "selectPolicy", "Max");
        set(down, "policies", json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
    }
}
