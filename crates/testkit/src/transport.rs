use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use watchkeeper_apiserver::authentication::Identity;
use watchkeeper_apiserver::front;
use watchkeeper_connection::{Body, Connection, Error, Transport};

use crate::entrance::Entrance;

/// Carries requests to the server, without a socket.
struct InProcess {
    entrance: Arc<Entrance>,
    identity: Identity,
}

/// A connection whose requests come from this identity.
pub(crate) fn connection(entrance: Arc<Entrance>, identity: Identity) -> Connection {
    Connection::over(InProcess { entrance, identity }, "default")
}

impl Transport for InProcess {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, Error>> {
        let (entrance, identity) = (Arc::clone(&self.entrance), self.identity.clone());
        Box::pin(async move {
            let answer = entrance.send(request.map(front::Body::whole), identity).await;
            answer.map(|answer| answer.map(Body::wrap)).map_err(|broken| Error::Broken(broken.into()))
        })
    }
}
