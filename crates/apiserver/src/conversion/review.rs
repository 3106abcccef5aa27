//! What a conversion webhook is asked, and what of its answer is taken.

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use watchkeeper_go::fmt;
use watchkeeper_schema::{FieldError, Path, metadata};

use crate::object::meta;
use crate::webhook_client::{decode_answer, wrong_type};

/// The group of the reviews.
const GROUP: &str = "apiextensions.k8s.io";

/// The form of the reviews that a webhook understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

/// Why objects were not converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The whole message, in upstream's words.
    pub(super) message: String,
    /// Under which name upstream counts it.
    pub(super) kind: &'static str,
}

pub(super) const CALL: &str = "conversion_webhook_call_failure";
const MALFORMED: &str = "conversion_webhook_malformed_response_failure";
const PARTIAL: &str = "conversion_webhook_partial_response_failure";
const INVALID: &str = "conversion_webhook_invalid_converted_object_failure";

impl ReviewVersion {
    /// The first known version of `conversionReviewVersions`.
    pub(super) fn read(versions: &Value) -> Option<Self> {
        versions.as_array().into_iter().flatten().find_map(|version| match version.as_str() {
            Some("v1") => Some(Self::V1),
            Some("v1beta1") => Some(Self::V1Beta1),
            _ => None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1Beta1 => "v1beta1",
        }
    }
}

/// The ConversionReview that asks for objects in another version.
pub(super) fn request(version: ReviewVersion, uid: &str, objects: &[Value], to: &str) -> Bytes {
    let review = json!({
        "kind": "ConversionReview",
        "apiVersion": format!("{GROUP}/{}", version.name()),
        "request": {"uid": uid, "desiredAPIVersion": to, "objects": objects},
        "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
    });
    review.to_string().into()
}

/// What is said of an object of this kind and version that could not be converted.
pub(super) fn about(object: &Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    format!("conversion webhook for {}, Kind={}", text("apiVersion"), text("kind"))
}

/// The converted objects of an answer, each with the metadata of the original but for labels and annotations.
pub(super) fn read(
    answer: &[u8],
    version: ReviewVersion,
    uid: &str,
    originals: &[Value],
    to: &str,
) -> Result<Vec<Value>, Failure> {
    let of_all = || originals.first().map(about).unwrap_or_default();
    let call = |why: String| Failure { message: format!("{} failed: {why}", of_all()), kind: CALL };
    let malformed = |why: String| Failure { message: format!("{} failed: {why}", of_all()), kind: MALFORMED };
    let mut review = decode_answer(answer).map_err(call)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&review["apiVersion"]), text(&review["kind"]));
    check_kind(&api_version, &kind, version).map_err(call)?;
    check_types(&review).map_err(call)?;
    let mut response = review["response"].take();
    if version == ReviewVersion::V1 && (kind.is_empty() || api_version.is_empty()) {
        let (group, short) = api_version.split_once('/').unwrap_or(("", &api_version));
        return Err(malformed(format!(
            "expected webhook response of {GROUP}/v1, Kind=ConversionReview, got {group}/{short}, Kind={kind}"
        )));
    }
    if response.is_null() {
        return Err(malformed("no response provided".to_owned()));
    }
    if version == ReviewVersion::V1 && response["uid"] != uid {
        let got = text(&response["uid"]);
        return Err(malformed(format!("expected response.uid={uid:?}, got {got:?}")));
    }
    let (status, message) = (text(&response["result"]["status"]), text(&response["result"]["message"]));
    if status != "Success" {
        let why = format!("response.result.status was '{status}', not 'Success'");
        return Err(malformed(if message.is_empty() { why } else { message }));
    }
    let converted = match response["convertedObjects"].take() {
        Value::Array(objects) => objects,
        _ => Vec::new(),
    };
    if converted.len() != originals.len() {
        let why = format!("returned {} objects, expected {}", converted.len(), originals.len());
        return Err(Failure { message: format!("{} {why}", of_all()), kind: PARTIAL });
    }
    let raw = |index: usize| raw_object(answer, index);
    let pairs = converted.into_iter().zip(originals).enumerate();
    pairs
        .map(|(index, (converted, original))| {
            let invalid = |message: String| Failure { message, kind: INVALID };
            checked(converted, original, to, || raw(index)).map_err(invalid)
        })
        .collect()
}

/// Refuses an answer that says it is something else. One that says nothing is read as what it should be.
fn check_kind(api_version: &str, kind: &str, version: ReviewVersion) -> Result<(), String> {
    let (group, short) = api_version.split_once('/').unwrap_or(("", api_version));
    let is_expected = (group.is_empty() || group == GROUP) && (kind.is_empty() || kind == "ConversionReview");
    let is_version = api_version.is_empty() || group == GROUP && short == version.name();
    if is_expected && is_version {
        return Ok(());
    }
    Err(format!("converting ({short}.{kind}) to ({}.ConversionReview): unknown conversion", version.name()))
}

/// Refuses an answer with values of other types, as Go's decoder does.
fn check_types(review: &Value) -> Result<(), String> {
    let response = &review["response"];
    let wrong = |found: &Value, place: &str, wanted: &str| Err(wrong_type(found, place, wanted));
    if !response.is_object() && !response.is_null() {
        return wrong(response, "ConversionReview.response", "v1.ConversionResponse");
    }
    let fits = |found: &Value, is_right: fn(&Value) -> bool| found.is_null() || is_right(found);
    let (uid, objects, result) = (&response["uid"], &response["convertedObjects"], &response["result"]);
    if !fits(uid, Value::is_string) {
        return wrong(uid, "ConversionResponse.response.uid", "types.UID");
    }
    if !fits(objects, Value::is_array) {
        let wanted = "[]runtime.RawExtension";
        return wrong(objects, "ConversionResponse.response.convertedObjects", wanted);
    }
    if !fits(result, Value::is_object) {
        return wrong(result, "ConversionResponse.response.result", "v1.Status");
    }
    for field in ["status", "message"] {
        if !fits(&result[field], Value::is_string) {
            return wrong(&result[field], &format!("Status.response.result.{field}"), "string");
        }
    }
    Ok(())
}

/// The text of one converted object, as it came.
fn raw_object(answer: &[u8], index: usize) -> String {
    #[derive(serde::Deserialize)]
    struct Review<'a> {
        #[serde(borrow)]
        response: Response<'a>,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Response<'a> {
        #[serde(borrow)]
        converted_objects: Vec<&'a RawValue>,
    }
    let review = serde_json::from_slice::<Review<'_>>(answer).ok();
    let objects = review.map(|review| review.response.converted_objects).unwrap_or_default();
    objects.get(index).map(|raw| raw.get().to_owned()).unwrap_or_default()
}

/// A converted object with the metadata of the original, if it may be what the original became.
fn checked(
    mut converted: Value,
    original: &Value,
    to: &str,
    raw: impl FnOnce() -> String,
) -> Result<Value, String> {
    if converted.is_null() {
        return Err("unexpected end of JSON input".to_owned());
    }
    if !converted.is_object() {
        let found = watchkeeper_go::json::kind(&converted);
        return Err(format!(
            "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        ));
    }
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let about = about(original);
    let kind = text(&converted, "kind");
    if kind.is_empty() {
        return Err(format!("Object 'Kind' is missing in '{}'", raw()));
    }
    let got = text(&converted, "apiVersion");
    if got != to {
        return Err(format!(
            "{about} returned invalid object at index 0: invalid groupVersion (expected {to}, received {got})"
        ));
    }
    let expected = text(original, "kind");
    if kind != expected {
        return Err(format!(
            "{about} returned invalid object at index 0: invalid kind (expected {expected}, received {kind})"
        ));
    }
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (was, is) = (meta::text(original, field), meta::text(&converted, field));
        if was != is {
            return Err(format!("{about} returned invalid object: must have the same {name}: {was} != {is}"));
        }
    }
    restore_metadata(&mut converted, original)
        .map_err(|why| format!("{about} returned invalid metadata: {why}"))?;
    Ok(converted)
}

/// Gives a converted object the metadata of the original. Only labels and annotations may have changed.
fn restore_metadata(converted: &mut Value, original: &Value) -> Result<(), String> {
    let returned = match converted.get_mut("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(returned)) => std::mem::take(returned),
        Some(other) => {
            let found = fmt::type_name(other);
            return Err(format!("invalid metadata of type {found} in converted object"));
        }
    };
    let mut metadata = original["metadata"].as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match returned.get(field) {
            None | Some(Value::Null) => drop(metadata.remove(field)),
            Some(Value::Object(pairs)) => {
                check_pairs(field, pairs, metadata.get(field).and_then(Value::as_object))?;
                metadata.insert(field.into(), pairs.clone().into());
            }
            Some(other) => {
                let found = fmt::type_name(other);
                return Err(format!("invalid metadata.{field} of type {found} in converted object"));
            }
        }
    }
    converted["metadata"] = metadata.into();
    Ok(())
}

/// Refuses labels or annotations that are no texts, or that have changed and may not be so.
fn check_pairs(
    field: &str,
    pairs: &Map<String, Value>,
    before: Option<&Map<String, Value>>,
) -> Result<(), String> {
    if let Some((key, value)) = pairs.iter().find(|(_, value)| !value.is_string()) {
        let found = fmt::type_name(value);
        return Err(format!("metadata.{field}[{key}] must be a string, but is {found} in converted object"));
    }
    if before == Some(pairs) || before.is_none() && pairs.is_empty() {
        return Ok(());
    }
    let one = Value::Object([(field.to_owned(), pairs.clone().into())].into_iter().collect());
    let mut errors = metadata::validate(&one, &Path::root().child("metadata"));
    // Upstream says it so.
    errors.iter_mut().for_each(|error| error.field = error.field.replace("annotations", "annotation"));
    let errors: Vec<String> = errors.iter().map(FieldError::to_string).collect();
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}
