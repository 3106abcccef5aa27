//! Conversion between versions of a kind, by way of one of them: the hub.

use std::any::Any;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use watchkeeper_client::Kind;

use crate::malformed::Malformed;

const GROUP: &str = "apiextensions.k8s.io/";
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The versions of a kind that can be converted to each other.
#[derive(Clone)]
pub(crate) struct Conversions {
    group: String,
    kind: String,
    versions: Vec<Version>,
}

/// Reads an object of a version as one of the hub.
type ToHub = fn(&[u8]) -> Result<Box<dyn Any>, String>;

/// One version: how to get to the hub and back.
#[derive(Clone)]
struct Version {
    api_version: String,
    to_hub: ToHub,
    from_hub: fn(Box<dyn Any>) -> Result<Value, String>,
}

impl Conversions {
    /// The hub alone.
    pub(crate) fn of<H: Kind>() -> Self {
        let hub = Version {
            api_version: H::api_version(&()).into_owned(),
            to_hub: |json| Ok(Box::new(watchkeeper_informer::decode::<H>(json)?)),
            from_hub: |hub| encode(&*taken::<H>(hub)?),
        };
        Self { group: H::group(&()).into_owned(), kind: H::kind(&()).into_owned(), versions: vec![hub] }
    }

    /// One version more.
    pub(crate) fn add<H, S>(&mut self)
    where
        H: Kind + From<S>,
        S: Kind + From<H>,
    {
        self.versions.push(Version {
            api_version: S::api_version(&()).into_owned(),
            to_hub: |json| Ok(Box::new(H::from(watchkeeper_informer::decode::<S>(json)?))),
            from_hub: |hub| encode(&S::from(*taken::<H>(hub)?)),
        });
    }

    pub(crate) fn is_of(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }

    /// The object in another version. Of its metadata, labels and annotations are what the conversion made them, and all else
    /// stays as it was.
    pub(crate) fn convert(&self, object: &str, to: &str) -> Result<Value, String> {
        let header: Header = serde_json::from_str(object).map_err(|error| error.to_string())?;
        let find = |version: &str| {
            let known = self.versions.iter().find(|known| known.api_version == version);
            known.ok_or_else(|| {
                let known: Vec<&str> = self.versions.iter().map(|known| &*known.api_version).collect();
                format!("{} is not known in {version:?}, only in {}", self.kind, known.join(", "))
            })
        };
        let (from, to) = (find(&header.api_version)?, find(to)?);
        let named = |why: String| {
            let name = header.metadata.get("name").and_then(Value::as_str).unwrap_or_default();
            format!("{} {name:?} cannot be read as {}: {why}", self.kind, from.api_version)
        };
        let mut converted = (to.from_hub)((from.to_hub)(object.as_bytes()).map_err(named)?)?;
        let fields = converted.as_object_mut().ok_or("a version of the kind is not an object in JSON")?;
        fields.insert("apiVersion".into(), to.api_version.as_str().into());
        fields.insert("kind".into(), self.kind.as_str().into());
        let made = fields.remove("metadata").unwrap_or_default();
        let mut metadata = header.metadata;
        for name in ["labels", "annotations"] {
            match made.get(name).filter(|value| !value.is_null()) {
                Some(value) => metadata.insert(name.into(), value.clone()),
                None => metadata.remove(name),
            };
        }
        fields.insert("metadata".into(), metadata.into());
        Ok(converted)
    }
}

fn encode(object: &impl serde::Serialize) -> Result<Value, String> {
    serde_json::to_value(object).map_err(|error| format!("its type does not encode: {error}"))
}

fn taken<H: 'static>(hub: Box<dyn Any>) -> Result<Box<H>, String> {
    hub.downcast().map_err(|_| "the hub is of another type".to_owned())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<ConversionRequest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConversionRequest {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    objects: Vec<Box<RawValue>>,
}

/// A question for conversion.
pub(crate) struct ConversionReview {
    api_version: String,
    request: ConversionRequest,
}

impl ConversionReview {
    pub(crate) fn read(body: &[u8]) -> Result<Self, Malformed> {
        let document: Document = serde_json::from_slice(body).map_err(|error| Malformed::json(&error))?;
        let version = document.api_version.strip_prefix(GROUP).unwrap_or_default();
        if document.kind != "ConversionReview" || !VERSIONS.contains(&version) {
            return Err(Malformed::Other("not a ConversionReview of apiextensions.k8s.io/v1"));
        }
        let request = document.request.ok_or(Malformed::Other("the review has no request"))?;
        Ok(Self { api_version: document.api_version, request })
    }

    /// Converts all objects, or says at which it failed.
    pub(crate) fn convert(&self, kinds: &[Arc<Conversions>]) -> Result<Vec<Value>, String> {
        self.request.objects.iter().map(|object| self.one(object.get(), kinds)).collect()
    }

    fn one(&self, object: &str, kinds: &[Arc<Conversions>]) -> Result<Value, String> {
        let header: Header =
            serde_json::from_str(object).map_err(|_| "an object has no apiVersion and kind")?;
        let group = header.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let kind = kinds.iter().find(|known| known.is_of(group, &header.kind));
        let kind =
            kind.ok_or_else(|| format!("{} {:?} is not converted here", header.api_version, header.kind))?;
        kind.convert(object, &self.request.desired_api_version)
    }

    /// The document that answers it.
    pub(crate) fn answer(&self, converted: Result<Vec<Value>, String>) -> Value {
        let uid = &self.request.uid;
        let response = match converted {
            Ok(objects) => json!({"uid": uid, "result": {"status": "Success"}, "convertedObjects": objects}),
            Err(message) => {
                json!({"uid": uid, "result": {"status": "Failure", "message": message}, "convertedObjects": []})
            }
        };
        json!({"apiVersion": self.api_version, "kind": "ConversionReview", "response": response})
    }
}
