//! Leases of budgets in LLMBudget objects of a cluster.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};
use watchkeeper_ai::lease::{Lease, Leases};
use watchkeeper_connection::{Connection, RequestError};
use watchkeeper_core::Key;

use super::share::{LeaseStore, Stored};
use crate::kinds::API_VERSION;

/// The objects of a cluster.
pub(crate) struct ClusterStore(pub(crate) Connection);

#[derive(Deserialize)]
struct Read {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: Option<String>,
}

#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default)]
    leases: Vec<Lease>,
}

impl ClusterStore {
    async fn ask(&self, method: Method, path: String, body: Option<&Value>) -> Result<Read, RequestError> {
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap_or_default();
        request.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        let answer = self.0.request(request).await?;
        serde_json::from_slice(&answer)
            .map_err(|error| watchkeeper_connection::Error::Malformed(error.to_string()).into())
    }
}

fn path(object: &Key) -> String {
    format!("/apis/{API_VERSION}/namespaces/{}/llmbudgets", object.namespace().unwrap_or("default"))
}

fn code(error: &RequestError) -> Option<u16> {
    match error {
        RequestError::Refused(status) => status.code,
        _ => None,
    }
}

impl LeaseStore for ClusterStore {
    fn read<'a>(&'a self, object: &'a Key) -> Stored<'a, (Option<String>, Leases)> {
        Box::pin(async move {
            match self.ask(Method::GET, format!("{}/{}", path(object), object.name()), None).await {
                Ok(read) => Ok((read.metadata.resource_version, Leases::from_list(&read.spec.leases))),
                Err(error) if code(&error) == Some(404) => Ok((None, Leases::default())),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    fn write<'a>(
        &'a self,
        object: &'a Key,
        version: Option<&'a str>,
        leases: &'a Leases,
    ) -> Stored<'a, Option<String>> {
        Box::pin(async move {
            let mut metadata = json!({"namespace": object.namespace(), "name": object.name()});
            let (method, path) = match version {
                Some(version) => {
                    metadata["resourceVersion"] = version.into();
                    (Method::PUT, format!("{}/{}", path(object), object.name()))
                }
                None => (Method::POST, path(object)),
            };
            let body = json!({
                "apiVersion": API_VERSION, "kind": "LLMBudget", "metadata": metadata, "spec": {"leases": leases.to_list()},
            });
            match self.ask(method, path, Some(&body)).await {
                Ok(written) => Ok(written.metadata.resource_version),
                // Somebody else has changed it, made it, or removed it.
                Err(error) if code(&error) == Some(409) => Ok(None),
                Err(error) if code(&error) == Some(404) && version.is_some() => Ok(None),
                Err(error) => Err(error.to_string()),
            }
        })
    }
}
