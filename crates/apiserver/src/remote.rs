//! What other servers serve: a group and version for which an APIService names a Service.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// A version of a group that another server serves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Remote {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) backend: Backend,
    pub(crate) group_priority: i64,
    pub(crate) version_priority: i64,
    /// Whether requests are handed on.
    pub(crate) is_available: bool,
    /// Its resources, as it last listed them.
    pub(crate) resources: Vec<Value>,
    /// Where its documents of OpenAPI are, by the paths that they are about.
    pub(crate) documents: BTreeMap<String, String>,
    /// What `/openapi/v2` says about it there: paths and definitions.
    pub(crate) second_document: Arc<Value>,
}

/// Where another server is, and how it is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Backend {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) port: u16,
    /// The authorities that its certificate is of, in PEM; empty for those of the system.
    pub(crate) authorities: Vec<u8>,
    /// Whether its certificate is not looked at.
    pub(crate) is_unverified: bool,
}

impl Remote {
    /// Reads an APIService; `None` if it names no Service.
    pub(crate) fn read(object: &Value) -> Option<Self> {
        let spec = &object["spec"];
        let service = spec["service"].as_object()?;
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let port = service.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
        let authorities =
            spec["caBundle"].as_str().and_then(|text| watchkeeper_go::base64::decode(text).ok());
        let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        Some(Self {
            group: text(spec.get("group")),
            version: text(spec.get("version")),
            backend: Backend {
                namespace: text(service.get("namespace")),
                name: text(service.get("name")),
                port: port.unwrap_or(443),
                authorities: authorities.unwrap_or_default(),
                is_unverified: spec["insecureSkipTLSVerify"] == true,
            },
            group_priority: spec["groupPriorityMinimum"].as_i64().unwrap_or_default(),
            version_priority: spec["versionPriority"].as_i64().unwrap_or_default(),
            is_available: conditions
                .any(|condition| condition["type"] == "Available" && condition["status"] == "True"),
            resources: Vec::new(),
            documents: BTreeMap::new(),
            second_document: Arc::default(),
        })
    }

    /// `metrics.k8s.io/v1beta1`
    pub(crate) fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}
