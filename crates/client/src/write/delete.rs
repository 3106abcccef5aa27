use std::future::IntoFuture;
use std::marker::PhantomData;

use futures_util::future::BoxFuture;
use http::Method;
use serde_json::{Value, json};
use watchkeeper_core::{Key, Uid, Version};
use watchkeeper_wire::Uri;

use crate::client::Client;
use crate::error::Error;
use crate::exchange::Ask;
use crate::kind::{Kind, key_of, version_in};
use crate::read::live::Selection;
use crate::state::view::ReadState;
use crate::state::{KindState, is_gone};
use crate::write::Answers;

/// Deletion propagation: the treatment of objects that the deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Propagation {
    /// Owned objects are deleted afterwards.
    Background,
    /// Owned objects are deleted first; until then the object stays, with a finalizer.
    Foreground,
    /// Owned objects stay, without this owner.
    Orphan,
}

/// A delete with its options. Awaiting it sends the request.
///
/// The answer is `true` if the object is gone at once, `false` if it stays until its finalizers (or its grace period) let it
/// go. Something that is not there is [`Error::NotFound`].
pub struct Delete<'a, K: Kind> {
    client: &'a Client,
    doomed: Doomed,
    kind: PhantomData<fn() -> K>,
}

/// What is to be deleted, and how.
pub(crate) struct Doomed {
    pub(crate) key: Key,
    /// Which incarnation, and a version at which it was there.
    pub(crate) uid: Option<(String, Version)>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) grace: Option<u32>,
}

impl Client {
    /// Deletes exactly this incarnation of an object: if it was deleted and created anew meanwhile, the new one stays, and
    /// the answer is [`Error::Conflict`].
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use watchkeeper_client::{Client, Error, Propagation};
    /// # async fn example(client: Client, pod: Pod) -> Result<(), Error> {
    /// client.delete(&pod).propagation(Propagation::Foreground).grace_period(5).await?;
    /// # Ok(()) }
    /// ```
    pub fn delete<K: Kind>(&self, object: &K) -> Delete<'_, K> {
        let uid = object.meta().uid.clone().map(|uid| (uid, version_in(object.meta())));
        let doomed = Doomed { key: key_of(object), uid, propagation: None, grace: None };
        Delete { client: self, doomed, kind: PhantomData }
    }

    /// Deletes the object under a key, whichever incarnation that is.
    pub fn delete_key<K: Kind>(&self, key: &Key) -> Delete<'_, K> {
        let doomed = Doomed { key: key.clone(), uid: None, propagation: None, grace: None };
        Delete { client: self, doomed, kind: PhantomData }
    }

    /// Deletes all objects of a kind, or those that match. Until the cache has caught up, all reads of the kind go to the
    /// API, since the answer does not say what has become of which object.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use watchkeeper_client::{Client, Error};
    /// # async fn example(client: &Client) -> Result<(), Error> {
    /// client.delete_all_of::<ConfigMap>().in_namespace("shop").labels("app=cart").await?;
    /// # Ok(()) }
    /// ```
    pub fn delete_all_of<K: Kind>(&self) -> DeleteAll<'_, K> {
        DeleteAll {
            client: self,
            namespace: None,
            labels: None,
            fields: None,
            propagation: None,
            kind: PhantomData,
        }
    }
}

impl<K: Kind> Delete<'_, K> {
    /// Sets whether the objects that it owns are deleted, and when. Default: what the server does for this kind, mostly
    /// [`Background`](Propagation::Background).
    #[must_use]
    pub fn propagation(mut self, propagation: Propagation) -> Self {
        self.doomed.propagation = Some(propagation);
        self
    }

    /// Sets the grace period in seconds, for kinds that end gracefully.
    #[must_use]
    pub fn grace_period(mut self, seconds: u32) -> Self {
        self.doomed.grace = Some(seconds);
        self
    }
}

impl Doomed {
    /// Deletes it; says whether it is gone at once.
    pub(crate) async fn send(self, client: &Client, kind: &KindState) -> Result<bool, Error> {
        let Self { key, uid, propagation, grace } = self;
        let mut options = options(propagation);
        if let Some((uid, _)) = &uid {
            options["preconditions"] = json!({"uid": uid});
        }
        if let Some(seconds) = grace {
            options["gracePeriodSeconds"] = seconds.into();
        }
        let ask = Ask {
            method: Method::DELETE,
            uri: Uri::new(kind.info.path.object(&key)),
            content_type: "application/json",
            body: options.to_string().into_bytes(),
            object: kind.info.describe(&key),
        };
        let seen = last_seen(kind, &key);
        let answer = client.send(kind, Some(&key), ask, Answers::Other).await?;
        let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let pending = said["kind"] != "Status"
            && !said["metadata"]["deletionTimestamp"].is_null()
            && !is_gone(&answer.body);
        if client.options.dry_run {
            return Ok(!pending);
        }
        if pending {
            kind.note_object(&answer.body);
            return Ok(false);
        }
        let told = said["details"]["uid"].as_str().or_else(|| said["metadata"]["uid"].as_str());
        let gone = told.or(uid.as_ref().map(|(uid, _)| uid.as_str())).map(Uid::from);
        let known_at = match (&uid, &seen, said["metadata"]["resourceVersion"].as_str()) {
            (_, _, Some(version)) if said["kind"] != "Status" => Some(Version::from(version)),
            (Some((_, version)), _, _) if !version.is_empty() => Some(version.clone()),
            (_, Some((seen, version)), _) if gone.as_ref() == Some(seen) => Some(version.clone()),
            _ => None,
        };
        kind.note_gone(&key, gone, known_at);
        Ok(true)
    }
}

/// What the cache, or what was written, shows under a key.
fn last_seen(kind: &KindState, key: &Key) -> Option<(Uid, Version)> {
    match kind.read(key) {
        Ok(ReadState::Found(seen)) => Some((seen.uid()?.clone(), seen.version().clone())),
        _ => None,
    }
}

impl Client {
    /// From now on reads of a kind go to the API until the cache shows what there is now.
    async fn doubt_all(&self, kind: &KindState) {
        if kind.declared.get().is_none() {
            return;
        }
        // A list of what cannot be there is cheap, and says how far the cache has to come.
        let none = Selection { fields: Some("metadata.name=-"), ..Selection::default() };
        let version = match self.pages(kind, &none).await {
            Ok((_, version)) => version,
            // Nothing can be compared with this: reads go to the API until the program is started again.
            Err(_) => Version::from("unknown"),
        };
        kind.doubt_before(version);
    }
}

fn options(propagation: Option<Propagation>) -> Value {
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    if let Some(propagation) = propagation {
        options["propagationPolicy"] = format!("{propagation:?}").into();
    }
    options
}

impl<'a, K: Kind> IntoFuture for Delete<'a, K> {
    type Output = Result<bool, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let kind = self.client.kind_state::<K>();
        Box::pin(async move { self.doomed.send(self.client, &kind).await })
    }
}

/// A delete of many objects, with its filters. Awaiting it sends the request.
pub struct DeleteAll<'a, K: Kind> {
    client: &'a Client,
    namespace: Option<String>,
    labels: Option<String>,
    fields: Option<String>,
    propagation: Option<Propagation>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> DeleteAll<'_, K> {
    /// Limits the delete to a namespace. Most servers require one for namespaced kinds.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Limits the delete to objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Limits the delete to objects with these fields.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// Sets whether the objects that they own are deleted, and when.
    #[must_use]
    pub fn propagation(mut self, propagation: Propagation) -> Self {
        self.propagation = Some(propagation);
        self
    }

    async fn send(self) -> Result<(), Error> {
        let kind = self.client.kind_state::<K>();
        let mut uri = Uri::new(kind.info.path.collection(self.namespace.as_deref()));
        for (name, value) in [("labelSelector", &self.labels), ("fieldSelector", &self.fields)] {
            if let Some(value) = value {
                uri.pair(name, value);
            }
        }
        let ask = Ask {
            method: Method::DELETE,
            uri,
            content_type: "application/json",
            body: options(self.propagation).to_string().into_bytes(),
            object: format!("all of {}", kind.info.kind),
        };
        let sent = self.client.send(&kind, None, ask, Answers::Other).await.map(drop);
        if matches!(sent, Ok(()) | Err(Error::Lost { .. })) && !self.client.options.dry_run {
            self.client.doubt_all(&kind).await;
        }
        sent
    }
}

impl<'a, K: Kind> IntoFuture for DeleteAll<'a, K> {
    type Output = Result<(), Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
