//! The Model Context Protocol as a gateway has to know it: its stateless revision over HTTP, and of that what is about tools.
//!
//! Requests say the same twice, in their headers and in their bodies; one that says two things is refused, so that whoever looks at headers only, on the way
//! here or behind, sees what is done. What a gateway does not change is passed on byte by byte.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use watchkeeper_go::base64;

/// The revision that is spoken.
pub const VERSION: &str = "2026-07-28";
/// What is between the name of a server and that of its tool.
pub const SEPARATOR: &str = "__";
/// The field of `_meta` that says which revision a request is of.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The field of `_meta` that says what a client can do.
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// How values of headers are written that are no plain text.
const CODED: (&str, &str) = ("=?base64?", "?=");

/// An error, as clients get it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct McpError {
    /// The status code.
    pub status: u16,
    /// The code in the body.
    pub code: i64,
    /// What is wrong, and what to do.
    pub message: String,
    /// More for programs.
    pub data: Option<Value>,
}

impl McpError {
    /// An error with a status code, and a code of JSON-RPC or the protocol.
    pub fn new(status: u16, code: i64, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), data: None }
    }

    /// The request is none.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, -32_600, message)
    }

    /// Its parameters cannot be.
    pub fn parameters(message: impl Into<String>) -> Self {
        Self::new(400, -32_602, message)
    }

    /// Headers and body do not say the same.
    fn mismatch(message: impl Into<String>) -> Self {
        Self::new(400, -32_020, message)
    }

    /// The body of the response to a request with this identifier, if it has one.
    pub fn body(&self, id: Option<&RawValue>) -> String {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        match id {
            Some(id) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{error}}}", id.get()),
            None => format!("{{\"jsonrpc\":\"2.0\",\"error\":{error}}}"),
        }
    }
}

/// What the headers of a request say.
#[derive(Clone, Copy, Debug, Default)]
pub struct McpHeaders<'a> {
    /// `mcp-protocol-version`.
    pub version: Option<&'a str>,
    /// `mcp-method`.
    pub method: Option<&'a str>,
    /// `mcp-name`.
    pub name: Option<&'a str>,
}

/// A request.
#[derive(Debug)]
pub struct McpRequest {
    /// Its identifier, as the client wrote it.
    pub id: Box<RawValue>,
    /// What is asked.
    pub asked: McpAsked,
    params: BTreeMap<String, Box<RawValue>>,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpAsked {
    /// `server/discover`: what the server can do.
    Discover,
    /// `tools/list`.
    ListTools,
    /// `tools/call`: the tool of this name.
    CallTool(String),
    /// Something else.
    Other(String),
}

#[derive(Deserialize)]
struct Envelope {
    jsonrpc: String,
    #[serde(default)]
    id: Option<Box<RawValue>>,
    method: String,
    #[serde(default)]
    params: BTreeMap<String, Box<RawValue>>,
}

impl McpRequest {
    /// Reads a request; `None` is a notification, which is not answered.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and its identifier if that can be read.
    pub fn read(
        headers: &McpHeaders<'_>,
        body: &[u8],
    ) -> Result<Option<Self>, (Option<Box<RawValue>>, McpError)> {
        let envelope: Envelope = serde_json::from_slice(body).map_err(|error| {
            let what =
                "the body has to be one JSON-RPC request: an object with jsonrpc, id, method and params";
            let error = match error.is_syntax() || error.is_eof() {
                true => McpError::new(400, -32_700, "the body is not valid JSON in UTF-8"),
                false => McpError::invalid(what),
            };
            (None, error)
        })?;
        let Envelope { jsonrpc, id, method, params } = envelope;
        if jsonrpc != "2.0" {
            return Err((id, McpError::invalid("jsonrpc has to be \"2.0\"")));
        }
        let Some(id) = id.filter(|id| id.get() != "null") else { return Ok(None) };
        if !id.get().starts_with('"') && id.get().parse::<i64>().is_err() {
            return Err((None, McpError::invalid("id has to be a text or a whole number")));
        }
        match asked(headers, &method, &params) {
            Ok(asked) => Ok(Some(Self { id, asked, params })),
            Err(error) => Err((Some(id), error)),
        }
    }

    /// A parameter that is a text.
    pub fn text(&self, name: &str) -> Option<String> {
        text(&self.params, name)
    }

    /// A parameter as it is.
    pub fn parameter(&self, name: &str) -> Option<&RawValue> {
        self.params.get(name).map(|value| &**value)
    }

    /// The same request for another server, with other texts for some of its parameters.
    pub fn with(&self, id: &RawValue, method: &str, texts: &[(&str, Option<&str>)]) -> String {
        let mut params: BTreeMap<&str, String> =
            self.params.iter().map(|(name, value)| (&**name, value.get().to_owned())).collect();
        for (name, text) in texts {
            match text {
                Some(text) => drop(params.insert(name, Value::from(*text).to_string())),
                None => drop(params.remove(name)),
            }
        }
        let params: Vec<String> =
            params.iter().map(|(name, value)| format!("{}:{value}", Value::from(*name))).collect();
        let method = Value::from(method);
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":{method},\"params\":{{{}}}}}",
            id.get(),
            params.join(",")
        )
    }
}

fn text(params: &BTreeMap<String, Box<RawValue>>, name: &str) -> Option<String> {
    serde_json::from_str(params.get(name)?.get()).ok()
}

/// What is asked, if headers and body say the same.
fn asked(
    headers: &McpHeaders<'_>,
    method: &str,
    params: &BTreeMap<String, Box<RawValue>>,
) -> Result<McpAsked, McpError> {
    let meta: BTreeMap<String, Value> = match params.get("_meta") {
        Some(meta) => serde_json::from_str(meta.get())
            .map_err(|_| McpError::parameters("params._meta has to be an object"))?,
        None => BTreeMap::new(),
    };
    let said = meta.get(META_VERSION).and_then(Value::as_str);
    let Some(version) = headers.version else {
        return Err(McpError::mismatch("the header MCP-Protocol-Version is missing"));
    };
    if version != VERSION {
        let mut error =
            McpError::new(400, -32_022, format!("revision {version:?} is not spoken here, but {VERSION} is"));
        error.data = Some(json!({"supported": [VERSION], "requested": version}));
        return Err(error);
    }
    if said != Some(version) {
        let message =
            format!("the header MCP-Protocol-Version and {META_VERSION} in params._meta are not the same");
        return Err(McpError::mismatch(message));
    }
    if !meta.get(META_CAPABILITIES).is_some_and(Value::is_object) {
        return Err(McpError::parameters(format!("params._meta has no object {META_CAPABILITIES}")));
    }
    if headers.method != Some(method) {
        return Err(McpError::mismatch("the header Mcp-Method is not the method of the body"));
    }
    let named = ["tools/call", "prompts/get", "resources/read"].contains(&method);
    let name = if method == "resources/read" { text(params, "uri") } else { text(params, "name") };
    if named {
        let Some(name) = &name else { return Err(McpError::parameters("params.name has to be a text")) };
        if headers.name.and_then(decoded).as_ref() != Some(name) {
            return Err(McpError::mismatch("the header Mcp-Name is not the name in the body"));
        }
    }
    Ok(match (method, name) {
        ("server/discover", _) => McpAsked::Discover,
        ("tools/list", _) => McpAsked::ListTools,
        ("tools/call", Some(name)) => McpAsked::CallTool(name),
        (other, _) => McpAsked::Other(other.chars().take(100).collect()),
    })
}

/// The value of a header, which may be in base64; `None` if it is not valid.
fn decoded(value: &str) -> Option<String> {
    let coded = value.strip_prefix(CODED.0).and_then(|rest| rest.strip_suffix(CODED.1));
    match coded {
        None => Some(value.to_owned()),
        Some(coded) => String::from_utf8(base64::decode(coded).ok()?).ok(),
    }
}

/// The name of a tool as clients of the gateway see it.
pub fn joined(server: &str, tool: &str) -> String {
    format!("{server}{SEPARATOR}{tool}")
}

/// The server and the tool of a name that clients see.
pub fn parted(name: &str) -> Option<(&str, &str)> {
    name.split_once(SEPARATOR).filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

/// A list of tools that a server answered.
#[derive(Debug)]
pub struct ToolPage {
    /// Their names, and each of them as it is.
    pub tools: Vec<(String, BTreeMap<String, Box<RawValue>>)>,
    /// Where the next page begins.
    pub next: Option<String>,
    /// For how long it may be kept, in milliseconds.
    pub ttl: u64,
}

impl ToolPage {
    /// Reads the answer to `tools/list`.
    ///
    /// # Errors
    ///
    /// What it is instead.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            result: Option<List>,
            #[serde(default)]
            error: Option<Failed>,
        }
        #[derive(Deserialize)]
        struct Failed {
            code: i64,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct List {
            tools: Vec<BTreeMap<String, Box<RawValue>>>,
            #[serde(default)]
            next_cursor: Option<String>,
            #[serde(default)]
            ttl_ms: u64,
        }
        let answer: Answer =
            serde_json::from_slice(body).map_err(|_| "its answer is no list of tools".to_owned())?;
        if let Some(Failed { code }) = answer.error {
            return Err(format!("it answered with the error {code}"));
        }
        let list = answer.result.ok_or("its answer has no result")?;
        let tools = list.tools.into_iter().filter_map(|tool| Some((text(&tool, "name")?, tool))).collect();
        Ok(Self { tools, next: list.next_cursor.filter(|next| !next.is_empty()), ttl: list.ttl_ms })
    }
}

/// A tool under another name, as JSON. The rest of it is as it was.
pub fn renamed(tool: &BTreeMap<String, Box<RawValue>>, name: &str) -> String {
    let fields = tool.iter().map(|(field, value)| match field.as_str() {
        "name" => format!("\"name\":{}", Value::from(name)),
        field => format!("{}:{}", Value::from(field), value.get()),
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// The answer to a request, around the fields of its result, which are JSON.
pub fn result(id: &RawValue, server: &str, fields: &str) -> String {
    let meta =
        json!({"io.modelcontextprotocol/serverInfo": {"name": server, "version": env!("CARGO_PKG_VERSION")}});
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"resultType\":\"complete\",{fields},\"_meta\":{meta}}}}}",
        id.get()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADERS: McpHeaders<'static> =
        McpHeaders { version: Some(VERSION), method: Some("tools/call"), name: Some("a__b") };

    fn call(name: &str) -> String {
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": name, "arguments": {"x": 1}, "_meta": {META_VERSION: VERSION, META_CAPABILITIES: {}},
        }})
        .to_string()
    }

    fn code(headers: &McpHeaders<'_>, body: &str) -> i64 {
        McpRequest::read(headers, body.as_bytes()).unwrap_err().1.code
    }

    #[test]
    fn headers_and_body_have_to_say_the_same() {
        let read = McpRequest::read(&HEADERS, call("a__b").as_bytes()).unwrap().unwrap();
        assert_eq!((read.id.get(), &read.asked), ("7", &McpAsked::CallTool("a__b".into())));
        for headers in [
            McpHeaders { version: None, ..HEADERS },
            McpHeaders { method: None, ..HEADERS },
            McpHeaders { method: Some("tools/list"), ..HEADERS },
            McpHeaders { name: None, ..HEADERS },
            McpHeaders { name: Some("a__c"), ..HEADERS },
            McpHeaders { name: Some("=?base64?YV9fY?="), ..HEADERS },
        ] {
            assert_eq!(code(&headers, &call("a__b")), -32_020, "{headers:?}");
        }
        let coded = McpHeaders { name: Some("=?base64?YV9fYg==?="), ..HEADERS };
        assert!(McpRequest::read(&coded, call("a__b").as_bytes()).is_ok());
        assert_eq!(code(&HEADERS, &call("a__b").replace(VERSION, "2025-11-25")), -32_020);
        let old = McpHeaders { version: Some("2025-11-25"), ..HEADERS };
        let (_, error) = McpRequest::read(&old, call("a__b").as_bytes()).unwrap_err();
        assert_eq!((error.code, error.status), (-32_022, 400));
        assert_eq!(error.data.unwrap()["supported"], json!([VERSION]));
    }

    #[test]
    fn what_is_no_request_is_refused_or_not_answered() {
        for (body, expected) in [
            ("{", -32_700),
            ("[]", -32_600),
            ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}", -32_600),
            ("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"x\"}", -32_600),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", -32_600),
        ] {
            assert_eq!(code(&HEADERS, body), expected, "{body}");
        }
        let told = br#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#;
        assert!(McpRequest::read(&HEADERS, told).unwrap().is_none());
        let body = call("a__b").replace("\"arguments\"", "\"_meta\":7,\"arguments\"");
        let (id, error) = McpRequest::read(&HEADERS, body.as_bytes()).unwrap_err();
        assert_eq!((id.unwrap().get(), error.code), ("7", -32_602), "the last one counts");
    }

    #[test]
    fn what_is_not_changed_is_passed_on_as_it_is() {
        let body = call("a__b").replace("{\"x\":1}", "{\"z\": 1.50, \"a\":12345678901234567890123}");
        let read = McpRequest::read(&HEADERS, body.as_bytes()).unwrap().unwrap();
        let sent = read.with(&read.id, "tools/call", &[("name", Some("b"))]);
        assert!(sent.contains("{\"z\": 1.50, \"a\":12345678901234567890123}"), "{sent}");
        assert!(sent.contains("\"name\":\"b\"") && !sent.contains("a__b"), "{sent}");
        assert!(!read.with(&read.id, "tools/list", &[("name", None)]).contains("name"));
        let page = br#"{"id":1,"result":{"tools":[{"name":"t","inputSchema":{"z":1.0,"a":{}}},{"nameless":1}],"nextCursor":"c","ttlMs":5}}"#;
        let page = ToolPage::read(page).unwrap();
        assert_eq!((page.tools.len(), page.next.as_deref(), page.ttl), (1, Some("c"), 5));
        assert_eq!(
            renamed(&page.tools[0].1, "s__t"),
            "{\"inputSchema\":{\"z\":1.0,\"a\":{}},\"name\":\"s__t\"}"
        );
        assert_eq!(parted("s__t__u"), Some(("s", "t__u")));
        assert_eq!((parted("s_t"), parted("__t"), parted("s__")), (None, None, None));
        assert!(ToolPage::read(b"{\"error\":{\"code\":-32601}}").unwrap_err().contains("-32601"));
    }
}
