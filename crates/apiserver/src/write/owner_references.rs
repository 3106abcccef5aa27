//! Owner references that an object has twice, of which one is dropped with a warning.

use serde_json::Value;

/// When owner references are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// As the author of the write sent them.
    Sent,
    /// After admission has completed the object.
    Mutated,
}

/// Drops owner references that are the same in every field as one before them. Those that share the uid alone stay, as in
/// kube-apiserver.
pub(super) fn deduplicate(object: &mut Value, stage: Stage, warnings: &mut Vec<String>) {
    let references = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("ownerReferences"));
    let Some(references) = references.and_then(Value::as_array_mut).filter(|all| all.len() > 1) else {
        return;
    };
    let (mut kept, mut repeated): (Vec<Value>, Vec<String>) = <_>::default();
    for reference in references.iter() {
        if kept.iter().any(|other| is_same(other, reference)) {
            repeated.push(reference["uid"].as_str().unwrap_or_default().to_owned());
        } else {
            kept.push(reference.clone());
        }
    }
    if repeated.is_empty() {
        return;
    }
    *references = kept;
    let when = match stage {
        Stage::Sent => "",
        Stage::Mutated => " after mutating admission happens",
    };
    warnings.push(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such \
         requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        repeated.join(", ")
    ));
}

/// Whether two references are the same. A field that is null is not there.
fn is_same(one: &Value, other: &Value) -> bool {
    const FIELDS: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    FIELDS.iter().all(|field| one[field] == other[field])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_references_that_are_the_same_in_every_field_are_dropped() {
        let owner =
            |name: &str, uid: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid});
        let mut controller = owner("a", "1");
        controller["controller"] = true.into();
        let mut nulls = owner("a", "1");
        nulls["controller"] = Value::Null;
        let all = [
            owner("a", "1"),
            owner("b", "1"),
            owner("a", "1"),
            owner("a", "2"),
            controller.clone(),
            nulls,
            owner("a", "2"),
        ];
        let mut object = json!({"metadata": {"ownerReferences": all}});
        let mut warnings = Vec::new();
        deduplicate(&mut object, Stage::Sent, &mut warnings);
        let kept = json!([owner("a", "1"), owner("b", "1"), owner("a", "2"), controller]);
        assert_eq!(object["metadata"]["ownerReferences"], kept);
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].ends_with("duplicate UID(s) observed: 1, 1, 2"), "{warnings:?}");
        let before = object.clone();
        deduplicate(&mut object, Stage::Mutated, &mut warnings);
        assert_eq!((object, warnings.len()), (before, 1));
    }
}
