use std::collections::BTreeMap;

use super::{AiProviderKey, GatewayStatus};

/// The tools of several servers of the Model Context Protocol (MCP) behind one endpoint, for agents.
///
/// It serves the stateless revision 2026-07-28 over HTTP: `server/discover`, `tools/list` and `tools/call`. The name of a tool begins with the name of its server:
/// `weather__forecast`. Clients need a key of an LLMGatewayPolicy, whose field `tools` lists the tools that the key may see and call.
#[watchkeeper::kind(
    group = "gateway.watchkeeper.dev",
    version = "v1alpha1",
    kind = "McpRoute",
    plural = "mcproutes",
    shortname = "mcpr",
    category = "gateway",
    namespaced,
    status = "GatewayStatus",
    printcolumn("Accepted", ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn("Programmed", ".status.conditions[?(@.type=='Programmed')].status"),
    printcolumn("Age", ".metadata.creationTimestamp", "date")
)]
#[derive(PartialEq)]
pub struct McpRouteSpec {
    /// The listeners that serve the endpoint, as `name` or `namespace/name`. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<String>,
    /// The hosts of requests: names, or `*.example.com` for all names below it. Default: every host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The path of the endpoint. Default: `/mcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The servers.
    #[schemars(length(min = 1, max = 64))]
    pub servers: Vec<McpServer>,
    /// The origins of web pages that may send requests, such as `https://app.example.com`; others are answered with 403. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// The maximum size of a request body in bytes; larger ones are answered with 413. Default: 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 67108864))]
    pub max_body_bytes: Option<i64>,
}

/// A server with tools.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct McpServer {
    /// The name of the server, with which the names of its tools begin: small letters, digits and dashes.
    #[schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub name: String,
    /// The URL of the endpoint.
    pub url: String,
    /// The key that is sent to the server, as `Authorization: Bearer KEY`. Clients never see it, and the server never sees theirs. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<AiProviderKey>,
    /// Additional headers of requests to the server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A PEM file with the certificate authorities to trust. Default: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// The tools of the server that are offered, by the server's own names; `get_*` are all tools whose names begin with `get_`. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub tools: Vec<String>,
    /// The timeout until an answer begins. Default: `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
}
