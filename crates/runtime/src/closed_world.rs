//! Requests that a program has not declared, refused before they are sent.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, ready};
use http::{Request, Response, StatusCode};
use serde_json::json;
use watchkeeper_client::Client;
use watchkeeper_connection::{Body, Connection, Error, Subject, Transport};
use watchkeeper_description::{Requested, Rights};
use watchkeeper_wire::reason;

/// The same client, which sends only what was declared.
pub(crate) fn declared_only(client: &Client, rights: &Arc<Rights>) -> Client {
    if !rights.complete() {
        return client.clone();
    }
    let connection = client.connection();
    let closed = ClosedWorld { connection: connection.clone(), rights: Arc::clone(rights) };
    client.over(connection.with_transport(closed))
}

struct ClosedWorld {
    connection: Connection,
    rights: Arc<Rights>,
}

impl Transport for ClosedWorld {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, Error>> {
        if let Some(refused) = self.refused(&request) {
            return Box::pin(ready(Ok(refused)));
        }
        let connection = self.connection.clone();
        Box::pin(async move { connection.send(request).await })
    }
}

impl ClosedWorld {
    /// Refuses what was not declared in the way in which the server refuses what is not allowed.
    fn refused(&self, request: &Request<Bytes>) -> Option<Response<Body>> {
        let target = request.uri().path_and_query().map_or("", |target| target.as_str());
        let requested = Requested::read(request.method().as_str(), target);
        let undeclared = self.rights.check(&requested).err()?;
        let kind = request.extensions().get::<Subject>().and_then(|Subject(text)| text.split(' ').next());
        let undeclared = match kind {
            Some(kind) => undeclared.of_kind(kind),
            None => undeclared,
        };
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "reason": reason::UNDECLARED, "code": 403, "message": undeclared.to_string(),
        });
        let mut response = Response::new(Body::from(Bytes::from(status.to_string())));
        *response.status_mut() = StatusCode::FORBIDDEN;
        Some(response)
    }
}
