//! Writes: built, sent under the guard, and noted in the state of their kind.

pub(crate) mod condition;
pub(crate) mod delete;
mod difference;
mod finalizer;
mod modify;
pub(crate) mod patch;
pub(crate) mod status;
pub(crate) mod subresource;

use std::any::Any;
use std::future::IntoFuture;
use std::ops::Deref;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::Method;
use serde_json::Value;
use watchkeeper_core::Key;
use watchkeeper_informer::AnyValue;
use watchkeeper_wire::Uri;

use crate::client::Client;
use crate::error::Error;
use crate::exchange::{Answer, Ask, Failure};
use crate::kind::{Kind, Scope, typed, version_in};
use crate::state::KindState;
use crate::state::view::ReadState;
use crate::write::patch::Patch;

/// How often a change is tried on newer and newer states before the conflict is the caller's.
pub(crate) const ATTEMPTS: usize = 5;

/// The effect of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The object was created.
    Created,
    /// The object was changed. If its kind is not cached, the state may also be the same as before.
    Changed,
    /// Nothing would have changed, or nothing did.
    Unchanged,
}

/// An object after a write, and the outcome of the write. Dereferences to the object.
///
/// ```no_run
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use watchkeeper_client::{Client, Error};
/// # async fn example(client: &Client, map: &ConfigMap) -> Result<(), Error> {
/// let created = client.create(map).await?;
/// println!("{:?}", created.metadata.uid);
/// let mut next = created.into_object();
/// next.data.get_or_insert_default().insert("total".into(), "3".into());
/// assert!(client.update(&next).await?.is_changed());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Written<K> {
    /// The object. If nothing was sent, as the cache has it.
    pub object: Arc<K>,
    /// The effect.
    pub outcome: Outcome,
}

impl<K: Kind> Written<K> {
    pub(crate) fn of((object, outcome): (AnyValue, Outcome)) -> Self {
        Self { object: typed(object), outcome }
    }
}

impl<K> Written<K> {
    /// Whether anything is different now.
    pub fn is_changed(&self) -> bool {
        self.outcome != Outcome::Unchanged
    }

    /// The object, to be changed further.
    pub fn into_object(self) -> K
    where
        K: Clone,
    {
        Arc::unwrap_or_clone(self.object)
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
struct Underway<'a> {
    kind: &'a KindState,
    key: Option<&'a Key>,
    settled: bool,
}

impl<'a> Underway<'a> {
    fn begin(kind: &'a KindState, key: Option<&'a Key>) -> Self {
        if let Some(key) = key {
            kind.recent.lock().begin(key);
        }
        Self { kind, key, settled: false }
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.kind.recent.lock().end(key);
        }
        if let Some(key) = self.key.filter(|_| !self.settled) {
            self.kind.note_doubt(key, None);
        }
    }
}

impl Client {
    /// Sends a write and takes note of what came of it. `key` is what reads have to doubt if that cannot be known.
    pub(crate) async fn send(
        &self,
        kind: &KindState,
        key: Option<&Key>,
        mut ask: Ask,
        answers: Answers,
    ) -> Result<Answer, Error> {
        kind.info.check()?;
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
        let mut underway = Underway::begin(kind, key);
        underway.settled = self.options.dry_run;
        match ask.send(self.connection(), self.shared.user_agent.as_ref()).await {
            Ok(answer) => {
                underway.settled = true;
                if answers == Answers::Object && !self.options.dry_run {
                    kind.note_object(&answer.body);
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
    pub async fn create<K: Kind>(&self, object: &K) -> Result<Written<K>, Error> {
        let created = self.create_any(&*self.kind_state_of(object)?, object).await?;
        Ok(Written::of((created, Outcome::Created)))
    }

    async fn create_any(&self, kind: &KindState, object: &(dyn Any + Sync)) -> Result<AnyValue, Error> {
        let key = kind.info.key(object);
        let what = kind.info.describe(&key);
        if kind.info.scope == Scope::Namespaced && key.namespace().is_none() {
            return Err(Error::Incomplete { object: what, missing: NO_NAMESPACE });
        }
        let ask = Ask {
            method: Method::POST,
            uri: Uri::new(kind.info.path.collection(key.namespace())),
            content_type: "application/json",
            body: kind.info.encode(object)?.to_string().into_bytes(),
            object: what.clone(),
        };
        // Without a name there is no key to doubt: nobody can ask for the object before it is known.
        let doubted = (!key.name().is_empty()).then_some(&key);
        let answer = self.send(kind, doubted, ask, Answers::Object).await?;
        kind.info.decode(&answer.body, &what)
    }

    /// Replaces an object by another state of it. The state must carry the `resourceVersion` it is based on, so that what
    /// others have written since is not undone; [`Update::unconditional`] does without.
    pub fn update<'a, K: Kind>(&'a self, object: &'a K) -> Update<'a, K> {
        Update { client: self, object, unconditional: false, subresource: None }
    }

    /// Replaces the status of an object. The server ignores other differences.
    pub fn update_status<'a, K: Kind>(&'a self, object: &'a K) -> Update<'a, K> {
        Update { client: self, object, unconditional: false, subresource: Some("status") }
    }

    /// Patches an object.
    pub async fn patch<K: Kind>(&self, key: &Key, patch: Patch) -> Result<Written<K>, Error> {
        self.patch_any(&self.kind_state::<K>(), key, None, &patch).await.map(Written::of)
    }

    /// Patches the status of an object.
    pub async fn patch_status<K: Kind>(&self, key: &Key, patch: Patch) -> Result<Written<K>, Error> {
        self.patch_any(&self.kind_state::<K>(), key, Some("status"), &patch).await.map(Written::of)
    }

    /// Sends a patch, and compares the answer with what was known before.
    async fn patch_any(
        &self,
        kind: &KindState,
        key: &Key,
        subresource: Option<&str>,
        patch: &Patch,
    ) -> Result<(AnyValue, Outcome), Error> {
        let before = match kind.read(key) {
            Ok(ReadState::Found(seen)) => Some(seen.version().clone()),
            _ => None,
        };
        let object = self.patch_at(kind, key, subresource, patch).await?;
        let same = before.is_some_and(|before| before == version_in(kind.info.meta(&*object)));
        Ok((object, if same { Outcome::Unchanged } else { Outcome::Changed }))
    }

    pub(crate) async fn patch_at(
        &self,
        kind: &KindState,
        key: &Key,
        subresource: Option<&str>,
        patch: &Patch,
    ) -> Result<AnyValue, Error> {
        self.write_at(kind, key, subresource, Method::PATCH, patch.content_type(), patch.body()).await
    }

    async fn write_at(
        &self,
        kind: &KindState,
        key: &Key,
        subresource: Option<&str>,
        method: Method,
        content_type: &'static str,
        body: Vec<u8>,
    ) -> Result<AnyValue, Error> {
        let what = kind.info.describe(key);
        let paths = &kind.info.path;
        let path = subresource.map_or_else(|| paths.object(key), |name| paths.subresource(key, name));
        let ask = Ask { method, uri: Uri::new(path), content_type, body, object: what.clone() };
        let answer = self.send(kind, Some(key), ask, Answers::Object).await?;
        kind.info.decode(&answer.body, &what)
    }

    /// Replaces an object by a state that says which version it is based on.
    async fn replace(
        &self,
        kind: &KindState,
        key: &Key,
        state: &Value,
        subresource: Option<&str>,
    ) -> Result<(AnyValue, Outcome), Error> {
        let body = state.to_string().into_bytes();
        let object = self.write_at(kind, key, subresource, Method::PUT, "application/json", body).await?;
        let version = kind.info.meta(&*object).resource_version.as_deref();
        let same = version.is_some() && version == state["metadata"]["resourceVersion"].as_str();
        Ok((object, if same { Outcome::Unchanged } else { Outcome::Changed }))
    }

    /// Replaces whatever is there. Not every kind may be replaced without a version, so it is the newest one.
    async fn replace_newest(
        &self,
        kind: &KindState,
        key: &Key,
        mut state: Value,
        subresource: Option<&str>,
    ) -> Result<(AnyValue, Outcome), Error> {
        let mut attempt = 1;
        loop {
            let Some(newest) = self.fetch(kind, key).await? else {
                return Err(Error::NotFound { object: kind.info.describe(key) });
            };
            let meta = kind.info.meta(&*newest);
            state["metadata"]["resourceVersion"] = meta.resource_version.clone().into();
            state["metadata"]["uid"] = meta.uid.clone().into();
            match self.replace(kind, key, &state, subresource).await {
                Err(Error::Conflict { .. }) if attempt < ATTEMPTS => attempt += 1,
                done => return done,
            }
        }
    }
}

const NO_NAMESPACE: &str = "objects of this kind live in namespaces: set metadata.namespace";
const NO_VERSION: &str =
    "no resourceVersion to base the update on: read the object first, or use unconditional()";

/// An update with its options. Awaiting it sends the request.
pub struct Update<'a, K: Kind> {
    client: &'a Client,
    object: &'a K,
    unconditional: bool,
    subresource: Option<&'static str>,
}

impl<K: Kind> Update<'_, K> {
    /// Replaces the object regardless of its version: writes of others in the meantime are lost.
    #[must_use]
    pub fn unconditional(mut self) -> Self {
        self.unconditional = true;
        self
    }

    async fn send(self) -> Result<Written<K>, Error> {
        let Self { client, object, unconditional, subresource } = self;
        let kind = client.kind_state_of(object)?;
        let (key, state) = (kind.info.key(object), kind.info.encode(object)?);
        if unconditional {
            return client.replace_newest(&kind, &key, state, subresource).await.map(Written::of);
        }
        if object.meta().resource_version.as_deref().is_none_or(str::is_empty) {
            return Err(Error::Incomplete { object: kind.info.describe(&key), missing: NO_VERSION });
        }
        client.replace(&kind, &key, &state, subresource).await.map(Written::of)
    }
}

impl<'a, K: Kind> IntoFuture for Update<'a, K> {
    type Output = Result<Written<K>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
