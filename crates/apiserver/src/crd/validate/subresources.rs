//! `subresources.scale`.

use super::columns::check_path;
use super::versions::shown_as;
use crate::crd::field::{get, optional_text, text};
use serde_json::Value;
use watchkeeper_go::json as go_json;
use watchkeeper_schema::{FieldError, Path};

/// What is wrong with the paths of `/scale`.
pub(super) fn check(subresources: &Value, at: &Path, errors: &mut Vec<FieldError>) {
    let Some(scale) = get(subresources, "scale") else {
        return;
    };
    for (field, root) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let at = at.child("scale").child(field);
        match text(scale, field) {
            "" => errors.push(FieldError::required(&at, "")),
            path => match check_path(path, &at) {
                Some(error) => errors.push(error),
                None if !is_below(path, root) => {
                    let detail = format!("should be a json path under {root}");
                    errors.push(FieldError::invalid(&at, path, detail));
                }
                None => {}
            },
        }
    }
    let Some(path) = optional_text(scale, "labelSelectorPath").filter(|path| !path.is_empty()) else {
        return;
    };
    let at = at.child("scale").child("labelSelectorPath");
    match check_path(path, &at) {
        Some(error) => errors.push(error),
        None if !is_below(path, ".spec") && !is_below(path, ".status") => {
            let shown = go_json::encode(&Value::from(path));
            errors.push(shown_as(&at, &shown, "should be a json path under either .spec or .status"));
        }
        None => {}
    }
}

fn is_below(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.starts_with('.'))
}
