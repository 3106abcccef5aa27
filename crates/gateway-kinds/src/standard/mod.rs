//! The kinds of Gateway API, in `gateway.networking.k8s.io/v1`, with the fields that the gateway understands.
//!
//! The definitions of the project have more fields. Objects with those are accepted; if a field that is not supported would change how requests
//! are handled, the status says so.

mod class;
mod grant;
mod http_route;
mod infrastructure;

pub use class::*;
pub use grant::*;
pub use http_route::*;
pub use infrastructure::*;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt as _;

/// The API group of the kinds.
pub const GROUP: &str = "gateway.networking.k8s.io";
/// Group and version, as objects name them.
pub const API_VERSION: &str = "gateway.networking.k8s.io/v1";
/// The name of this gateway's controller in a `GatewayClass`.
pub const CONTROLLER: &str = "watchkeeper.dev/gateway";

/// The annotation by which these definitions are not taken for those of the project.
const APPROVAL: (&str, &str) =
    ("api-approved.kubernetes.io", "unapproved, a subset of the fields, from watchkeeper");

/// Definitions of the kinds with the fields that the gateway understands. For a cluster that lacks those of the project: these are never put in
/// their place.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let mut all = vec![GatewayClass::crd(), Gateway::crd(), HTTPRoute::crd(), ReferenceGrant::crd()];
    for definition in &mut all {
        let annotations = definition.metadata.annotations.get_or_insert_default();
        annotations.insert(APPROVAL.0.to_owned(), APPROVAL.1.to_owned());
    }
    all
}

/// A kind of routes: group and kind.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct RouteGroupKind {
    /// The API group. Default: that of Gateway API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The kind.
    pub kind: String,
}
