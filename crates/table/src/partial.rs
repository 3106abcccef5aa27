use crate::fields::Fields;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::{Map, Value};

const VERSION: &str = "meta.k8s.io/v1";

/// The metadata of an object and nothing else, as a `PartialObjectMetadata`.
///
/// It borrows the object: `serde_json::to_vec` writes the response, `serde_json::to_value` makes a value of it.
///
/// ```
/// use serde_json::json;
/// use watchkeeper_table::Partial;
///
/// let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web-0"}, "spec": {}});
/// let partial = json!({
///     "kind": "PartialObjectMetadata",
///     "apiVersion": "meta.k8s.io/v1",
///     "metadata": {"name": "web-0"},
/// });
/// assert_eq!(serde_json::to_value(Partial(&pod)).unwrap(), partial);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Partial<'a>(pub &'a Value);

impl Serialize for Partial<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("PartialObjectMetadata", 3)?;
        out.serialize_field("kind", "PartialObjectMetadata")?;
        out.serialize_field("apiVersion", VERSION)?;
        match self.0.at("metadata") {
            Value::Null => out.serialize_field("metadata", &Map::new())?,
            metadata => out.serialize_field("metadata", metadata)?,
        }
        out.end()
    }
}

/// The metadata of a list of objects, as a `PartialObjectMetadataList`.
#[derive(Clone, Copy, Debug)]
pub struct PartialList<'a> {
    /// The objects.
    pub objects: &'a [Value],
    /// The `metadata` of the list they come from.
    pub metadata: &'a Value,
}

impl Serialize for PartialList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("PartialObjectMetadataList", 4)?;
        out.serialize_field("kind", "PartialObjectMetadataList")?;
        out.serialize_field("apiVersion", VERSION)?;
        out.serialize_field("metadata", &ListMetadata(self.metadata))?;
        out.serialize_field("items", &Each(self.objects, Partial))?;
        out.end()
    }
}

/// What a response keeps of the metadata of a list.
pub(crate) struct ListMetadata<'a>(pub(crate) &'a Value);

impl Serialize for ListMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kept = ["resourceVersion", "continue", "remainingItemCount"];
        let fields = kept.into_iter().map(|name| (name, self.0.at(name)));
        serializer.collect_map(fields.filter(|(_, field)| !field.is_null() && **field != ""))
    }
}

/// A list of which every element is written in another form.
pub(crate) struct Each<'a, F>(pub(crate) &'a [Value], pub(crate) F);

impl<'a, T: Serialize, F: Fn(&'a Value) -> T> Serialize for Each<'a, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(&self.1))
    }
}
