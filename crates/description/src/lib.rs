//! The description of an operator, made by the operator itself.
//!
//! A manager knows, without a connection, which kinds it defines, what it watches and writes, where it serves metrics, and how
//! it elects a leader. [`Description`] is that as one value, printed as JSON by `my-operator describe`. Everything that is made
//! for the operator (roles, charts, manifests, alerts, documentation) is made from this value, so that none of it can drift
//! from the program.
//!
//! [`Rights`] are what the program may ask of a cluster: the program refuses to send anything else, and [`roles`] makes the RBAC
//! objects that allow exactly that.

mod request;
mod rights;
mod roles;
mod run;
mod verbs;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use request::{Requested, Undeclared};
pub use rights::{Namespaces, Right, Rights, When};
pub use roles::{Roles, roles};
pub use run::{Run, ServedPort, Volume};
pub use verbs::Verbs;

/// The version of the form that a description has. It is raised with every field that is added: a program that does not know a field
/// would leave out what it stands for.
pub const API_VERSION: &str = "describe.watchkeeper.dev/v2";

/// The description of an operator, as one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Description {
    /// [`API_VERSION`].
    pub api_version: String,
    /// The name of the program: its field manager and the default name of its lease.
    pub name: String,
    /// The version of the program, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The purpose of the program in a sentence, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The CustomResourceDefinitions of the program, as objects.
    #[serde(default)]
    pub definitions: Vec<Value>,
    /// The controllers of the program.
    #[serde(default)]
    pub controllers: Vec<Controller>,
    /// The resources that the program caches, with the namespaces that a cache is limited to.
    #[serde(default)]
    pub caches: Vec<Cache>,
    /// The rights that the program needs.
    #[serde(default)]
    pub rights: Rights,
    /// The leader election among several replicas, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub election: Option<Election>,
    /// The port of probes and metrics, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics_port: Option<Port>,
    /// The option that turns the installation of the definitions on and off, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_option: Option<String>,
    /// The option that takes the namespaces to watch, with commas between them, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces_option: Option<String>,
    /// The metrics of the program.
    #[serde(default)]
    pub metrics: Vec<Metric>,
    /// The admission and conversion webhooks of the program.
    #[serde(default)]
    pub webhooks: Vec<Webhook>,
    /// The port of the webhooks, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_port: Option<u16>,
    /// The arguments with which the program leaves the configurations and certificates of its webhooks to others; `{folder}` stands for the folder
    /// with `tls.crt` and `tls.key`. Empty if the program has no such arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhook_arguments: Vec<String>,
    /// The way in which the program is run in a cluster, if it differs from that of operators.
    #[serde(default, skip_serializing_if = "Run::is_default")]
    pub run: Run,
    /// The maximum time that a stop takes, in seconds.
    pub grace_seconds: u64,
}

impl Description {
    /// Reads a description. A description of another version, or with an unknown field, is refused.
    pub fn from_json(json: &[u8]) -> Result<Self, DescriptionError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Versioned {
            api_version: String,
        }
        let Versioned { api_version } = serde_json::from_slice(json)?;
        if api_version != API_VERSION {
            return Err(DescriptionError::Version(api_version));
        }
        Ok(serde_json::from_slice(json)?)
    }
}

/// The error of a text that is not a description.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// The text is not what `describe` of a program prints.
    #[error("this is not the description of an operator: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The program was made with another version of the framework.
    #[error(
        "the description has apiVersion {0:?}, not {API_VERSION:?}: build the operator and this program from the same version of watchkeeper"
    )]
    Version(String),
}

/// A resource of the API.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resource {
    /// The API group; empty for the core one.
    pub group: String,
    /// The version that is used.
    pub version: String,
    /// The kind of the objects: `ConfigMap`.
    pub kind: String,
    /// The plural name of the resource: `configmaps`.
    pub plural: String,
    /// Whether the objects are in namespaces.
    pub namespaced: bool,
}

/// A controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Controller {
    /// The name of the controller in logs and metrics.
    pub name: String,
    /// The resource that the controller reconciles, if it reconciles objects of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Resource>,
    /// The other resources whose changes the controller reacts to.
    #[serde(default)]
    pub watches: Vec<Resource>,
    /// The number of objects that are reconciled at the same time.
    pub concurrency: usize,
    /// The finalizer that the controller adds to its objects, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<String>,
}

/// A resource that is cached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cache {
    /// The resource.
    pub resource: Resource,
    /// The namespaces that the cache is limited to; empty means all.
    #[serde(default)]
    pub namespaces: Vec<String>,
}

/// A leader election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Election {
    /// The name of the Lease.
    pub lease: String,
    /// The namespace of the Lease, if it is not that of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The option that turns the election on; `None` if it is always on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
}

/// A port that the program listens on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Port {
    /// The number of the port.
    pub port: u16,
    /// The option that takes the address to listen on; `None` if the program always listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
}

/// A metric of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metric {
    /// The name of the metric in queries, without the suffixes of histograms: `workqueue_depth`, `workqueue_adds_total`.
    pub name: String,
    /// `counter`, `gauge`, `histogram`, `info` or `unknown`.
    pub kind: String,
    /// The help text of the metric.
    pub help: String,
}

/// A webhook of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Webhook {
    /// `mutating`, `validating` or `conversion`.
    pub kind: String,
    /// The resource that the webhook is asked about.
    pub resource: Resource,
    /// The path of the webhook.
    pub path: String,
    /// The entry of the webhook configuration, without `clientConfig`. Null for conversion.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub entry: Value,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_description_of_another_version_is_refused() {
        let error = Description::from_json(br#"{"apiVersion": "describe.watchkeeper.dev/v9"}"#).unwrap_err();
        assert!(error.to_string().contains("v9"), "{error}");
        let error = Description::from_json(br#"{"apiVersion": "describe.watchkeeper.dev/v1"}"#).unwrap_err();
        assert!(
            error.to_string().contains("build the operator and this program from the same version"),
            "{error}"
        );
        let error = Description::from_json(b"Starting the operator").unwrap_err();
        assert!(error.to_string().starts_with("this is not the description of an operator"), "{error}");
    }

    #[test]
    fn a_field_that_is_not_known_is_refused_instead_of_left_out() {
        let whole = json!({
            "apiVersion": API_VERSION, "name": "shop", "graceSeconds": 30,
            "rights": {"list": [{
                "resource": {"group": "", "version": "v1", "kind": "Secret", "plural": "secrets", "namespaced": true},
                "verbs": ["get"],
            }]},
            "webhooks": [{
                "kind": "mutating", "path": "/mutate",
                "resource": {"group": "", "version": "v1", "kind": "Pod", "plural": "pods", "namespaced": true},
            }],
            "run": {"component": "operator", "memory": "1Gi"},
        });
        assert_eq!(Description::from_json(whole.to_string().as_bytes()).unwrap().name, "shop");
        for place in ["", "/rights", "/rights/list/0", "/rights/list/0/resource", "/webhooks/0", "/run"] {
            let mut newer = whole.clone();
            newer.pointer_mut(place).unwrap()["sidecars"] = json!(true);
            let error = Description::from_json(newer.to_string().as_bytes()).unwrap_err().to_string();
            assert!(error.contains("`sidecars`"), "{place}: {error}");
        }
    }
}
