//! Requests that are as an OpenAPI document says.

use std::collections::HashMap;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

use super::Refusal;
use crate::json_schema::{Schemas, Wrong, escaped};
use crate::query::parameter;

/// The methods that a path of a document can have.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// What requests may be: the paths of an OpenAPI document, with their parameters and bodies.
#[derive(Debug)]
pub struct OpenApi {
    paths: Vec<Path>,
    schemas: Arc<Schemas>,
    /// What comes before the paths of the document.
    prefix: String,
    /// Whether paths and methods that the document does not have are let through.
    allow_unknown: bool,
    /// Bytes of a body that is looked at.
    pub max_body: usize,
}

#[derive(Debug)]
struct Path {
    segments: Vec<Segment>,
    operations: HashMap<Method, Operation>,
}

#[derive(Debug, PartialEq, Eq)]
enum Segment {
    Is(String),
    Parameter(String),
}

#[derive(Debug)]
struct Operation {
    parameters: Vec<Parameter>,
    body: Option<Arc<Payload>>,
}

#[derive(Debug)]
struct Parameter {
    name: String,
    place: Place,
    required: bool,
    schema: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Path,
    Query,
    Header,
}

/// What the body of a request has to be.
#[derive(Debug)]
pub struct Payload {
    schemas: Arc<Schemas>,
    required: bool,
    /// Types of content, with the schema of those that are JSON.
    contents: Vec<(String, Option<usize>)>,
}

impl OpenApi {
    /// Reads a document, as JSON.
    pub fn parse(
        document: &Value,
        prefix: &str,
        allow_unknown: bool,
        max_body: usize,
    ) -> Result<Self, String> {
        let version = document["openapi"].as_str().unwrap_or_default();
        if !version.starts_with("3.") {
            return Err("is not a document of OpenAPI 3".to_owned());
        }
        let mut schemas = Schemas::default();
        let mut read = Vec::new();
        for (template, item) in document["paths"].as_object().into_iter().flatten() {
            let place = format!("/paths/{}", escaped(template));
            let mut operations = Vec::new();
            for method in METHODS.iter().filter(|method| item.get(**method).is_some()) {
                let at = format!("{place}/{method}");
                let mut parameters = Vec::new();
                for list in [format!("{at}/parameters"), format!("{place}/parameters")] {
                    read_parameters(document, &list, &mut schemas, &mut parameters)?;
                }
                let body = read_body(document, &format!("{at}/requestBody"), &mut schemas)?;
                let name = Method::from_bytes(method.to_ascii_uppercase().as_bytes());
                operations.extend(name.ok().map(|name| (name, parameters, body)));
            }
            read.push((segments(template), operations));
        }
        if read.is_empty() {
            return Err("has no paths".to_owned());
        }
        let schemas = Arc::new(schemas);
        let paths = read.into_iter().map(|(segments, operations)| {
            let operations = operations.into_iter().map(|(method, parameters, body)| {
                let body = body.map(|(required, contents)| {
                    Arc::new(Payload { schemas: Arc::clone(&schemas), required, contents })
                });
                (method, Operation { parameters, body })
            });
            Path { segments, operations: operations.collect() }
        });
        let mut paths: Vec<Path> = paths.collect();
        // Of two that fit, the one with fewer parameters counts.
        paths.sort_by_key(|path| {
            path.segments.iter().filter(|segment| matches!(segment, Segment::Parameter(_))).count()
        });
        let prefix = prefix.trim_end_matches('/').to_owned();
        Ok(Self { paths, schemas, prefix, allow_unknown, max_body })
    }

    /// Checks the head of a request; gives what its body has to be.
    pub fn check(
        &self,
        method: &Method,
        path: &str,
        query: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<Payload>>, Refusal> {
        let found = path.strip_prefix(self.prefix.as_str()).and_then(|rest| {
            let given: Vec<&str> = rest.trim_start_matches('/').split('/').collect();
            self.paths.iter().find_map(|path| Some((path, path.fits(&given)?)))
        });
        let Some((path, values)) = found else {
            return self.unknown(StatusCode::NOT_FOUND, "the API has no such path");
        };
        let Some(operation) = path.operations.get(method) else {
            return self
                .unknown(StatusCode::METHOD_NOT_ALLOWED, "the API does not have this method for the path");
        };
        for wanted in &operation.parameters {
            let given = match wanted.place {
                Place::Path => {
                    values.iter().find(|(name, _)| *name == wanted.name).map(|(_, value)| decoded(value))
                }
                Place::Query => query.and_then(|query| parameter(query, &wanted.name)),
                Place::Header => {
                    headers.get(wanted.name.as_str()).and_then(|value| value.to_str().ok()).map(str::to_owned)
                }
            };
            let place = format!("{} {}", wanted.place.name(), wanted.name);
            match (given, wanted.schema) {
                (None, _) if wanted.required => return Err(invalid((place, "is missing".into()))),
                (Some(text), Some(schema)) => {
                    let value = self.schemas.read(schema, &text);
                    self.schemas.check(schema, &value, &place).map_err(invalid)?;
                }
                _ => {}
            }
        }
        Ok(operation.body.clone())
    }

    fn unknown(&self, code: StatusCode, message: &str) -> Result<Option<Arc<Payload>>, Refusal> {
        if self.allow_unknown { Ok(None) } else { Err(Refusal::Invalid(code, message.to_owned())) }
    }
}

impl Payload {
    /// Checks the body of a request.
    pub fn check(&self, headers: &HeaderMap, body: &[u8]) -> Result<(), Refusal> {
        if body.is_empty() {
            return match self.required {
                true => Err(invalid(("body".into(), "is missing".into()))),
                false => Ok(()),
            };
        }
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let Some((_, schema)) = self.contents.iter().find(|(known, _)| fits_type(known, &kind)) else {
            let message = "the API does not take this type of content".to_owned();
            return Err(Refusal::Invalid(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        };
        let Some(schema) = schema else { return Ok(()) };
        let value: Value =
            serde_json::from_slice(body).map_err(|_| invalid(("body".into(), "is not JSON".into())))?;
        self.schemas.check(*schema, &value, "body").map_err(invalid)
    }
}

impl Path {
    /// The values of its parameters, if a path is of its form.
    fn fits<'a>(&self, given: &[&'a str]) -> Option<Vec<(&str, &'a str)>> {
        if given.len() != self.segments.len() {
            return None;
        }
        let mut values = Vec::new();
        for (segment, given) in self.segments.iter().zip(given) {
            match segment {
                Segment::Is(text) if text == given => {}
                Segment::Parameter(name) if !given.is_empty() => values.push((name.as_str(), *given)),
                _ => return None,
            }
        }
        Some(values)
    }
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
        }
    }
}

fn invalid((place, message): Wrong) -> Refusal {
    Refusal::Invalid(StatusCode::BAD_REQUEST, format!("{place}: {message}"))
}

fn decoded(text: &str) -> String {
    String::from_utf8_lossy(&watchkeeper_core::text::percent_decoded(text.as_bytes())).into_owned()
}

fn segments(template: &str) -> Vec<Segment> {
    let segment = |text: &str| match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        Some(name) => Segment::Parameter(name.to_owned()),
        None => Segment::Is(text.to_owned()),
    };
    template.trim_start_matches('/').split('/').map(segment).collect()
}

fn fits_type(known: &str, given: &str) -> bool {
    known == "*/*"
        || known == given
        || known.strip_suffix("/*").is_some_and(|family| given.split('/').next() == Some(family))
}

/// Follows a reference, if there is one. Gives the pointer of what it leads to.
fn resolved(document: &Value, pointer: &str) -> Result<String, String> {
    let value = document.pointer(pointer).ok_or_else(|| format!("#{pointer}: there is nothing"))?;
    match value.get("$ref").and_then(Value::as_str) {
        None => Ok(pointer.to_owned()),
        Some(reference) => {
            let target = reference.strip_prefix('#');
            let target = target.filter(|target| document.pointer(target).is_some());
            target.map(str::to_owned).ok_or_else(|| format!("#{pointer}: {reference:?} leads nowhere"))
        }
    }
}

/// Reads a list of parameters; those that are known already count more.
fn read_parameters(
    document: &Value,
    list: &str,
    schemas: &mut Schemas,
    parameters: &mut Vec<Parameter>,
) -> Result<(), String> {
    let count = document.pointer(list).and_then(Value::as_array).map_or(0, Vec::len);
    for at in 0..count {
        let pointer = resolved(document, &format!("{list}/{at}"))?;
        let value = document.pointer(&pointer).unwrap_or(&Value::Null);
        let place = match value["in"].as_str() {
            Some("path") => Place::Path,
            Some("query") => Place::Query,
            Some("header") => Place::Header,
            // Cookies are not looked at.
            _ => continue,
        };
        let name = value["name"].as_str().unwrap_or_default();
        let name = if place == Place::Header { name.to_ascii_lowercase() } else { name.to_owned() };
        if parameters.iter().any(|known| known.place == place && known.name == name) {
            continue;
        }
        // Lists and objects are written in many ways: of those, only whether they are there is looked at.
        let simple = |schema: &Value| !matches!(schema["type"].as_str(), Some("array" | "object"));
        let schema = match value.get("schema").filter(|schema| simple(schema)) {
            Some(_) => Some(schemas.compile(document, &format!("{pointer}/schema"))?),
            None => None,
        };
        let required = place == Place::Path || value["required"] == Value::Bool(true);
        parameters.push(Parameter { name, place, required, schema });
    }
    Ok(())
}

/// Whether a body is required, and its types of content.
type Contents = (bool, Vec<(String, Option<usize>)>);

fn read_body(document: &Value, pointer: &str, schemas: &mut Schemas) -> Result<Option<Contents>, String> {
    if document.pointer(pointer).is_none() {
        return Ok(None);
    }
    let pointer = resolved(document, pointer)?;
    let body = document.pointer(&pointer).unwrap_or(&Value::Null);
    let mut contents = Vec::new();
    for (kind, content) in body["content"].as_object().into_iter().flatten() {
        let is_json = kind == "application/json" || kind.ends_with("+json");
        let schema = match is_json && content.get("schema").is_some() {
            true => {
                let schema = format!("{pointer}/content/{}/schema", escaped(kind));
                Some(schemas.compile(document, &schema)?)
            }
            false => None,
        };
        contents.push((kind.to_ascii_lowercase(), schema));
    }
    Ok(Some((body["required"] == Value::Bool(true), contents)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shop() -> OpenApi {
        let document = json!({
            "openapi": "3.0.3",
            "paths": {
                "/orders": {
                    "parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 100}}],
                    "get": {},
                    "post": {
                        "parameters": [{"$ref": "#/components/parameters/team"}],
                        "requestBody": {"required": true, "content": {
                            "application/json": {"schema": {"$ref": "#/components/schemas/order"}},
                            "text/*": {},
                        }},
                    },
                },
                "/orders/{id}": {"get": {"parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}]}},
                "/orders/all": {"get": {}},
            },
            "components": {
                "parameters": {"team": {"name": "X-Team", "in": "header", "required": true, "schema": {"enum": ["a", "b"]}}},
                "schemas": {"order": {"type": "object", "required": ["item"], "properties": {"item": {"type": "string"}}}},
            },
        });
        OpenApi::parse(&document, "/v1", false, 1024).unwrap()
    }

    fn code(result: Result<impl std::fmt::Debug, Refusal>) -> u16 {
        match result {
            Ok(_) => 200,
            Err(Refusal::Invalid(code, _)) => code.as_u16(),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn paths_methods_and_parameters_are_those_of_the_document() {
        let (api, none) = (shop(), HeaderMap::new());
        for (method, path, query, expected) in [
            (Method::GET, "/v1/orders", None, 200),
            (Method::GET, "/v1/orders", Some("limit=100"), 200),
            (Method::GET, "/v1/orders", Some("limit=101"), 400),
            (Method::GET, "/v1/orders", Some("limit=x"), 400),
            (Method::GET, "/v1/orders/7", None, 200),
            (Method::GET, "/v1/orders/all", None, 200),
            (Method::GET, "/v1/orders/seven", None, 400),
            (Method::GET, "/v1/orders/", None, 404),
            (Method::GET, "/orders", None, 404),
            (Method::GET, "/v1/else", None, 404),
            (Method::DELETE, "/v1/orders", None, 405),
        ] {
            assert_eq!(code(api.check(&method, path, query, &none)), expected, "{method} {path} {query:?}");
        }
        assert_eq!(code(api.check(&Method::POST, "/v1/orders", None, &none)), 400, "the header is missing");
    }

    #[test]
    fn bodies_are_those_of_the_document() {
        let headers = |kind: &'static str| {
            HeaderMap::from_iter([
                ("x-team".parse().unwrap(), "a".parse().unwrap()),
                (CONTENT_TYPE, kind.parse().unwrap()),
            ])
        };
        let json = headers("application/json; charset=utf-8");
        let payload = shop().check(&Method::POST, "/v1/orders", None, &json).unwrap().unwrap();
        for (kind, body, expected) in [
            ("application/json", r#"{"item": "tea"}"#, 200),
            ("application/json", r#"{"item": 1}"#, 400),
            ("application/json", "{}", 400),
            ("application/json", "{", 400),
            ("application/json", "", 400),
            ("text/plain", "anything", 200),
            ("image/png", "x", 415),
        ] {
            assert_eq!(code(payload.check(&headers(kind), body.as_bytes())), expected, "{kind} {body}");
        }
    }

    #[test]
    fn what_is_no_document_is_refused() {
        for wrong in [
            json!({}),
            json!({"openapi": "2.0", "paths": {"/": {}}}),
            json!({"openapi": "3.1.0"}),
            json!({"openapi": "3.1.0", "paths": {"/": {"get": {"parameters": [{"$ref": "#/nowhere"}]}}}}),
        ] {
            assert!(OpenApi::parse(&wrong, "", false, 1).is_err(), "{wrong}");
        }
    }
}
