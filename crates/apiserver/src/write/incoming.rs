//! Objects as clients send them.

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use watchkeeper_schema::json::Decoded;
use watchkeeper_schema::{Error, json, strict_message, unknown_field, yaml};

use super::Manner;
use crate::definition::object::summary;
use crate::failure::Failure;
use crate::request::media::BodyFormat;
use crate::request::write_options::FieldValidation;
use crate::resource::Resource;

/// An object that was sent: of the right kind, of the right shape, with everything unknown dropped and missing fields
/// filled in.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    pub(crate) object: Value,
    pub(crate) warnings: Vec<String>,
}

impl Incoming {
    /// Reads the body of a request.
    pub(crate) fn read(
        resource: &Resource,
        body: &[u8],
        format: BodyFormat,
        manner: &Manner,
    ) -> Result<Self, Failure> {
        let decoded = match format {
            BodyFormat::Json => json::decode(body),
            BodyFormat::Yaml => yaml::decode(body),
            BodyFormat::Protobuf => protobuf(body),
        };
        let decoded = decoded.map_err(|error| undecodable(resource, body, &error))?;
        // What is not an object is refused for its kind, which it does not have.
        resource.check_kind(&decoded.value, || match format {
            BodyFormat::Json => String::from_utf8_lossy(body),
            BodyFormat::Yaml | BodyFormat::Protobuf => decoded.value.to_string().into(),
        })?;
        if format == BodyFormat::Json && resource.builtin_kind().is_some() {
            return Self::ordered(resource, decoded, body, manner);
        }
        Self::of(resource, decoded.value, decoded.complaints, manner)
    }

    /// Reads an object of a built-in kind, of which everything is said in the order of the document.
    fn ordered(resource: &Resource, decoded: Decoded, body: &[u8], manner: &Manner) -> Result<Self, Failure> {
        let Decoded { value: mut object, complaints } = decoded;
        let unknown = Self::shape(resource, &mut object)?;
        let mut said: Vec<String> =
            unknown.iter().map(|path| unknown_field(path)).chain(complaints).collect();
        if said.len() > 1 {
            let order = document_order(body);
            let place = |text: &String| {
                let path = text.split('"').nth(1).unwrap_or_default();
                let is_it = |(_, known): &(usize, &String)| known.as_str() == path;
                let mut found = order.iter().enumerate().filter(is_it).map(|(at, _)| at);
                // What is there twice is noticed the second time.
                let first = found.next();
                if text.starts_with("duplicate") { found.next().or(first) } else { first }
            };
            said.sort_by_cached_key(place);
        }
        let warnings = judge(said, Vec::new(), manner.field_validation)
            .map_err(|problem| misshapen(resource, &problem))?;
        resource.default(&mut object);
        Ok(Self { object, warnings })
    }

    /// Makes an object one of a resource; returns what is unknown in it.
    fn shape(resource: &Resource, object: &mut Value) -> Result<Vec<String>, Failure> {
        if !object.is_object() {
            return Err(Failure::bad_request("the body is not an object"));
        }
        object["kind"] = resource.kind.as_str().into();
        object["apiVersion"] = resource.api_version.as_str().into();
        resource.coerce(object).map_err(|error| misshapen(resource, &error))
    }

    /// Reads an object that is known to be JSON.
    pub(crate) fn of(
        resource: &Resource,
        mut object: Value,
        complaints: Vec<String>,
        manner: &Manner,
    ) -> Result<Self, Failure> {
        let unknown = Self::shape(resource, &mut object)?;
        let warnings = judge(complaints, in_order(resource, unknown), manner.field_validation)
            .map_err(|problem| misshapen(resource, &problem))?;
        resource.default(&mut object);
        Ok(Self { object, warnings })
    }
}

/// Unknown fields in the order in which the decoder of the kind comes by them: metadata first.
fn in_order(resource: &Resource, mut unknown: Vec<String>) -> Vec<String> {
    if resource.builtin_kind().is_some() {
        unknown.sort_by_key(|path| !path.starts_with("metadata."));
    }
    unknown
}

/// What is said about fields that are unknown or given twice.
pub(crate) fn judge(
    complaints: Vec<String>,
    unknown: Vec<String>,
    field_validation: FieldValidation,
) -> Result<Vec<String>, String> {
    match field_validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => {
            Ok(complaints.into_iter().chain(unknown.iter().map(|path| unknown_field(path))).collect())
        }
        FieldValidation::Strict => match strict_message(&complaints, &unknown) {
            None => Ok(Vec::new()),
            Some(message) => Err(message),
        },
    }
}

/// The answer to a body that cannot be decoded.
fn undecodable(resource: &Resource, body: &[u8], error: &Error) -> Failure {
    let error = error.to_string();
    let problem = match error.strip_prefix("error converting YAML to JSON: ") {
        Some(problem) if resource.builtin_kind().is_some() => problem.to_owned(),
        _ => format!("couldn't get version/kind; json parse error: {error}"),
    };
    Failure::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {problem} ({})",
        resource.kind,
        summary(&String::from_utf8_lossy(body)),
    ))
}

/// The answer to an object that has a field of the wrong type, or one that should not be there.
fn misshapen(resource: &Resource, problem: &str) -> Failure {
    Failure::bad_request(format!(
        "{} in version {:?} cannot be handled as a {}: {problem}",
        resource.kind, resource.version, resource.kind
    ))
}

/// Reads a body that is of no resource of its own.
pub(crate) fn decode(body: &[u8], format: BodyFormat) -> Result<Value, Failure> {
    let decoded = match format {
        BodyFormat::Json => json::decode(body),
        BodyFormat::Yaml => yaml::decode(body),
        BodyFormat::Protobuf => protobuf(body),
    };
    decoded.map(|decoded| decoded.value).map_err(|error| {
        Failure::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    })
}

/// Reads an object that typed clients sent.
fn protobuf(body: &[u8]) -> Result<Decoded, Error> {
    let value =
        watchkeeper_kinds::protobuf::decode(body).map_err(|error| Error::Syntax(error.to_string()))?;
    Ok(Decoded { value, complaints: Vec::new() })
}

/// The paths of all fields of a JSON document in the order in which they are there, each as often as it is.
fn document_order(body: &[u8]) -> Vec<String> {
    let mut paths = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(body);
    // What cannot be read has been refused before.
    let _ = Walk { at: String::new(), paths: &mut paths }.deserialize(&mut reader);
    paths
}

/// Takes down the paths of fields in passing.
struct Walk<'a> {
    at: String,
    paths: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let at = if self.at.is_empty() { name } else { format!("{}.{name}", self.at) };
            self.paths.push(at.clone());
            map.next_value_seed(Walk { at, paths: self.paths })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index: usize = 0;
        while items
            .next_element_seed(Walk { at: format!("{}[{index}]", self.at), paths: self.paths })?
            .is_some()
        {
            index = index.saturating_add(1);
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
