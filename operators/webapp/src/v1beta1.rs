//! The version that the operator works with.

use std::collections::BTreeMap;

use watchkeeper::prelude::*;

/// A web application: an image that serves HTTP on a port, so many times.
#[watchkeeper::kind(
    group = "apps.watchkeeper.dev",
    version = "v1beta1",
    kind = "WebApp",
    plural = "webapps",
    shortname = "wa",
    category = "all",
    namespaced,
    status = "WebAppStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn("Image", ".spec.image"),
    printcolumn("Replicas", ".spec.replicas", "integer"),
    printcolumn("Ready", ".status.readyReplicas", "integer"),
    printcolumn("URL", ".status.serviceURL"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq, Eq)]
pub struct WebAppSpec {
    /// The image to run, such as `nginx:1.29` or `registry.example.com/team/shop@sha256:...`.
    #[schemars(regex(
        pattern = r"^[a-z0-9]+([._:/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[a-f0-9]{64})?$"
    ))]
    #[schemars(length(max = 512))]
    pub image: String,
    /// How many times it runs.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10))]
    pub replicas: i32,
    /// How it is reached.
    pub http: Http,
    /// Its environment. The order does not matter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// How an application is reached.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct Http {
    /// The port that it listens on.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

fn one() -> i32 {
    1
}

/// How it goes.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct WebAppStatus {
    /// The generation of the spec that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many there are, of any version.
    #[serde(default)]
    pub replicas: i32,
    /// How many of them can serve.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Which pods they are, for autoscalers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Where it is served within the cluster.
    #[serde(default, rename = "serviceURL", skip_serializing_if = "Option::is_none")]
    pub service_url: Option<String>,
    /// `Available`: it serves. `Progressing`: it is on its way to what is declared. `Degraded`: it does not get there by
    /// itself, and why.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
