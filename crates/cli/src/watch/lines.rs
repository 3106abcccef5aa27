//! Changes as JSON, one object a line.

use serde::Serialize;
use serde_json::Value;
use watchkeeper_diff::{Difference, visible};

use super::report::Report;
use super::target::Target;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    time: String,
    #[serde(rename = "type")]
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    name: &'a str,
    resource_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    manager: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    compared: bool,
    changes: Vec<Change<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Value>,
}

#[derive(Serialize)]
struct Change<'a> {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a Value>,
}

impl<'a> Change<'a> {
    fn of(difference: &'a Difference) -> Self {
        let Difference { path, from, to } = difference;
        Self { path: path.to_string(), from: from.as_ref(), to: to.as_ref() }
    }
}

/// The line of a change. The object is in it if it is asked for, without the record of its owners unless all fields are.
pub(super) fn line(report: &Report, target: &Target, objects: bool, all_fields: bool) -> String {
    let object = report.object.as_deref().filter(|_| objects).cloned().map(|mut object| {
        if !all_fields && let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("managedFields");
        }
        object
    });
    // What is not of a cluster may say itself what it is.
    let own = |name: &str| report.object.as_deref()?.get(name)?.as_str();
    let line = Line {
        time: format!("{:.3}", report.time),
        what: report.what.word(),
        source: target.kind().is_none().then(|| target.label()),
        api_version: target.kind().map_or_else(|| own("apiVersion"), |kind| Some(&kind.resource.api_version)),
        kind: target.kind().map_or_else(|| own("kind"), |kind| Some(&kind.resource.kind)),
        namespace: report.key.namespace(),
        name: report.key.name(),
        resource_version: report.version.to_string(),
        manager: Some(report.managers.join(", ")).filter(|names| !names.is_empty()),
        compared: report.compared,
        changes: report.differences.iter().map(Change::of).collect(),
        object,
    };
    // Values that were JSON before are JSON again, so this cannot fail.
    let text = serde_json::to_string(&line).unwrap_or_default();
    // The same JSON, which somebody may look at on a terminal.
    let mut text = visible(&text).into_owned();
    text.push('\n');
    text
}
