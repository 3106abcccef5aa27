use super::GatewayStatus;

/// A port that the gateway listens on.
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
    /// The host of requests: a name, or `*.example.com` for all names below it. Default: every host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The certificates of an `HTTPS` listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ListenerTls>,
    /// The namespaces whose routes may use this listener. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// The proxies whose `X-Forwarded-*` and `Forwarded` headers are trusted, as addresses or networks: `10.0.0.0/8`. Such headers of other
    /// clients are removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted_proxies: Vec<String>,
    /// Whether connections begin with a header of the PROXY protocol, version 1 or 2, with the address of the client. Connections without one are
    /// closed; so are those that are not from `trustedProxies`, if there are any. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub proxy_protocol: bool,
    /// The headers in which backends get the address, scheme and host of the client's request. Default: `XForwarded`.
    #[serde(default)]
    pub forwarded: ForwardedHeaders,
    /// The limits of clients.
    #[serde(default)]
    pub limits: ListenerLimits,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn loopback() -> String {
    "127.0.0.1".to_owned()
}

/// The protocol of a listener.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum ListenerProtocol {
    /// HTTP/1.1 and HTTP/2 without TLS.
    #[default]
    HTTP,
    /// HTTP/1.1 and HTTP/2 over TLS.
    HTTPS,
}

/// The headers in which backends get the address, scheme and host of the client's request.
#[watchkeeper::schema]
#[derive(Copy, Default, PartialEq, Eq)]
pub enum ForwardedHeaders {
    /// `X-Forwarded-For`, `X-Forwarded-Proto`, `X-Forwarded-Host`.
    #[default]
    XForwarded,
    /// `Forwarded` of RFC 7239.
    Forwarded,
    /// `X-Forwarded-*` and `Forwarded`.
    Both,
    /// No headers.
    None,
}

/// The certificates of a listener.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ListenerTls {
    /// The certificates. A client gets the first one for the host that it asks for, or else the first of all.
    pub certificates: Vec<ListenerCertificate>,
}

/// A certificate with its key: `secretName`, or `certificateFile` and `keyFile`.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct ListenerCertificate {
    /// The hosts of the certificate; `*.example.com` are all names below it. Default: every host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The name of a Secret of type `kubernetes.io/tls` in the namespace of the listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// A PEM file with the certificate and the intermediate ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_file: Option<String>,
    /// A PEM file with the private key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
}

/// The limits of clients. A change takes effect for connections that are opened after it.
#[watchkeeper::schema]
#[derive(Default, PartialEq)]
pub struct ListenerLimits {
    /// The maximum number of connections. Default: as many as the process can have, at most 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000000))]
    pub connections: Option<i32>,
    /// The maximum number of concurrent requests on one HTTP/2 connection. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub streams: Option<i32>,
    /// The maximum size of a request body in bytes. Default: no limit. Routes may allow less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub body_bytes: Option<i64>,
    /// The time after which an idle connection is closed. Default: `75s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<String>,
    /// The timeout for the headers of a request. Default: `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<String>,
}
