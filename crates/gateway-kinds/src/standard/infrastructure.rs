use std::collections::BTreeMap;

use watchkeeper::prelude::Condition;

use super::RouteGroupKind;

/// A gateway: its listeners, and the routes that may use them.
#[watchkeeper::kind(
    group = "gateway.networking.k8s.io",
    version = "v1",
    kind = "Gateway",
    plural = "gateways",
    shortname = "gtw",
    category = "gateway-api",
    namespaced,
    status = "StandardGatewayStatus",
    printcolumn("Class", ".spec.gatewayClassName"),
    printcolumn("Address", ".status.addresses[*].value"),
    printcolumn("Programmed", ".status.conditions[?(@.type=='Programmed')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct GatewaySpec {
    /// The class.
    pub gateway_class_name: String,
    /// The listeners.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub listeners: Vec<StandardListener>,
    /// The addresses to listen on. Default: an address of the controller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub addresses: Vec<GatewayAddress>,
}

/// An address.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct GatewayAddress {
    /// `IPAddress`; others are not supported. Default: `IPAddress`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The address. Default: an address of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A listener of a gateway.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct StandardListener {
    /// The name, by which routes refer to the listener.
    pub name: String,
    /// The host of requests: a name, or `*.example.com` for all names below it. Default: every host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// `HTTP` or `HTTPS`; others are not supported.
    pub protocol: String,
    /// The certificates of an `HTTPS` listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<StandardTls>,
    /// The routes that may use the listener. Default: those of the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_routes: Option<AllowedRoutes>,
}

/// The certificates of a listener.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct StandardTls {
    /// `Terminate`; `Passthrough` is not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Secrets of type `kubernetes.io/tls`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub certificate_refs: Vec<SecretRef>,
    /// Options of the controller. This one has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

/// A Secret.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct SecretRef {
    /// The API group. Default: the core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The kind. Default: `Secret`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The name.
    pub name: String,
    /// The namespace. Default: that of the gateway; others need a ReferenceGrant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// The routes that may use a listener.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct AllowedRoutes {
    /// The namespaces of the routes. Default: that of the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<RouteNamespaces>,
    /// The kinds of the routes. Default: those that fit the protocol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub kinds: Vec<RouteGroupKind>,
}

/// The namespaces of routes.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct RouteNamespaces {
    /// `All`, `Same`, `Selector` or `None`. Default: `Same`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// For `Selector`: the labels of the namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<NamespaceSelector>,
}

/// A label selector for namespaces.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct NamespaceSelector {
    /// Labels with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Conditions for labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelExpression>,
}

/// A condition for a label.
#[watchkeeper::schema]
#[derive(PartialEq, Eq)]
pub struct LabelExpression {
    /// The name of the label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// For `In` and `NotIn`: the values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// The status of a gateway.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct StandardGatewayStatus {
    /// The addresses on which the gateway listens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<GatewayAddress>,
    /// `Accepted`: the gateway is valid. `Programmed`: the gateway listens.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The status of each listener.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub listeners: Vec<StandardListenerStatus>,
}

/// The status of a listener.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct StandardListenerStatus {
    /// The name.
    pub name: String,
    /// The kinds of routes that the listener serves.
    #[serde(default)]
    pub supported_kinds: Vec<RouteGroupKind>,
    /// The number of routes that use the listener.
    pub attached_routes: i32,
    /// `Accepted`, `Programmed`, `ResolvedRefs`, `Conflicted`.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
