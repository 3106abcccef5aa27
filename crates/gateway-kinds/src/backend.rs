use super::GatewayStatus;

/// A group of servers that requests are sent to: one of `url`, `endpoints` and `service`.
#[watchkeeper::kind(
    group = "gateway.watchkeeper.dev",
    version = "v1alpha1",
    kind = "GatewayBackend",
    plural = "gatewaybackends",
    shortname = "gwb",
    category = "gateway",
    namespaced,
    status = "GatewayStatus",
    printcolumn("URL", ".spec.url"),
    printcolumn("Accepted", ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(Default, PartialEq)]
pub struct GatewayBackendSpec {
    /// One server: `http://host:port` or `https://host:port`. If the URL has a path, it is put before the path of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Several servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub endpoints: Vec<BackendEndpoint>,
    /// The endpoints of a Service, from its EndpointSlices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<BackendService>,
    /// The protocol of the servers. Default: HTTP/1.1. gRPC needs `HTTP2`.
    #[serde(default)]
    pub protocol: BackendProtocol,
    /// The `Host` header of requests to the servers. Default: that of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// TLS to the servers. A URL with `https` does not need this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<BackendTls>,
    /// The load balancing between the servers.
    #[serde(default)]
    pub balance: Balance,
    /// The health checks of the servers.
    #[serde(default)]
    pub health: Health,
    /// The limits of concurrency; requests above them are answered with 503.
    #[serde(default)]
    pub limits: BackendLimits,
    /// The timeout for opening a connection, including TLS. Default: `5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<String>,
    /// The time after which an idle connection is closed. Default: `60s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<String>,
}

/// One server.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct BackendEndpoint {
    /// `host:port`.
    pub address: String,
    /// The weight of the server, relative to the others. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000))]
    pub weight: i32,
}

fn one() -> i32 {
    1
}

/// A Service of the same namespace.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct BackendService {
    /// The name of the Service.
    pub name: String,
    /// The number of the port of the Service.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

/// The protocol of the servers.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum BackendProtocol {
    /// HTTP/1.1.
    #[default]
    HTTP1,
    /// HTTP/2: negotiated with TLS, or with prior knowledge without it.
    HTTP2,
}

/// TLS to servers.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct BackendTls {
    /// The name that the certificate of a server must have. Default: the host of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// A PEM file with the certificate authorities to trust. Default: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// The certificate authorities to trust, in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

/// The load balancing between the servers.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct Balance {
    /// The algorithm.
    #[serde(default, rename = "type")]
    pub policy: BalancePolicy,
    /// For `Hash`: the header whose value is hashed. Default: the address of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// For `Hash`: the cookie whose value is hashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<String>,
}

/// The algorithm of load balancing.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum BalancePolicy {
    /// Servers take turns, by weight.
    #[default]
    RoundRobin,
    /// Of two random servers, the one with fewer requests under way.
    LeastRequest,
    /// Consistent hashing: requests with the same key go to the same server. When servers come or go, few keys move.
    Hash,
}

/// The health checks of the servers.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct Health {
    /// Health checks by requests of the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveHealth>,
    /// Health checks by the requests of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passive: Option<PassiveHealth>,
}

/// Health checks by requests of the gateway. If no server is healthy, requests of clients are answered with 503.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ActiveHealth {
    /// The path of health checks.
    pub path: String,
    /// The interval of health checks. Default: `5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// The timeout of a health check. Default: `2s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// The number of consecutive failures after which a server is unhealthy. Default: 2.
    #[serde(default = "two")]
    #[schemars(range(min = 1, max = 100))]
    pub unhealthy_after: i32,
    /// The number of consecutive successes after which a server is healthy again. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub healthy_after: i32,
}

fn two() -> i32 {
    2
}

/// Outlier ejection: servers that fail get no requests for a while. Failures are broken connections, the codes 500 to 599, and timeouts of requests that
/// were sent completely: otherwise the client may have been slow.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct PassiveHealth {
    /// The number of consecutive failures after which a server is ejected. Default: 5.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 1000))]
    pub failures: i32,
    /// The time of the first ejection; each one in a row adds as much, up to ten times. Default: `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eject_for: Option<String>,
    /// The maximum percentage of servers that may be ejected at a time. Default: 50. A backend's only server is ejected with 100 only.
    #[serde(default = "fifty")]
    #[schemars(range(min = 0, max = 100))]
    pub max_ejected_percent: i32,
}

fn five() -> i32 {
    5
}

fn fifty() -> i32 {
    50
}

/// The limits of concurrency.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct BackendLimits {
    /// The maximum number of concurrent requests, over all servers. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests: Option<i32>,
    /// The maximum number of connections to each server. Requests that would need one more are answered with 503; health checks do not count. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub connections: Option<i32>,
}
