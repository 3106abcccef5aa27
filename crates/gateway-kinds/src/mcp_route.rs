use std::collections::BTreeMap;

use super::{AiProviderKey, GatewayStatus};

/// The tools of several servers of the Model Context Protocol (MCP) behind one endpoint, for agents.
///
/// It speaks the stateless revision 2026-07-28 over HTTP: `server/discover`, `tools/list` and `tools/call`. A tool has the name of its server before its own:
/// `weather__forecast`. Clients need a key of an LLMGatewayPolicy, which says in `tools` which of them it may see and call.
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
    /// The listeners that serve it, as `name` or `namespace/name`. Default: all.
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
    /// The origins of pages in browsers that may ask, such as `https://app.example.com`; 403 for others. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// Bytes that a request may carry; 413 for more. Default: 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 67108864))]
    pub max_body_bytes: Option<i64>,
}

/// A server with tools.
#[watchkeeper::schema]
#[derive(PartialEq)]
pub struct McpServer {
    /// What the names of its tools begin with: small letters, digits and dashes.
    #[schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub name: String,
    /// Its endpoint.
    pub url: String,
    /// The key that it gets, as `Authorization: Bearer KEY`. Clients never see it, and it never sees theirs. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<AiProviderKey>,
    /// Headers that it gets besides.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A file with the authorities that are believed, in PEM. Default: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// Those of its tools that are there for anybody, by its own names; `get_*` are all whose names begin so. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub tools: Vec<String>,
    /// How long it may take to begin an answer. Default: `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
}
