//! The custom resource of the benchmarks as a type, as its authors would write it.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// What is wanted.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "bench.example.com",
    version = "v1",
    kind = "Widget",
    plural = "widgets",
    namespaced,
    status = "WidgetStatus",
    schema = "disabled"
)]
pub(crate) struct WidgetSpec {
    pub(crate) image: String,
    pub(crate) replicas: i64,
    pub(crate) port: i64,
    #[serde(default)]
    pub(crate) env: Vec<Variable>,
    pub(crate) limits: Limits,
}

/// One variable of the environment.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// How much it may use.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) cpu: String,
    pub(crate) memory: String,
}

/// How it goes.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WidgetStatus {
    pub(crate) observed_generation: i64,
    pub(crate) ready: i64,
    pub(crate) conditions: Vec<Condition>,
}

/// One thing that is so or not.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) last_transition_time: String,
}
