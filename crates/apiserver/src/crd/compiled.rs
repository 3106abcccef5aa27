use super::canonical::canonical;
use super::field::{deep, flag, get, list, optional_text, text};
use super::names::Names;
use super::priority::compare_versions;
use serde_json::{Value, json};
use std::sync::Arc;
use watchkeeper_schema::Schema;

/// A CustomResourceDefinition as the server serves it: read once when it changes, used for every request.
///
/// Reading is lenient. What the server stored it can read, and what it cannot understand (a schema of the wrong form,
/// say) counts as not being there: losing sight of objects would be worse than serving them unchecked.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    /// `metadata.name`: the plural and the group.
    pub(crate) name: String,
    /// `metadata.uid`: a definition that was deleted and made again is another one.
    pub(crate) uid: String,
    /// `example.com`.
    pub(crate) group: String,
    /// The names that were accepted; a name that was not is empty.
    pub(crate) names: Names,
    /// Whether objects live in namespaces.
    pub(crate) namespaced: bool,
    /// Every version, served or not, in the order of discovery.
    pub(crate) versions: Vec<Version>,
    /// How objects get from one version to another.
    pub(crate) conversion: Conversion,
    /// Whether the condition `Established` is true: the resource is in discovery.
    pub(crate) established: bool,
    /// Whether the condition `NamesAccepted` is true.
    pub(crate) names_accepted: bool,
    /// Whether the condition `Terminating` is true: nothing may be created any more.
    pub(crate) terminating: bool,
}

/// One version of a custom resource.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// `v1`.
    pub(crate) name: String,
    /// Whether requests for it are answered.
    pub(crate) served: bool,
    /// Whether objects are stored in it.
    pub(crate) storage: bool,
    /// What clients that use it are told: it is deprecated.
    pub(crate) warning: Option<String>,
    /// The schema; one that allows everything if the definition has none.
    pub(crate) schema: Arc<Schema>,
    /// The schema as written; null if the definition has none.
    pub(crate) openapi: Arc<Value>,
    /// Tells two schemas apart. The same for the same schema in every process and release.
    pub(crate) fingerprint: u64,
    /// Whether there is a `/status`.
    pub(crate) status: bool,
    /// Where `/scale` finds its numbers, if there is one.
    pub(crate) scale: Option<ScalePaths>,
    /// `additionalPrinterColumns` as written.
    pub(crate) columns: Vec<Value>,
    /// The paths that field selectors may use: `.spec.color`.
    pub(crate) selectable: Vec<String>,
}

/// The paths of `subresources.scale`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    /// Where the number of replicas that is wanted stands: `.spec.replicas`.
    pub(crate) spec: String,
    /// Where the number that is there stands: `.status.replicas`.
    pub(crate) status: String,
    /// Where the label selector stands.
    pub(crate) selector: Option<String>,
}

/// How objects get from one version to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Conversion {
    /// The `apiVersion` is rewritten.
    None,
    /// A webhook is asked; `spec.conversion.webhook` as written.
    Webhook(Value),
}

/// Why a stored object is no definition at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a CustomResourceDefinition: {field} is missing")]
pub(crate) struct NotADefinition {
    field: &'static str,
}

impl Definition {
    /// Reads a definition.
    ///
    /// Fails only if there is no group or no name of the resource, without which nothing can be served.
    pub(crate) fn read(definition: &Value) -> Result<Self, NotADefinition> {
        let missing = |field| NotADefinition { field };
        let spec = get(definition, "spec").ok_or(missing("spec"))?;
        let group = text(spec, "group");
        if group.is_empty() {
            return Err(missing("spec.group"));
        }
        if deep(spec, &["names", "plural"]).and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(missing("spec.names.plural"));
        }
        let mut versions: Vec<Version> =
            list(spec, "versions").iter().map(|version| Version::read(version, spec)).collect();
        versions.sort_by(|one, other| compare_versions(&one.name, &other.name));
        let metadata = get(definition, "metadata").unwrap_or(&Value::Null);
        let is_true = |condition| super::conditions::is_true(definition, condition);
        Ok(Self {
            name: text(metadata, "name").into(),
            uid: text(metadata, "uid").into(),
            group: group.into(),
            names: Names::accepted(definition),
            namespaced: text(spec, "scope") == "Namespaced",
            versions,
            conversion: Conversion::read(spec),
            established: is_true("Established"),
            names_accepted: is_true("NamesAccepted"),
            terminating: is_true("Terminating"),
        })
    }

    /// The version by this name, if it is served.
    #[cfg(test)]
    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.served && version.name == name)
    }

    /// The version objects are stored in.
    pub(crate) fn storage(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }

    /// `example.com/v1`, for one of the versions.
    pub(crate) fn api_version(&self, version: &Version) -> String {
        format!("{}/{}", self.group, version.name)
    }

    /// What somebody who writes the definition should know: parts of it that have no effect here.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let with_rules = self.versions.iter().filter(|version| !version.schema.rules().is_empty());
        let warning = |version: &Version| {
            format!(
                "spec.versions[{}]: the rules of x-kubernetes-validations are kept, but not evaluated",
                version.name
            )
        };
        with_rules.map(warning).collect()
    }

    /// What discovery says can be done with the objects: nothing new once the definition is being deleted.
    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        if self.terminating {
            &["delete", "deletecollection", "get", "list", "watch"]
        } else {
            &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
        }
    }
}

impl Version {
    fn read(version: &Value, spec: &Value) -> Self {
        let openapi = deep(version, &["schema", "openAPIV3Schema"]);
        let subresources = get(version, "subresources").unwrap_or(&Value::Null);
        Self {
            name: text(version, "name").into(),
            served: flag(version, "served"),
            storage: flag(version, "storage"),
            warning: flag(version, "deprecated").then(|| deprecation(version, spec)),
            schema: Arc::new(schema(openapi)),
            fingerprint: openapi.map_or(0, |openapi| fnv(openapi.to_string().as_bytes())),
            openapi: Arc::new(openapi.cloned().unwrap_or_default()),
            status: get(subresources, "status").is_some(),
            scale: get(subresources, "scale").map(ScalePaths::read),
            columns: list(version, "additionalPrinterColumns").to_vec(),
            selectable: list(version, "selectableFields")
                .iter()
                .map(|field| text(field, "jsonPath").into())
                .collect(),
        }
    }
}

impl ScalePaths {
    fn read(scale: &Value) -> Self {
        Self {
            spec: text(scale, "specReplicasPath").into(),
            status: text(scale, "statusReplicasPath").into(),
            selector: optional_text(scale, "labelSelectorPath")
                .filter(|path| !path.is_empty())
                .map(Into::into),
        }
    }
}

impl Conversion {
    fn read(spec: &Value) -> Self {
        let Some(conversion) = get(spec, "conversion") else {
            return Self::None;
        };
        match (text(conversion, "strategy"), get(conversion, "webhook")) {
            ("Webhook", Some(webhook)) => Self::Webhook(webhook.clone()),
            _ => Self::None,
        }
    }
}

fn schema(openapi: Option<&Value>) -> Schema {
    if let Some(schema) = openapi.and_then(|openapi| Schema::read(&canonical(openapi)).ok()) {
        return schema;
    }
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    // The literal above has the form of a schema.
    Schema::read(&anything).unwrap_or_else(|_| unreachable!("a constant schema"))
}

/// What clients of a deprecated version read: the author's words, or which version to use instead.
fn deprecation(version: &Value, spec: &Value) -> String {
    if let Some(warning) = optional_text(version, "deprecationWarning") {
        return warning.into();
    }
    let (group, name) = (text(spec, "group"), text(version, "name"));
    let kind = deep(spec, &["names", "kind"]).and_then(Value::as_str).unwrap_or_default();
    let better =
        list(spec, "versions").iter().filter(|other| flag(other, "served") && !flag(other, "deprecated"));
    let better =
        better.map(|other| text(other, "name")).filter(|other| compare_versions(other, name).is_lt());
    match better.min_by(|one, other| compare_versions(one, other)) {
        Some(better) => format!("{group}/{name} {kind} is deprecated; use {group}/{better} {kind}"),
        None => format!("{group}/{name} {kind} is deprecated"),
    }
}

/// FNV-1a: small, and the same everywhere.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
