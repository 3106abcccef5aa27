//! The few requests that keeping configurations and a Secret takes, past all caches.

use bytes::Bytes;
use http::{Method, Request};
use serde_json::Value;
use watchkeeper_connection::{Connection, RequestError};
use watchkeeper_wire::{Status, Uri};

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// Somebody else was faster: read again.
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    Other(String),
}

/// The API, as seen by one who keeps something there.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) connection: Connection,
    /// Who owns the fields that are applied.
    pub(crate) manager: String,
}

impl Api {
    /// The object at a path, if there is one.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Value>, ApiError> {
        match self.send(Method::GET, Uri::new(path), "", None).await {
            Ok(object) => Ok(Some(object)),
            Err((Some(404), _)) => Ok(None),
            Err((_, why)) => Err(ApiError::Other(why)),
        }
    }

    /// Creates an object; a conflict if there is one.
    pub(crate) async fn create(&self, path: &str, object: &Value) -> Result<(), ApiError> {
        let mut uri = Uri::new(path);
        uri.pair("fieldManager", &self.manager);
        self.done(self.send(Method::POST, uri, "application/json", Some(object)).await)
    }

    /// Replaces an object by one that says which version it is based on.
    pub(crate) async fn replace(&self, path: &str, object: &Value) -> Result<(), ApiError> {
        let mut uri = Uri::new(path);
        uri.pair("fieldManager", &self.manager);
        self.done(self.send(Method::PUT, uri, "application/json", Some(object)).await)
    }

    /// Applies to an object. One that says a version is a conflict if the object has another one.
    pub(crate) async fn apply(&self, path: &str, object: &Value) -> Result<(), ApiError> {
        let mut uri = Uri::new(path);
        uri.pair("force", "true");
        uri.pair("fieldManager", &self.manager);
        self.done(self.send(Method::PATCH, uri, "application/apply-patch+yaml", Some(object)).await)
    }

    /// Merges into an object, null removes. One that says a version is a conflict if the object has another one.
    pub(crate) async fn merge(&self, path: &str, object: &Value) -> Result<(), ApiError> {
        let mut uri = Uri::new(path);
        uri.pair("fieldManager", &self.manager);
        self.done(self.send(Method::PATCH, uri, "application/merge-patch+json", Some(object)).await)
    }

    /// Deletes an object; one that is not there is fine.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), ApiError> {
        match self.send(Method::DELETE, Uri::new(path), "", None).await {
            Ok(_) | Err((Some(404), _)) => Ok(()),
            Err((_, why)) => Err(ApiError::Other(why)),
        }
    }

    fn done(&self, answer: Result<Value, (Option<u16>, String)>) -> Result<(), ApiError> {
        match answer {
            Ok(_) => Ok(()),
            Err((Some(409 | 404), why)) => Err(ApiError::Conflict(why)),
            Err((_, why)) => Err(ApiError::Other(why)),
        }
    }

    async fn send(
        &self,
        method: Method,
        uri: Uri,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value, (Option<u16>, String)> {
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let mut request = Request::builder().method(method.clone()).uri(uri.as_str());
        if !content_type.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, content_type);
        }
        let request = request.body(body).map_err(|error| (None, error.to_string()))?;
        let what =
            |why: &str| format!("{method} {}: {why}", uri.as_str().split('?').next().unwrap_or_default());
        match self.connection.request(request).await {
            Ok(answer) => serde_json::from_slice(&answer)
                .map_err(|_| (None, what("the server answered with something that is no JSON"))),
            Err(RequestError::Refused(Status { code, message, .. })) => Err((code, what(&message))),
            Err(error) => Err((None, what(&error.to_string()))),
        }
    }
}
