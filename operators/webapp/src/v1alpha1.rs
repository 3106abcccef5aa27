//! The version of before: the port and the environment had other names.

use std::collections::BTreeMap;

use watchkeeper::prelude::*;

/// A web application: an image that serves HTTP on a port, so many times.
#[watchkeeper::kind(
    group = "apps.watchkeeper.dev",
    version = "v1alpha1",
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
    /// The port that it listens on.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Its environment. The order does not matter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

fn one() -> i32 {
    1
}

pub use crate::v1beta1::WebAppStatus;
