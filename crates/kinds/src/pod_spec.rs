//! The spec of a pod, wherever it occurs.

use crate::kind::strategy::Fields;

/// The old name of the service account is kept for old readers. A pod has at least a second to end in, if it has any.
pub(crate) fn unify(spec: &mut Fields) {
    let seconds = spec.get_mut("terminationGracePeriodSeconds");
    if let Some(seconds) = seconds.filter(|seconds| seconds.as_i64().is_some_and(|seconds| seconds < 0)) {
        *seconds = 1.into();
    }
    let name = spec.get("serviceAccountName").or_else(|| spec.get("serviceAccount")).cloned();
    if let Some(name) = name {
        spec.insert("serviceAccountName".into(), name.clone());
        spec.insert("serviceAccount".into(), name);
    }
}
