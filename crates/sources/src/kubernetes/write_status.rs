//! Writes the status of an object.

use bytes::Bytes;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};
use watchkeeper_core::{Error, ObjectStatus};

use super::answer::Answer;
use super::settings::Settings;

/// Patches the status subresource, if the object is still in the state that the status is about.
pub(super) async fn write(settings: &Settings, status: ObjectStatus) -> Result<(), Error> {
    let ObjectStatus { key, version, json, .. } = status;
    let fatal = |error: &dyn std::fmt::Display| Error::Fatal(format!("{} {key}: {error}", settings.name));
    let status: Value = serde_json::from_slice(&json).map_err(|_| fatal(&"the status is not JSON"))?;
    let patch = json!({"metadata": {"resourceVersion": version.to_string()}, "status": status});
    let path = settings.target.resource.subresource(key.namespace(), key.name(), "status");
    let request = Request::patch(path)
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/merge-patch+json")
        .body(Bytes::from(patch.to_string()))
        .map_err(|error| fatal(&error))?;
    Answer::to(&settings.connection, "patch", request).await.map(drop)
}
