use super::GatewayStatus;

/// Servers that requests go to: one of `url`, `endpoints` and `service`.
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
    /// One server: `http://host:port` or `https://host:port`. A path is put before that of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Several servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub endpoints: Vec<BackendEndpoint>,
    /// The endpoints of a Service, from its EndpointSlices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<BackendService>,
    /// What the servers speak. Default: HTTP/1.1. gRPC needs `HTTP2`.
    #[serde(default)]
    pub protocol: BackendProtocol,
    /// The `Host` that servers get. Default: that of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// How to speak TLS to servers. A URL with `https` needs none of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<BackendTls>,
    /// Which server gets the next request.
    #[serde(default)]
    pub balance: Balance,
    /// Which servers are left out.
    #[serde(default)]
    pub health: Health,
    /// How much is sent to the servers at a time; 503 for more.
    #[serde(default)]
    pub limits: BackendLimits,
    /// How long connecting may take, TLS included. Default: `5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<String>,
    /// How long a connection may be idle before it is closed. Default: `60s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<String>,
}

/// One server.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct BackendEndpoint {
    /// `host:port`.
    pub address: String,
    /// Its share of the requests, compared to the others. Default: 1.
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
    /// Its name.
    pub name: String,
    /// A port of the Service: its number.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

/// What servers speak.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum BackendProtocol {
    /// HTTP/1.1.
    #[default]
    HTTP1,
    /// HTTP/2: agreed on by TLS, or without TLS by prior knowledge.
    HTTP2,
}

/// How to speak TLS to servers.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct BackendTls {
    /// The name that certificates have to have. Default: the host of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// A file with the authorities that are believed, in PEM. Default: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// Authorities that are believed, in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

/// Which server gets the next request.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct Balance {
    /// How it is chosen.
    #[serde(default, rename = "type")]
    pub policy: BalancePolicy,
    /// For `Hash`: the header whose value decides. Default: the address of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// For `Hash`: the cookie whose value decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<String>,
}

/// How the next server is chosen.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum BalancePolicy {
    /// One after the other, by weight.
    #[default]
    RoundRobin,
    /// Of two that are taken at random, the one with fewer requests.
    LeastRequest,
    /// The same for the same key, and another one for few keys only when servers come or go.
    Hash,
}

/// Which servers are left out.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct Health {
    /// Requests that ask servers how they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveHealth>,
    /// What is learned from the requests of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passive: Option<PassiveHealth>,
}

/// Requests that ask servers how they are. If none is healthy, requests are answered with 503.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ActiveHealth {
    /// The path that is asked for.
    pub path: String,
    /// How often. Default: `5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// How long an answer may take. Default: `2s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// After how many failures in a row a server is left out. Default: 2.
    #[serde(default = "two")]
    #[schemars(range(min = 1, max = 100))]
    pub unhealthy_after: i32,
    /// After how many successes in a row it is used again. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub healthy_after: i32,
}

fn two() -> i32 {
    2
}

/// Servers that fail are left out for a while (outlier ejection). Failures are broken connections, codes from 500, and time-outs of requests that
/// were sent as a whole: of others, the client may have been slow.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct PassiveHealth {
    /// After how many failures in a row. Default: 5.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 1000))]
    pub failures: i32,
    /// For how long, the first time; each time in a row adds as much, up to ten times. Default: `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eject_for: Option<String>,
    /// How many of a hundred servers may be left out at most. Default: 50, so that an only server never is: that takes 100.
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

/// How much is sent to the servers at a time.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct BackendLimits {
    /// Requests, over all servers. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests: Option<i32>,
    /// Connections to each server. Requests that would need one more are answered with 503; health checks do not count. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub connections: Option<i32>,
}
