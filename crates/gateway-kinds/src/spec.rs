use serde_json::{Error, Value};

use crate::standard::{GatewayClassSpec, GatewaySpec, HTTPRouteSpec, ReferenceGrantSpec};
use crate::*;

/// The spec of a kind of the gateway, as it is read from an object.
///
/// The decoder of each spec is compiled here, for size. A crate that is compiled for speed would compile its own copy.
pub trait Spec: Sized {
    /// Reads a spec.
    ///
    /// # Errors
    ///
    /// The first mistake in it.
    fn read(value: Value) -> Result<Self, Error>;
}

macro_rules! specs {
    ($($spec:ty),* $(,)?) => {$(
        impl Spec for $spec {
            #[inline(never)]
            fn read(value: Value) -> Result<Self, Error> {
                serde_json::from_value(value)
            }
        }
    )*};
}

specs![
    AIGatewayConfigSpec,
    ApiDefinitionSpec,
    ApiSubscriptionSpec,
    GatewayBackendSpec,
    GatewayClassSpec,
    GatewayListenerSpec,
    GatewayPolicySpec,
    GatewayRouteSpec,
    GatewaySpec,
    HTTPRouteSpec,
    LLMBudgetSpec,
    LLMGatewayPolicySpec,
    McpRouteSpec,
    ModelContextMappingSpec,
    PromptTemplateSpec,
    ReferenceGrantSpec,
    TenantSpec,
];
