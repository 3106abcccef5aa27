use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};

use crate::{Body, Error};

/// The subject of a request, in the words of its sender: the kind first, as in `ConfigMap shop/cart`. In the extensions of a
/// request it is for messages only, and goes nowhere.
#[derive(Clone, Debug)]
pub struct Subject(pub String);

/// Carries requests to a server and brings back answers.
///
/// The URI of a request is a path with its query. Calls run concurrently; dropping the future of one cancels the request.
///
/// A transport may stand in front of another: it holds the [`Connection`](crate::Connection) that it stands in front of, and
/// [`Connection::with_transport`](crate::Connection::with_transport) makes a connection of the two.
///
/// ```
/// use bytes::Bytes;
/// use futures_util::future::BoxFuture;
/// use http::{Method, Request, Response};
/// use watchkeeper_connection::{Body, Connection, Error, Transport};
///
/// /// Lets nothing but reads pass.
/// struct ReadOnly(Connection);
///
/// impl Transport for ReadOnly {
///     fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, Error>> {
///         let connection = self.0.clone();
///         Box::pin(async move {
///             match *request.method() {
///                 Method::GET => connection.send(request).await,
///                 _ => Err(Error::stopped("only reads are allowed")),
///             }
///         })
///     }
/// }
///
/// fn read_only(connection: &Connection) -> Connection {
///     connection.with_transport(ReadOnly(connection.clone()))
/// }
/// ```
pub trait Transport: Send + Sync + 'static {
    /// Sends one request, once, and waits for the head of its answer.
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, Error>>;
}
