//! Who may send requests, and how many.
//!
//! A [`Policy`] is compiled configuration. What it counts and remembers is its [`PolicyState`], which outlives every edit.

mod basic;
mod jwt;
mod openapi;
mod rate;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderValue};
use http::{HeaderMap, HeaderName, StatusCode};
use parking_lot::RwLock;
use ring::digest::{SHA256, digest};
use watchkeeper_core::Key;

pub use basic::{Basic, Password};
pub use jwt::{Jwt, KeySet};
pub use openapi::{OpenApi, Payload};
pub use rate::{Rate, RateBy};

use crate::net::Networks;

/// The header that tells backends whose credential it was.
pub const CONSUMER: HeaderName = HeaderName::from_static("x-consumer");

/// A compiled policy.
#[derive(Debug)]
pub struct Policy {
    /// Which policy.
    pub key: Key,
    /// What it is for.
    pub attachments: Box<[Attachment]>,
    /// Addresses of clients.
    pub addresses: Option<Addresses>,
    /// Keys of clients.
    pub api_keys: Option<ApiKeys>,
    /// Users with passwords.
    pub basic: Option<Basic>,
    /// Tokens of an issuer.
    pub jwt: Option<Jwt>,
    /// How many requests.
    pub rate: Option<Rate>,
    /// What requests may be.
    pub openapi: Option<OpenApi>,
    /// Whether it never could be used. It refuses all requests then.
    pub is_unusable: bool,
    /// What it counts and remembers.
    pub state: Arc<PolicyState>,
}

/// What a policy counts and remembers.
#[derive(Debug, Default)]
pub struct PolicyState {
    pub(crate) buckets: rate::Buckets,
    pub(crate) passwords: basic::Verified,
    /// The keys of an issuer that are behind a URL.
    pub(crate) keys: RwLock<Option<Arc<KeySet>>>,
}

/// What a policy is attached to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Attachment {
    /// A listener.
    Listener(Key),
    /// The routes of a namespace.
    Namespace(Arc<str>),
    /// A route.
    Route(Key),
}

/// Addresses of clients.
#[derive(Debug)]
pub struct Addresses {
    /// Those that may; none for all.
    pub allow: Networks,
    /// Those that may not.
    pub deny: Networks,
}

/// Keys of clients.
pub struct ApiKeys {
    /// The header that has the key.
    pub header: HeaderName,
    /// Whose key it is, by its digest.
    pub keys: HashMap<[u8; 32], Arc<str>>,
}

/// Says how many keys there are, and shows none.
impl std::fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ApiKeys({} in {})", self.keys.len(), self.header)
    }
}

/// A request, as far as policies look at it.
pub struct Client<'a> {
    /// Where it comes from.
    pub address: IpAddr,
    /// Its headers. Credentials that were used up are removed.
    pub headers: &'a mut HeaderMap,
    /// Whose credential it has.
    pub consumer: Option<Arc<str>>,
}

/// Why a request is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 403.
    Forbidden,
    /// 401, with what is expected.
    Unauthorized(HeaderValue),
    /// 429, with when to come again.
    TooMany(Duration),
    /// 500: the policy of this name cannot be used.
    Unusable(Key),
    /// The request is not what it has to be: a code from 400, and why.
    Invalid(StatusCode, String),
}

impl Policy {
    /// Whether a request may be served.
    pub async fn check(&self, client: &mut Client<'_>) -> Result<(), Refusal> {
        if self.is_unusable {
            return Err(Refusal::Unusable(self.key.clone()));
        }
        if let Some(Addresses { allow, deny }) = &self.addresses
            && (deny.contain(client.address) || !allow.is_empty() && !allow.contain(client.address))
        {
            return Err(Refusal::Forbidden);
        }
        if let Some(keys) = &self.api_keys {
            client.consumer = Some(keys.check(client.headers)?);
            client.headers.remove(&keys.header);
        }
        if let Some(basic) = &self.basic {
            client.consumer = Some(basic.check(client.headers, &self.state.passwords).await?);
            client.headers.remove(AUTHORIZATION);
        }
        if let Some(jwt) = &self.jwt {
            let fetched = self.state.keys.read().clone();
            client.consumer = jwt.check(client.headers, fetched.as_deref())?.or(client.consumer.take());
        }
        match &self.rate {
            Some(rate) => rate.check(client, &self.state.buckets),
            None => Ok(()),
        }
    }
}

impl ApiKeys {
    fn check(&self, headers: &HeaderMap) -> Result<Arc<str>, Refusal> {
        let found = headers.get(&self.header).and_then(|given| {
            let given = digest(&SHA256, given.as_bytes());
            // Who knows a digest does not know its key: how long the look takes tells nothing of use.
            <[u8; 32]>::try_from(given.as_ref()).ok().and_then(|given| self.keys.get(&given))
        });
        found.cloned().ok_or_else(|| Refusal::Unauthorized(HeaderValue::from_static("ApiKey")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_by_its_digest() {
        let given = digest(&SHA256, b"secret");
        let keys = HashMap::from([(<[u8; 32]>::try_from(given.as_ref()).unwrap(), Arc::from("jane"))]);
        let keys = ApiKeys { header: HeaderName::from_static("x-api-key"), keys };
        let headers = |value: &'static str| {
            HeaderMap::from_iter([(HeaderName::from_static("x-api-key"), HeaderValue::from_static(value))])
        };
        assert_eq!(keys.check(&headers("secret")), Ok(Arc::from("jane")));
        assert!(keys.check(&headers("secre")).is_err() && keys.check(&HeaderMap::new()).is_err());
        assert!(!format!("{keys:?}").contains("jane"));
    }
}
