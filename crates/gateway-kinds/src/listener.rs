use super::GatewayStatus;

/// Where the gateway listens.
///
/// Several listeners may share an address and a port if they have the same protocol and different host names: the listener with the
/// most specific host name serves a request.
#[watchkeeper::kind(
    group = "gateway.watchkeeper.dev",
    version = "v1alpha1",
    kind = "GatewayListener",
    plural = "gatewaylisteners",
    shortname = "gwl",
    category = "gateway",
    namespaced,
    status = "GatewayStatus",
    printcolumn("Port", ".spec.port", "integer"),
    printcolumn("Protocol", ".spec.protocol"),
    printcolumn("Programmed", ".status.conditions[?(@.type=='Programmed')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct GatewayListenerSpec {
    /// The IP address to listen on. `0.0.0.0` and `::` are all addresses of the machine. Default: `127.0.0.1`.
    #[serde(default = "loopback")]
    pub address: String,
    /// The port to listen on.
    #[schemars(range(min = 0, max = 65535))]
    pub port: i32,
    /// `HTTP` is HTTP/1.1, and HTTP/2 for clients that begin with it. `HTTPS` is both over TLS.
    #[serde(default)]
    pub protocol: ListenerProtocol,
    /// The host that is served here: a name, or `*.example.com` for all names below it. Default: every host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The certificates of an `HTTPS` listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ListenerTls>,
    /// The namespaces whose routes may use this listener. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Proxies whose `X-Forwarded-*` and `Forwarded` headers are believed, as addresses or networks: `10.0.0.0/8`. What others
    /// send is removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted_proxies: Vec<String>,
    /// Whether connections begin with a header of the PROXY protocol, version 1 or 2, that says where the client is. Connections without one are
    /// closed; so are those that are not from `trustedProxies`, if there are any. Default: no.
    #[serde(default, skip_serializing_if = "is_false")]
    pub proxy_protocol: bool,
    /// Which headers tell backends where a request came from. Default: `XForwarded`.
    #[serde(default)]
    pub forwarded: ForwardedHeaders,
    /// How much clients may ask for.
    #[serde(default)]
    pub limits: ListenerLimits,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn loopback() -> String {
    "127.0.0.1".to_owned()
}

/// What is spoken on a listener.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum ListenerProtocol {
    /// HTTP/1.1 and HTTP/2 without TLS.
    #[default]
    HTTP,
    /// HTTP/1.1 and HTTP/2 over TLS.
    HTTPS,
}

/// Which headers tell backends where a request came from.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum ForwardedHeaders {
    /// `X-Forwarded-For`, `X-Forwarded-Proto`, `X-Forwarded-Host`.
    #[default]
    XForwarded,
    /// `Forwarded` of RFC 7239.
    Forwarded,
    /// All of them.
    Both,
    /// None.
    None,
}

/// The certificates of a listener.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ListenerTls {
    /// The certificates. A client is shown the first that is for the host it asks for, or else the first of all.
    pub certificates: Vec<ListenerCertificate>,
}

/// A certificate with its key: `secretName`, or `certificateFile` and `keyFile`.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ListenerCertificate {
    /// The hosts that it is shown to; `*.example.com` are all names below it. Default: every host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// A Secret of type `kubernetes.io/tls` in the namespace of the listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// A file with the certificate in PEM, and those between it and its authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_file: Option<String>,
    /// A file with the key in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
}

/// How much clients may ask for. A change of these takes effect for connections that are opened after it.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct ListenerLimits {
    /// Connections at a time. Default: as many as the process can have, at most 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000000))]
    pub connections: Option<i32>,
    /// Requests at a time on one HTTP/2 connection. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub streams: Option<i32>,
    /// Bytes that a request may carry. Default: no limit. Routes may allow less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub body_bytes: Option<i64>,
    /// How long a connection may be idle. Default: `75s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<String>,
    /// How long the headers of a request may take. Default: `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<String>,
}
