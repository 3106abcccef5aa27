//! What is in a Secret is nobody's business, how long it is may help to see that it changed.

use serde_json::Value;
use watchkeeper_diff::{Difference, Segment};

/// Where kubectl keeps a copy of everything that was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Replaces the values of differences that would show what is in a Secret. Says which they were.
pub(super) fn hide(differences: &mut [Difference]) {
    for difference in differences.iter_mut().filter(|difference| is_secret(&difference.path.0)) {
        for value in [&mut difference.from, &mut difference.to].into_iter().flatten() {
            *value = hidden(value);
        }
    }
}

/// Whether a path leads to what is in a Secret.
pub(super) fn is_secret(path: &[Segment]) -> bool {
    match path {
        [Segment::Field(first), ..] if first == "data" || first == "stringData" => true,
        [Segment::Field(first), Segment::Field(second), Segment::Field(third)] => {
            first == "metadata" && second == "annotations" && third == LAST_APPLIED
        }
        _ => false,
    }
}

/// The whole object without its secrets.
pub(super) fn hide_in(object: &mut Value) {
    for members in ["/data", "/stringData"] {
        match object.pointer_mut(members) {
            Some(Value::Object(members)) => members.values_mut().for_each(|value| *value = hidden(value)),
            Some(other) => *other = hidden(other),
            None => {}
        }
    }
    if let Some(applied) =
        object.pointer_mut("/metadata/annotations").and_then(|annotations| annotations.get_mut(LAST_APPLIED))
    {
        *applied = "(hidden)".into();
    }
}

/// `(12 bytes)` of a value in base64.
fn hidden(value: &Value) -> Value {
    let looks_encoded = |text: &str| {
        text.len().is_multiple_of(4)
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
    };
    match value {
        Value::String(text) if looks_encoded(text) => {
            let padding = text.bytes().rev().take_while(|&byte| byte == b'=').count();
            format!("({} bytes)", (text.len() / 4 * 3).saturating_sub(padding)).into()
        }
        _ => "(hidden)".into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use watchkeeper_diff::compare;

    use super::*;

    #[test]
    fn of_a_secret_only_lengths_are_shown() {
        let secret = |data: Value| json!({"metadata": {"annotations": {LAST_APPLIED: data.to_string(), "a": "b"}}, "data": data, "stringData": {"x": "swordfish"}, "type": "Opaque"});
        let (old, new) = (
            secret(json!({"k": "c3dvcmRmaXNo", "gone": "YQ=="})),
            secret(json!({"k": "c3dvcmRmaXNoIQ==", "new": "swordfish!"})),
        );
        let mut differences = compare(&old, &new);
        hide(&mut differences);
        let text = format!("{differences:?}");
        assert!(!text.contains("swordfish") && !text.contains("c3dv"), "{text}");
        let told: Vec<_> = differences
            .iter()
            .map(|it| {
                format!(
                    "{} {} {}",
                    it.path,
                    it.from.clone().unwrap_or_default(),
                    it.to.clone().unwrap_or_default()
                )
            })
            .collect();
        assert_eq!(
            told[..3],
            [
                "data.gone \"(1 bytes)\" null",
                "data.k \"(9 bytes)\" \"(10 bytes)\"",
                "data.new null \"(hidden)\""
            ]
        );

        let mut object = new;
        hide_in(&mut object);
        let text = object.to_string();
        assert!(
            !text.contains("swordfish") && !text.contains("c3dv") && text.contains("(10 bytes)"),
            "{text}"
        );
        for mut odd in [json!({"data": "c3dvcmRmaXNo"}), json!({"data": ["c3dvcmRmaXNo"]})] {
            hide_in(&mut odd);
            assert!(!odd.to_string().contains("c3dv"), "{odd}");
        }
    }
}
