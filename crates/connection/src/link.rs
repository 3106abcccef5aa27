//! The way to one cluster.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Full;

use crate::config::Config;
use crate::connector::connect;
use crate::credentials::Credentials;
use crate::pool::{Answer, Pool, Tried};
use crate::proxy::Proxy;
use crate::server::Server;
use crate::tls::Tls;
use crate::{Body, Error, Transport};

/// Carries requests to the server of a cluster, with the credentials of a user.
pub(crate) struct Link(Arc<Inner>);

struct Inner {
    route: Route,
    credentials: Credentials,
    /// Who to act as.
    impersonation: HeaderMap,
}

/// A server, how to get there, and the connections that are open.
pub(crate) struct Route {
    pub(crate) server: Server,
    /// None for a server without TLS.
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) connect_timeout: Duration,
    pub(crate) pool: Arc<Pool>,
}

impl Link {
    pub(crate) fn new(config: Config) -> Result<Self, String> {
        let Config { server, tls, proxy, credentials, impersonation, connect_timeout, .. } = config;
        let tls = if server.is_tls { Some(Arc::new(Tls::new(tls)?)) } else { None };
        let route = Route { server, tls, proxy, connect_timeout, pool: Arc::default() };
        let credentials = Credentials::new(credentials)?;
        Ok(Self(Arc::new(Inner { route, credentials, impersonation })))
    }
}

impl Transport for Link {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, Error>> {
        let link = Arc::clone(&self.0);
        Box::pin(async move { link.send(request).await })
    }
}

impl Inner {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Body>, Error> {
        let proof = self.credentials.get().await.map_err(Error::Credentials)?;
        if let Some(tls) = &self.route.tls {
            tls.show(proof.identity.clone()).map_err(Error::Credentials)?;
        }
        // A request that says itself who to act as has the last word.
        if !request.headers().contains_key("impersonate-user") {
            for (name, value) in &self.impersonation {
                request.headers_mut().append(name, value.clone());
            }
        }
        if let Some(authorization) = proof.authorization.clone() {
            request.headers_mut().insert(AUTHORIZATION, authorization);
        }
        let answer = self.route.send(request).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            self.credentials.refused(&proof);
        }
        Ok(answer)
    }
}

impl Route {
    /// Sends a request over a connection that is open, or opens one.
    pub(crate) async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Body>, Error> {
        let malformed = |error: http::Error| Error::Malformed(error.to_string());
        *request.uri_mut() = self.server.below(request.uri()).map_err(malformed)?;
        *request.version_mut() = http::Version::HTTP_11;
        request.headers_mut().insert(HOST, self.server.host_header.clone());
        let request = request.map(Full::new);
        let (tls, epoch) = match &self.tls {
            Some(tls) => {
                let (config, epoch) = tls.current();
                (Some((&**tls, config)), epoch)
            }
            None => (None, 0),
        };
        let answer: Answer = match self.pool.send(epoch, request).await? {
            Tried::Answered(answer) => answer,
            Tried::NoneFree(request) => {
                let stream = connect(&self.server, tls, self.proxy.as_ref(), self.connect_timeout).await?;
                self.pool.send_over(stream, epoch, request).await?
            }
        };
        Ok(answer.map(|(incoming, lease)| Body::incoming(incoming, lease)))
    }
}
