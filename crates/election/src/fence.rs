use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use watchkeeper_connection::{Body, Connection, Error, Transport};

use crate::Leadership;

/// A write was not sent, because the lease is not held any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not sent: the lease is not held any more")]
pub struct NotLeading;

/// Lets writes through only while a lease is held.
struct Fence {
    leadership: Leadership,
    connection: Connection,
}

impl Leadership {
    /// A connection that sends nothing but reads once the lease is not held any more: writes fail with [`NotLeading`], which
    /// is the source of the error, and do not leave the process.
    ///
    /// ```no_run
    /// # use watchkeeper_connection::Connection;
    /// # use watchkeeper_election::Leadership;
    /// # fn example(leadership: Leadership, connection: Connection) {
    /// let fenced = leadership.fence(connection);
    /// // Give this connection, and no other, to everything that writes as the leader.
    /// # }
    /// ```
    pub fn fence(&self, connection: impl Into<Connection>) -> Connection {
        let connection = connection.into();
        connection.with_transport(Fence { leadership: self.clone(), connection: connection.clone() })
    }

    /// For writes that go another way: fails if the lease is not held.
    ///
    /// ```
    /// # use watchkeeper_election::{Leadership, NotLeading};
    /// fn charge(leadership: &Leadership) -> Result<(), NotLeading> {
    ///     leadership.check()?; // Right before it leaves, not when it was decided.
    ///     // Send it.
    ///     Ok(())
    /// }
    /// ```
    pub fn check(&self) -> Result<(), NotLeading> {
        if self.is_held() { Ok(()) } else { Err(NotLeading) }
    }
}

impl Transport for Fence {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, Error>> {
        let (leadership, connection) = (self.leadership.clone(), self.connection.clone());
        Box::pin(async move {
            // When the request is about to leave, not when it was made.
            if !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
                leadership.check().map_err(Error::stopped)?;
            }
            connection.send(request).await
        })
    }
}
