use watchkeeper::prelude::Condition;

/// What became of an object of the gateway.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct GatewayStatus {
    /// The generation of the spec that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Accepted`: the object is valid. `ResolvedRefs`: everything that it refers to is there. `Programmed`: requests that come in
    /// now are served by this generation.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
