use watchkeeper::prelude::Condition;

/// A kind of gateways: those of the controller that it names.
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
    /// What the class is for.
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
    /// Its API group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// What became of a class.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct GatewayClassStatus {
    /// `Accepted`: there is a controller for the class.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// What the controller can do, in the words of the conformance suite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub supported_features: Vec<SupportedFeature>,
}

/// Something that the controller can do.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct SupportedFeature {
    /// Its name.
    pub name: String,
}
