//! The life of APIs: which routes are served, to whom, and what responses say of it.

use std::collections::HashMap;
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue, LINK};
use http::{HeaderMap, StatusCode};
use tokio_util::sync::CancellationToken;
use watchkeeper_core::Key;

use crate::ai::given_key;
use crate::kinds::ApiState;

/// A compiled ApiDefinition.
#[derive(Debug)]
pub struct Api {
    /// Which.
    pub key: Key,
    /// The routes that serve it.
    pub routes: Box<[Key]>,
    /// Where it is in its life.
    pub state: ApiState,
    /// What responses say of that.
    pub headers: Box<[(HeaderName, HeaderValue)]>,
    /// Who may use it, by the digest of a key; `None` for everybody.
    pub subscribers: Option<HashMap<[u8; 32], Subscriber>>,
}

/// Who may use an API.
#[derive(Clone, Debug)]
pub struct Subscriber {
    /// The name that backends get.
    pub consumer: Arc<str>,
    /// Cancelled when the subscription is revoked and its streams are to be cut.
    pub revoked: CancellationToken,
}

/// Why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unserved {
    /// The API is not published.
    Draft,
    /// The API was published.
    Retired,
    /// No key of a subscription.
    Unsubscribed,
}

impl Unserved {
    /// What the client is told.
    pub fn told(self) -> (StatusCode, &'static str) {
        match self {
            Self::Draft => (StatusCode::NOT_FOUND, "no route is for this request"),
            Self::Retired => (StatusCode::GONE, "this API is retired"),
            Self::Unsubscribed => (
                StatusCode::UNAUTHORIZED,
                "a key of a subscription is needed, and the subscription may have to be approved",
            ),
        }
    }
}

impl Api {
    /// Whether a request is served, and whose it is.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn check(&self, headers: &HeaderMap, query: Option<&str>) -> Result<Option<Subscriber>, Unserved> {
        match self.state {
            ApiState::Draft => return Err(Unserved::Draft),
            ApiState::Retired => return Err(Unserved::Retired),
            ApiState::Published | ApiState::Deprecated => {}
        }
        let Some(subscribers) = &self.subscribers else { return Ok(None) };
        let given = given_key(headers, query);
        given.and_then(|digest| subscribers.get(&digest).cloned()).map(Some).ok_or(Unserved::Unsubscribed)
    }

    /// The headers of a deprecated or retired API (RFC 9745, RFC 8594).
    pub(crate) fn headers(
        deprecated: Option<i64>,
        sunset: Option<&str>,
        successor: Option<&str>,
    ) -> Box<[(HeaderName, HeaderValue)]> {
        let value = |text: String| HeaderValue::from_str(&text).ok();
        let deprecated = deprecated.and_then(|seconds| {
            Some((HeaderName::from_static("deprecation"), value(format!("@{seconds}"))?))
        });
        let sunset =
            sunset.and_then(|date| Some((HeaderName::from_static("sunset"), value(date.to_owned())?)));
        let link =
            successor.and_then(|url| Some((LINK, value(format!("<{url}>; rel=\"successor-version\""))?)));
        deprecated.into_iter().chain(sunset).chain(link).collect()
    }
}
