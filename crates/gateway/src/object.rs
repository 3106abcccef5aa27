//! Objects as sources deliver them, and what is wrong with them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use watchkeeper_core::Key;
use watchkeeper_informer::Object;
use watchkeeper_schema::Schema;

use crate::kinds::{API_VERSION, Spec, documents, standard};
use crate::packed_json::{self, PackedJson};

/// The namespace of objects that name none, as in files.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The kinds that a gateway reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InputKind {
    /// `GatewayListener`.
    Listener,
    /// `GatewayRoute`.
    Route,
    /// `GatewayBackend`.
    Backend,
    /// `GatewayPolicy`.
    Policy,
    /// `AIGatewayConfig`.
    AiGateway,
    /// `ModelContextMapping`.
    Model,
    /// `LLMGatewayPolicy`.
    LlmPolicy,
    /// `PromptTemplate`.
    Prompt,
    /// `McpRoute`.
    Mcp,
    /// `ApiDefinition`.
    Api,
    /// `ApiSubscription`.
    Subscription,
    /// `Tenant`.
    Tenant,
    /// `Secret`, for certificates and keys of providers.
    Secret,
    /// `Service`, for the names of ports.
    Service,
    /// `EndpointSlice`, for the endpoints of Services.
    EndpointSlice,
    /// `GatewayClass` of Gateway API.
    GatewayClass,
    /// `Gateway` of Gateway API.
    Gateway,
    /// `HTTPRoute` of Gateway API.
    HttpRoute,
    /// `ReferenceGrant` of Gateway API.
    ReferenceGrant,
    /// `Namespace`, whose labels Gateways may ask for.
    Namespace,
}

impl InputKind {
    /// All kinds.
    pub const ALL: [Self; 20] = [
        Self::Listener,
        Self::Route,
        Self::Backend,
        Self::Policy,
        Self::AiGateway,
        Self::Model,
        Self::LlmPolicy,
        Self::Prompt,
        Self::Mcp,
        Self::Api,
        Self::Subscription,
        Self::Tenant,
        Self::Secret,
        Self::Service,
        Self::EndpointSlice,
        Self::GatewayClass,
        Self::Gateway,
        Self::HttpRoute,
        Self::ReferenceGrant,
        Self::Namespace,
    ];

    /// `apiVersion`, `kind` and the plural.
    pub fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Listener => (API_VERSION, "GatewayListener", "gatewaylisteners"),
            Self::Route => (API_VERSION, "GatewayRoute", "gatewayroutes"),
            Self::Backend => (API_VERSION, "GatewayBackend", "gatewaybackends"),
            Self::Policy => (API_VERSION, "GatewayPolicy", "gatewaypolicies"),
            Self::AiGateway => (API_VERSION, "AIGatewayConfig", "aigatewayconfigs"),
            Self::Model => (API_VERSION, "ModelContextMapping", "modelcontextmappings"),
            Self::LlmPolicy => (API_VERSION, "LLMGatewayPolicy", "llmgatewaypolicies"),
            Self::Prompt => (API_VERSION, "PromptTemplate", "prompttemplates"),
            Self::Mcp => (API_VERSION, "McpRoute", "mcproutes"),
            Self::Api => (API_VERSION, "ApiDefinition", "apidefinitions"),
            Self::Subscription => (API_VERSION, "ApiSubscription", "apisubscriptions"),
            Self::Tenant => (API_VERSION, "Tenant", "tenants"),
            Self::Secret => ("v1", "Secret", "secrets"),
            Self::Service => ("v1", "Service", "services"),
            Self::EndpointSlice => ("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
            Self::GatewayClass => (standard::API_VERSION, "GatewayClass", "gatewayclasses"),
            Self::Gateway => (standard::API_VERSION, "Gateway", "gateways"),
            Self::HttpRoute => (standard::API_VERSION, "HTTPRoute", "httproutes"),
            Self::ReferenceGrant => (standard::API_VERSION, "ReferenceGrant", "referencegrants"),
            Self::Namespace => ("v1", "Namespace", "namespaces"),
        }
    }

    /// The kind of these names. Gateway API's `v1beta1` is the same as its `v1`.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let api_version = match api_version.strip_prefix(standard::GROUP) {
            Some("/v1beta1") => standard::API_VERSION,
            _ => api_version,
        };
        Self::ALL.into_iter().find(|known| {
            let (known_version, known_kind, _) = known.names();
            (known_version, known_kind) == (api_version, kind)
        })
    }

    /// Whether it is a kind of the gateway, which has a schema and a status.
    pub fn is_own(self) -> bool {
        let is_read_only =
            matches!(self, Self::Secret | Self::Service | Self::EndpointSlice | Self::Namespace);
        !is_read_only && !self.is_standard()
    }

    /// Whether a cluster need not have it: kinds of Gateway API, and those about models and the life of APIs.
    pub fn is_optional(self) -> bool {
        self.is_standard()
            || matches!(
                self,
                Self::AiGateway
                    | Self::Model
                    | Self::LlmPolicy
                    | Self::Prompt
                    | Self::Mcp
                    | Self::Api
                    | Self::Subscription
                    | Self::Tenant
            )
    }

    /// Whether it is a kind of Gateway API. A cluster need not have these.
    pub fn is_standard(self) -> bool {
        matches!(self, Self::GatewayClass | Self::Gateway | Self::HttpRoute | Self::ReferenceGrant)
    }

    /// Whether what became of its objects is written into their status.
    pub fn has_status(self) -> bool {
        self.is_own() || self.is_standard() && self != Self::ReferenceGrant
    }

    /// Whether its objects say who may use a route.
    pub(crate) fn protects(self) -> bool {
        matches!(self, Self::Policy | Self::LlmPolicy | Self::Api | Self::Subscription | Self::Tenant)
    }

    /// Whether its objects are in namespaces.
    pub fn is_namespaced(self) -> bool {
        !matches!(self, Self::GatewayClass | Self::Namespace)
    }
}

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    /// Its kind.
    pub kind: InputKind,
    /// Its namespace and name.
    pub key: Key,
}

/// `GatewayRoute shop/cart`.
impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.names().1, self.key)
    }
}

/// One state of an object, as a source has it.
#[derive(Clone, Debug)]
pub struct Input {
    /// Which object.
    pub id: ObjectId,
    /// All of it. There are as many of these as objects, and few are read at a time.
    pub json: PackedJson,
    /// When it was created, as Kubernetes writes times: these sort as text. `None` for objects of sources that do not know.
    pub created: Option<Arc<str>>,
    /// Moves when the spec moves; 0 if the source does not count.
    pub generation: i64,
}

impl Input {
    /// Reads an object. `None` if it is of a kind that is not the gateway's business.
    ///
    /// An object has `apiVersion`, `kind`, `metadata` and `spec`. A row of a table may instead have columns `kind`, `namespace`, `name`
    /// and `spec`.
    pub fn read(value: Value) -> Result<Option<Self>, Problem> {
        let value = normalised(&value).unwrap_or(value);
        Self::of(&value, || PackedJson::of(&value))
    }

    /// Reads an object that an informer has, and keeps no copy of it.
    ///
    /// # Errors
    ///
    /// As of [`read`](Self::read); also if it cannot be decoded.
    pub(crate) fn stored(object: &Object<Value>) -> Result<Option<Self>, Problem> {
        let value = object.get().map_err(|error| Problem::new("", error.detail))?;
        let mut input = match normalised(&value) {
            Some(value) => Self::of(&value, || PackedJson::made(&value, object))?,
            None => Self::of(&value, || PackedJson::stored(object))?,
        };
        if let Some(id) = input.as_mut().map(|input| &mut input.id).filter(|id| id.key == *object.key()) {
            id.key = object.key().clone();
        }
        Ok(input)
    }

    fn of(value: &Value, packed: impl FnOnce() -> PackedJson) -> Result<Option<Self>, Problem> {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
        let (Some(api_version), Some(kind)) = (text("/apiVersion"), text("/kind")) else {
            return Err(Problem::new("", "has no apiVersion and kind"));
        };
        let Some(kind) = InputKind::of(api_version, kind) else { return Ok(None) };
        let Some(name) = text("/metadata/name").filter(|name| !name.is_empty()) else {
            return Err(Problem::new("metadata.name", "is missing"));
        };
        let namespace = text("/metadata/namespace").filter(|namespace| !namespace.is_empty());
        let namespace = kind.is_namespaced().then_some(namespace.unwrap_or(DEFAULT_NAMESPACE));
        let id = ObjectId { kind, key: Key::new(namespace, name) };
        if !packed_json::fits(value, packed_json::LEVELS) {
            let levels = packed_json::LEVELS;
            return Err(Problem::new("", format!("{id} is nested too deeply: {levels} levels are allowed")));
        }
        let created = text("/metadata/creationTimestamp").map(Into::into);
        let generation = value.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
        Ok(Some(Self { id, created, generation, json: packed() }))
    }

    /// Shares the texts that are the same in another state of the object.
    pub(crate) fn share(&mut self, other: &Self) {
        if self.id == other.id {
            self.id = other.id.clone();
        }
        if self.created == other.created {
            self.created = other.created.clone();
        }
    }

    /// Whether both would be compiled to the same: only statuses, versions, labels and the like differ.
    pub(crate) fn means_the_same(&self, other: &Self) -> bool {
        if !(self.id.kind.has_status() || self.id.kind.is_standard())
            || (self.generation, &self.created) != (other.generation, &other.created)
        {
            return false;
        }
        if self.json == other.json {
            return true;
        }
        let (one, other) = (self.json.read(), other.json.read());
        let fields = |object: &Value| {
            let fields = object.as_object().into_iter().flat_map(|fields| fields.keys());
            fields.filter(|key| *key != "status").cloned().collect::<Vec<_>>()
        };
        has_approval(&one) == has_approval(&other)
            && one.get("spec") == other.get("spec")
            && fields(&one) == fields(&other)
    }

    /// Whether the status has the condition `Approved`, which others write.
    pub(crate) fn is_approved(&self) -> bool {
        has_approval(&self.json.read())
    }

    /// The files that the spec names: its fields `file` and those that end in `File`.
    pub(crate) fn files(&self) -> Vec<String> {
        fn collect(value: &Value, files: &mut Vec<String>) {
            match value {
                Value::Object(fields) => {
                    for (name, value) in fields {
                        match value {
                            Value::String(file) if name == "file" || name.ends_with("File") => {
                                files.push(file.clone());
                            }
                            value => collect(value, files),
                        }
                    }
                }
                Value::Array(items) => items.iter().for_each(|item| collect(item, files)),
                _ => {}
            }
        }
        let mut files = Vec::new();
        self.json.read().get("spec").into_iter().for_each(|spec| collect(spec, &mut files));
        files
    }

    /// The spec as `S`, or all that is wrong with the object by its schema. Fields that the schema does not know are wrong.
    pub(crate) fn checked<S: Spec>(&self) -> Result<S, Vec<Problem>> {
        let mut value = self.json.read();
        if let Some(schema) = schema(self.id.kind) {
            let unknown = schema.coerce(&mut value);
            let unknown = unknown.map_err(|error| vec![Problem::new("metadata", error.to_string())])?;
            let unknown = unknown.iter().filter(|field| !field.starts_with("status"));
            let mut problems: Vec<Problem> =
                unknown.map(|field| Problem::new(field.as_str(), "is not known")).collect();
            if let Some(status) = value.as_object_mut() {
                status.remove("status");
            }
            problems.extend(schema.validate(&value).iter().map(|error| {
                let said = error.to_string();
                let (field, message) = said.split_once(": ").unwrap_or(("", &said));
                Problem::new(field, message)
            }));
            if !problems.is_empty() {
                return Err(problems);
            }
        }
        let spec = value.get_mut("spec").map(Value::take).unwrap_or_default();
        S::read(spec).map_err(|error| vec![Problem::new("spec", error.to_string())])
    }
}

/// Whether others have approved of an object, by a condition of its status.
fn has_approval(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Approved" && condition["status"] == "True")
}

/// The object that a row with columns stands for; `None` for what is no such row.
fn normalised(value: &Value) -> Option<Value> {
    if value.get("metadata").is_some() || value.get("name").is_none() || value.get("spec").is_none() {
        return None;
    }
    let api_version = value.get("apiVersion").or(value.get("api_version")).cloned();
    let spec = match &value["spec"] {
        // A column of type text.
        Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
        spec => spec.clone(),
    };
    Some(json!({
        "apiVersion": api_version.unwrap_or_else(|| API_VERSION.into()),
        "kind": value["kind"],
        "metadata": {"name": value["name"], "namespace": value["namespace"]},
        "spec": spec,
    }))
}

/// The schema of a kind of the gateway.
fn schema(kind: InputKind) -> Option<&'static Schema> {
    static SCHEMAS: OnceLock<Vec<(InputKind, Schema)>> = OnceLock::new();
    let schemas = SCHEMAS.get_or_init(|| {
        let read = |definition: &Value| {
            let kind = InputKind::of(API_VERSION, definition.pointer("/spec/names/kind")?.as_str()?)?;
            Some((kind, Schema::read(definition.pointer("/spec/versions/0/schema/openAPIV3Schema")?).ok()?))
        };
        documents().iter().filter_map(read).collect()
    });
    schemas.iter().find(|(known, _)| *known == kind).map(|(_, schema)| schema)
}

/// Something that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where: `spec.rules[0].backends[1].weight`. Empty for all of the object.
    pub field: String,
    /// What.
    pub message: String,
}

impl Problem {
    /// Something wrong with a field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.message),
            field => write!(f, "{field}: {}", self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::GatewayRouteSpec;

    fn read(value: Value) -> Input {
        Input::read(value).unwrap().unwrap()
    }

    #[test]
    fn what_is_wrong_is_said_by_field() {
        let route = read(json!({
            "apiVersion": API_VERSION, "kind": "GatewayRoute", "metadata": {"name": "a"},
            "spec": {"rules": [{"backends": [{"name": "b", "weight": -1}], "tiemouts": {}}], "hostnames": []},
        }));
        let problems = route.checked::<GatewayRouteSpec>().unwrap_err();
        let said: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(said[0], "spec.hostnames: is not known");
        assert_eq!(said[1], "spec.rules[0].tiemouts: is not known");
        assert!(said[2].starts_with("spec.rules[0].backends[0].weight: Invalid value: -1"), "{said:?}");
    }

    #[test]
    fn a_row_of_a_table_is_an_object() {
        let row = json!({"kind": "GatewayRoute", "name": "a", "namespace": null, "spec": "{\"rules\": []}", "id": 7});
        let route = read(row);
        assert_eq!(route.id.to_string(), "GatewayRoute default/a");
        assert_eq!(route.checked::<GatewayRouteSpec>().unwrap().rules, []);
    }

    #[test]
    fn other_kinds_are_nobodys_business() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
        assert!(Input::read(pod).unwrap().is_none());
        assert!(Input::read(json!({"a": 1})).is_err());
        assert!(Input::read(json!({"apiVersion": "v1", "kind": "Secret"})).is_err());
    }

    #[test]
    fn an_object_that_could_not_be_read_again_is_refused() {
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        let route = json!({"apiVersion": API_VERSION, "kind": "GatewayRoute", "metadata": {"name": "a"}, "spec": deep});
        let said = Input::read(route).unwrap_err().to_string();
        assert_eq!(said, "GatewayRoute default/a is nested too deeply: 100 levels are allowed");
    }
}
