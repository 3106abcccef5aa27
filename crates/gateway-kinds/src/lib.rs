//! The custom resources that configure a gateway, in `gateway.watchkeeper.dev/v1alpha1`; those of Gateway API are in [`standard`].
//!
//! Durations are written as Go writes them: `250ms`, `5s`, `1m30s`. Names refer to objects of the same namespace.

mod ai_gateway_config;
mod api_definition;
mod api_subscription;
mod backend;
mod listener;
mod llm_budget;
mod llm_gateway_policy;
mod mcp_route;
mod model_context_mapping;
mod policy;
mod prompt_template;
mod route;
mod spec;
pub mod standard;
mod status;
mod tenant;

pub use ai_gateway_config::*;
pub use api_definition::*;
pub use api_subscription::*;
pub use backend::*;
pub use listener::*;
pub use llm_budget::*;
pub use llm_gateway_policy::*;
pub use mcp_route::*;
pub use model_context_mapping::*;
pub use policy::*;
pub use prompt_template::*;
pub use route::*;
pub use spec::Spec;
pub use status::*;
pub use tenant::*;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt as _;
use serde_json::Value;

/// The API group of the kinds.
pub const GROUP: &str = "gateway.watchkeeper.dev";
/// Group and version, as objects name them.
pub const API_VERSION: &str = "gateway.watchkeeper.dev/v1alpha1";

/// The definitions of all kinds, to be applied to a cluster.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![
        GatewayListener::crd(),
        GatewayRoute::crd(),
        GatewayBackend::crd(),
        GatewayPolicy::crd(),
        AIGatewayConfig::crd(),
        ModelContextMapping::crd(),
        LLMGatewayPolicy::crd(),
        McpRoute::crd(),
        PromptTemplate::crd(),
        ApiDefinition::crd(),
        ApiSubscription::crd(),
        Tenant::crd(),
        LLMBudget::crd(),
    ]
}

/// The definitions of all kinds, as JSON.
pub fn documents() -> Vec<Value> {
    // A definition is always JSON.
    definitions().into_iter().filter_map(|definition| serde_json::to_value(definition).ok()).collect()
}
