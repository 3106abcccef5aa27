//! Whether two versions of a kind are converted to each other without a loss.

use std::panic::Location;

use fastrand::Rng;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::{CustomResourceExt, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::sample::sample;

/// How many objects of each version are tried, unless `WATCHKEEPER_CASES` says otherwise.
const CASES: u32 = 500;

/// Checks that objects of one version of a kind survive the way to another version and back, both ways round: a property
/// test in one line.
///
/// ```no_run
/// # use watchkeeper_testkit::fixtures::Widget;
/// # type V1 = Widget;
/// # type V2 = Widget;
/// #[test]
/// fn no_version_loses_what_another_says() {
///     watchkeeper_testkit::round_trips::<V2, V1>();
/// }
/// ```
///
/// The objects are random, and such as the schemas in the definitions allow. What is compared is all that they say, labels and
/// annotations included, but for `apiVersion` and `kind`. An API server converts an object whenever somebody reads it in another
/// version than it is stored in, and then writes back what they made of it: what is lost on the way is lost for good. A field that
/// only one version has can be kept in an annotation.
///
/// # Panics
///
/// If something is lost, with the field and the object, the smallest that was found. If no objects can be made of a schema.
#[track_caller]
pub fn round_trips<A, B>()
where
    A: Version + From<B>,
    B: Version + From<A>,
{
    let at = Location::caller();
    check::<A, B>(at);
    check::<B, A>(at);
}

/// A version of a kind, as its derive makes it.
pub trait Version:
    Resource<DynamicType = ()> + CustomResourceExt + Clone + Serialize + DeserializeOwned
{
}

impl<K: Resource<DynamicType = ()> + CustomResourceExt + Clone + Serialize + DeserializeOwned> Version for K {}

fn check<A, B>(at: &Location<'_>)
where
    A: Version + From<B>,
    B: Version + From<A>,
{
    let version = A::version(&());
    let Some(schema) = schema(&A::crd(), &version) else {
        panic!("{at}: the definition of {} has no schema for {version}", A::kind(&()));
    };
    let asked = std::env::var("WATCHKEEPER_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases: u32 = asked.unwrap_or(CASES);
    let mut rng = Rng::with_seed(0x1_7e57);
    let mut made = 0;
    for case in 0..cases {
        // Small ones first, so that what fails first is small.
        let object =
            object(&schema, &A::api_version(&()), &A::kind(&()), case.saturating_mul(6) / cases, &mut rng);
        let Ok(there) = serde_json::from_value::<A>(object) else { continue };
        made += 1;
        let (before, after) = (said(&there), said(&A::from(B::from(there))));
        if let Some(field) = difference(&before, &after, String::new()) {
            let (from, to) = (A::api_version(&()), B::api_version(&()));
            panic!(
                "{at}: {field} does not survive the way from {from} to {to} and back:\n  before {before}\n  after  {after}"
            );
        }
    }
    assert!(
        made > 0,
        "{at}: none of {cases} objects made by the schema of {version} can be read as its type"
    );
}

fn schema(definition: &CustomResourceDefinition, version: &str) -> Option<Value> {
    let versions = &definition.spec.versions;
    let version = versions.iter().find(|one| one.name == version)?;
    serde_json::to_value(version.schema.as_ref()?.open_api_v3_schema.as_ref()?).ok()
}

fn object(schema: &Value, api_version: &str, kind: &str, size: u32, rng: &mut Rng) -> Value {
    let mut object = sample(schema, size, rng);
    let words = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let metadata = json!({
        "name": "a", "namespace": "default", "uid": "1", "generation": 3, "resourceVersion": "7",
        "labels": sample(&words, size, rng), "annotations": sample(&words, size, rng),
    });
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object["metadata"] = metadata;
    object
}

/// What an object says, whatever its version is called. Labels and annotations that are not there are as good as none.
fn said<K: Serialize>(object: &K) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    if let Some(metadata) = value["metadata"].as_object_mut() {
        for name in ["labels", "annotations"] {
            if metadata.get(name).is_some_and(|map| map.as_object().is_some_and(|map| map.is_empty())) {
                metadata.remove(name);
            }
        }
    }
    value
}

/// The first field that differs.
fn difference(before: &Value, after: &Value, path: String) -> Option<String> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let names = before.keys().chain(after.keys());
            let mut names: Vec<&String> = names.collect();
            names.sort_unstable();
            names.into_iter().find_map(|name| {
                let (before, after) = (before.get(name), after.get(name));
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                difference(before.unwrap_or(&Value::Null), after.unwrap_or(&Value::Null), path)
            })
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            let mut pairs = before.iter().zip(after).enumerate();
            pairs.find_map(|(at, (before, after))| difference(before, after, format!("{path}[{at}]")))
        }
        _ => (before != after).then_some(path),
    }
}
