use std::time::Duration;

use serde_json::Value;
use watchkeeper_wire::LabelSelector;

use crate::webhook_client::ClientConfig;

/// How long a hook may take unless it says otherwise.
const TIMEOUT: u64 = 10;

/// One webhook, as it is configured.
pub(super) struct Hook {
    /// The name of the configuration that it is in.
    pub(super) configuration: String,
    pub(super) name: String,
    pub(super) rules: Vec<Rule>,
    pub(super) namespaces: Option<LabelSelector>,
    pub(super) objects: Option<LabelSelector>,
    /// Whether other versions of a resource count, too.
    pub(super) equivalent: bool,
    /// Whether a write goes on if the hook cannot be asked.
    pub(super) ignores_failure: bool,
    /// Whether asking it changes nothing.
    pub(super) dry_run: bool,
    /// Whether it is asked again after others have changed the object.
    pub(super) again: bool,
    /// Whether it has conditions that nobody here can evaluate.
    pub(super) has_conditions: bool,
    pub(super) timeout: Duration,
    /// `v1` or `v1beta1`: the first that it names and we know.
    pub(super) review: Option<ReviewVersion>,
    pub(super) client: ClientConfig,
}

/// The form of the reviews that a hook understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

/// What a hook is asked about.
pub(super) struct Rule {
    pub(super) operations: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) versions: Vec<String>,
    pub(super) resources: Vec<String>,
    pub(super) scope: String,
}

impl Hook {
    /// The hooks of a configuration. It was validated when it was written.
    pub(super) fn read_all(configuration: &str, object: &Value) -> Vec<Self> {
        let hooks = object["webhooks"].as_array().into_iter().flatten();
        hooks.map(|hook| Self::read(configuration, hook)).collect()
    }

    fn read(configuration: &str, hook: &Value) -> Self {
        let text = |field: &str| hook[field].as_str().unwrap_or_default();
        Self {
            configuration: configuration.to_owned(),
            name: text("name").to_owned(),
            rules: hook["rules"].as_array().into_iter().flatten().map(Rule::read).collect(),
            namespaces: selector(&hook["namespaceSelector"]),
            objects: selector(&hook["objectSelector"]),
            equivalent: text("matchPolicy") != "Exact",
            ignores_failure: text("failurePolicy") == "Ignore",
            dry_run: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            again: text("reinvocationPolicy") == "IfNeeded",
            has_conditions: hook["matchConditions"].as_array().is_some_and(|all| !all.is_empty()),
            timeout: Duration::from_secs(hook["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT).clamp(1, 30)),
            review: texts(&hook["admissionReviewVersions"]).iter().find_map(|version| {
                match version.as_str() {
                    "v1" => Some(ReviewVersion::V1),
                    "v1beta1" => Some(ReviewVersion::V1Beta1),
                    _ => None,
                }
            }),
            client: ClientConfig::read(&hook["clientConfig"]),
        }
    }
}

impl ReviewVersion {
    pub(super) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

impl Rule {
    fn read(rule: &Value) -> Self {
        Self {
            operations: texts(&rule["operations"]),
            groups: texts(&rule["apiGroups"]),
            versions: texts(&rule["apiVersions"]),
            resources: texts(&rule["resources"]),
            scope: rule["scope"].as_str().unwrap_or("*").to_owned(),
        }
    }
}

/// A selector that selects everything is none.
fn selector(value: &Value) -> Option<LabelSelector> {
    let is_empty = value.as_object().is_none_or(|fields| fields.values().all(is_nothing));
    if is_empty { None } else { LabelSelector::from_object(Some(value)).ok() }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}
