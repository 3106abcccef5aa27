use watchkeeper::prelude::Condition;

/// The status of an object of the gateway.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct GatewayStatus {
    /// The generation of the spec that the status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Accepted`: the object is valid. `ResolvedRefs`: all objects that it refers to exist. `Programmed`: new requests are
    /// served by this generation.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
