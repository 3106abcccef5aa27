use watchkeeper::prelude::Condition;

/// A class of gateways: those of one controller.
#[watchkeeper::kind(
    group = "gateway.networking.k8s.io",
    version = "v1",
    kind = "GatewayClass",
    plural = "gatewayclasses",
    shortname = "gc",
    category = "gateway-api",
    status = "GatewayClassStatus",
    printcolumn("Controller", ".spec.controllerName"),
    printcolumn("Accepted", ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct GatewayClassSpec {
    /// The controller: `watchkeeper.dev/gateway` is this one.
    pub controller_name: String,
    /// The description of the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// An object with parameters. There are none for this controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters_ref: Option<ParametersRef>,
}

/// An object with parameters.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ParametersRef {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// The status of a class.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct GatewayClassStatus {
    /// `Accepted`: there is a controller for the class.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The features that the controller supports, by their names in the conformance suite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub supported_features: Vec<SupportedFeature>,
}

/// A feature that the controller supports.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct SupportedFeature {
    /// The name.
    pub name: String,
}
