use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::{ClientCertificate, Identity};

/// The credentials of a request: a token and a certificate. Neither part appears in its `Debug` output.
pub struct Presented<'a> {
    /// The token of an `Authorization: Bearer` header, or among the subprotocols of a WebSocket.
    pub token: Option<&'a [u8]>,
    /// The certificate of the connection. It was issued by our authority, and the client has its key.
    pub certificate: Option<&'a ClientCertificate>,
}

/// One way to find out who sends a request.
///
/// Authenticators are asked in order; the first that knows the client decides. A client that shows a token which none
/// of them knows is turned away, one that shows nothing is anonymous.
pub trait Authenticator: Send + Sync + 'static {
    /// Who this is: `None` if this authenticator does not know the client.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if that cannot be told at the moment. The client is asked to come again, and no other authenticator is asked.
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> Authentication<'a>;
}

/// The future that an [`Authenticator`] returns.
pub type Authentication<'a> = BoxFuture<'a, Result<Option<Identity>, Unavailable>>;

/// The error of an [`Authenticator`] that cannot read what it has to look up. The text has the reason, for the log of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable(pub String);

/// A shared authenticator is an authenticator.
impl<A: Authenticator> Authenticator for Arc<A> {
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> Authentication<'a> {
        (**self).authenticate(presented)
    }
}

/// Why it is not known who a client is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unidentified {
    /// The client showed a token that nobody knows, or a certificate that has expired.
    Unauthorized,
    /// Whether the token is good cannot be told at the moment.
    Unavailable(Unavailable),
}

impl From<Unavailable> for Unidentified {
    fn from(why: Unavailable) -> Self {
        Self::Unavailable(why)
    }
}

/// Who this is. A certificate that has expired is not presented, but is no reason to take the client for anonymous, either.
pub(super) async fn identify(
    authenticators: &[Box<dyn Authenticator>],
    presented: Presented<'_>,
    is_expired: bool,
) -> Result<Identity, Unidentified> {
    for authenticator in authenticators {
        if let Some(identity) = authenticator.authenticate(&presented).await? {
            return Ok(identity.authenticated());
        }
    }
    let is_refused = presented.token.is_some() || is_expired;
    if is_refused { Err(Unidentified::Unauthorized) } else { Ok(Identity::anonymous()) }
}

/// The bearer token among these headers. Other schemes, and a `Bearer` with nothing behind it, count as no token at
/// all, as in kube-apiserver.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes().trim_ascii();
    let mut words = value.split(|byte| *byte == b' ');
    let scheme = words.next()?;
    let token = words.next()?;
    (scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty()).then_some(token)
}

impl fmt::Debug for Presented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presented")
            .field("token", &self.token.is_some())
            .field("certificate", &self.certificate.is_some())
            .finish()
    }
}
