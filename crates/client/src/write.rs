use std::future::IntoFuture;
use std::ops::Deref;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::Method;
use serde_json::Value;
use watchkeeper_core::{Key, Version};

use crate::client::Client;
use crate::error::Error;
use crate::exchange::{Answer, Ask, Failure, decode};
use crate::kind::{Kind, describe, is_namespaced, key_of};
use crate::known::Known;
use crate::patch::Patch;
use crate::place::Uri;

/// How often a change is tried on newer and newer states before the conflict is the caller's.
pub(crate) const ATTEMPTS: usize = 5;

/// What came of a call that writes only if there is something to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The object was not there, now it is.
    Created,
    /// The object has another state now. If its kind is not cached, it may also be the same as before.
    Changed,
    /// Nothing would have changed, or nothing did.
    Unchanged,
}

/// An object as it is now, and whether the call has made it so. Can be used as the object.
#[derive(Debug)]
pub struct Written<K> {
    /// The object. If nothing was sent, as the cache has it.
    pub object: Arc<K>,
    /// What came of it.
    pub outcome: Outcome,
}

impl<K> Written<K> {
    /// Whether anything is different now.
    pub fn is_changed(&self) -> bool {
        self.outcome != Outcome::Unchanged
    }
}

impl<K> Deref for Written<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

impl<K> Clone for Written<K> {
    fn clone(&self) -> Self {
        Self { object: Arc::clone(&self.object), outcome: self.outcome }
    }
}

/// What kind of answer a write gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The object.
    Object,
    /// Something else; whoever sent the write takes note of it.
    Other,
}

/// A write under way. If it is dropped before it is settled, nobody knows what has become of it.
struct Underway<'a, K: Kind> {
    known: &'a Known<K>,
    key: Option<&'a Key>,
    settled: bool,
}

impl<K: Kind> Drop for Underway<'_, K> {
    fn drop(&mut self) {
        if let Some(key) = self.key.filter(|_| !self.settled) {
            self.known.note_doubt(key, None);
        }
    }
}

impl Client {
    /// Sends a write and takes note of what came of it. `key` is what reads have to doubt if that cannot be known.
    pub(crate) async fn send<K: Kind>(
        &self,
        known: &Known<K>,
        key: Option<&Key>,
        mut ask: Ask,
        answers: Answers,
    ) -> Result<Answer, Error> {
        if self.options.dry_run {
            ask.uri.pair("dryRun", "All");
        }
        if ask.method != Method::DELETE {
            ask.uri.pair("fieldManager", &self.options.manager);
        }
        let object = ask.object.clone();
        if self.options.guard.as_ref().is_some_and(|guard| !guard.may_write()) {
            return Err(Error::NotLeading { object });
        }
        let mut underway = Underway { known, key, settled: self.options.dry_run };
        match ask.send(&self.shared.transport, self.shared.user_agent.as_ref()).await {
            Ok(answer) => {
                underway.settled = true;
                if answers == Answers::Object && !self.options.dry_run {
                    known.note_object(&answer.body);
                }
                Ok(answer)
            }
            Err(Failure::Refused(error)) => {
                underway.settled = true;
                Err(error)
            }
            Err(Failure::Unknown(message)) => Err(Error::Lost { object, message }),
        }
    }

    /// Creates an object. It must have a name or `generateName`, and a namespace if its kind lives in namespaces.
    pub async fn create<K: Kind>(&self, object: &K) -> Result<K, Error> {
        let known = self.known::<K>();
        let key = key_of(object);
        let what = describe::<K>(&key);
        if is_namespaced::<K>() && key.namespace().is_none() {
            return Err(Error::Incomplete { object: what, missing: NO_NAMESPACE });
        }
        let ask = Ask {
            method: Method::POST,
            uri: Uri::new(known.place.collection(key.namespace())),
            content_type: "application/json",
            body: encode(object, &what)?,
            object: what.clone(),
        };
        // Without a name there is no key to doubt: nobody can ask for the object before it is known.
        let doubted = (!key.name().is_empty()).then_some(&key);
        let answer = self.send(&known, doubted, ask, Answers::Object).await?;
        decode(&answer.body, &what)
    }

    /// Replaces an object by another state of it. The state must carry the `resourceVersion` it is based on, so that what
    /// others have written since is not undone; [`Update::unconditional`] does without.
    pub fn update<'a, K: Kind>(&'a self, object: &'a K) -> Update<'a, K> {
        Update { client: self, object, unconditional: false, subresource: None }
    }

    /// Replaces the status of an object; what else is different is ignored by the server.
    pub fn update_status<'a, K: Kind>(&'a self, object: &'a K) -> Update<'a, K> {
        Update { client: self, object, unconditional: false, subresource: Some("status") }
    }

    /// Changes an object as a patch says.
    pub async fn patch<K: Kind>(&self, key: &Key, patch: Patch) -> Result<K, Error> {
        self.patch_at(&self.known::<K>(), key, None, &patch).await
    }

    /// Changes the status of an object as a patch says.
    pub async fn patch_status<K: Kind>(&self, key: &Key, patch: Patch) -> Result<K, Error> {
        self.patch_at(&self.known::<K>(), key, Some("status"), &patch).await
    }

    pub(crate) async fn patch_at<K: Kind>(
        &self,
        known: &Known<K>,
        key: &Key,
        subresource: Option<&str>,
        patch: &Patch,
    ) -> Result<K, Error> {
        let what = describe::<K>(key);
        let path =
            subresource.map_or_else(|| known.place.object(key), |name| known.place.subresource(key, name));
        let ask = Ask {
            method: Method::PATCH,
            uri: Uri::new(path),
            content_type: patch.content_type(),
            body: patch.body(),
            object: what.clone(),
        };
        let answer = self.send(known, Some(key), ask, Answers::Object).await?;
        decode(&answer.body, &what)
    }

    async fn replace<K: Kind>(&self, object: &K, subresource: Option<&str>) -> Result<K, Error> {
        let known = self.known::<K>();
        let key = key_of(object);
        let what = describe::<K>(&key);
        let path =
            subresource.map_or_else(|| known.place.object(&key), |name| known.place.subresource(&key, name));
        let ask = Ask {
            method: Method::PUT,
            uri: Uri::new(path),
            content_type: "application/json",
            body: encode(object, &what)?,
            object: what.clone(),
        };
        let answer = self.send(&known, Some(&key), ask, Answers::Object).await?;
        decode(&answer.body, &what)
    }
}

const NO_NAMESPACE: &str = "objects of this kind live in namespaces: set metadata.namespace";
const NO_VERSION: &str =
    "no resourceVersion to base the update on: read the object first, or use unconditional()";

/// An update that is about to be sent. Awaiting it sends it and gives the object as the server has it.
pub struct Update<'a, K: Kind> {
    client: &'a Client,
    object: &'a K,
    unconditional: bool,
    subresource: Option<&'static str>,
}

impl<K: Kind> Update<'_, K> {
    /// Replaces whatever is there, also what others have written meanwhile.
    #[must_use]
    pub fn unconditional(mut self) -> Self {
        self.unconditional = true;
        self
    }

    async fn send(self) -> Result<K, Error> {
        let Self { client, object, unconditional, subresource } = self;
        let key = key_of(object);
        if !unconditional {
            if object.meta().resource_version.as_deref().is_none_or(str::is_empty) {
                return Err(Error::Incomplete { object: describe::<K>(&key), missing: NO_VERSION });
            }
            return client.replace(object, subresource).await;
        }
        // Not every kind may be replaced without a version, so it is the newest one.
        let mut copy = object.clone();
        let mut attempt = 1;
        loop {
            let Some(newest) = client.live().get::<K>(&key).await? else {
                return Err(Error::NotFound { object: describe::<K>(&key) });
            };
            copy.meta_mut().resource_version = newest.meta().resource_version.clone();
            copy.meta_mut().uid = newest.meta().uid.clone();
            match client.replace(&copy, subresource).await {
                Err(Error::Conflict { .. }) if attempt < ATTEMPTS => attempt += 1,
                done => return done,
            }
        }
    }
}

impl<'a, K: Kind> IntoFuture for Update<'a, K> {
    type Output = Result<K, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// The object as JSON.
pub(crate) fn encode<K: Kind>(object: &K, what: &str) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(object).map_err(|error| unencodable(&error, what))
}

pub(crate) fn value_of<K: Kind>(object: &K) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(|error| unencodable(&error, &describe::<K>(&key_of(object))))
}

fn unencodable(error: &serde_json::Error, what: &str) -> Error {
    Error::Decode { object: what.to_owned(), detail: format!("its type does not encode: {error}") }
}

/// The version an object says it has.
pub(crate) fn version_of<K: Kind>(object: &K) -> Version {
    Version::from(object.meta().resource_version.as_deref().unwrap_or_default())
}
