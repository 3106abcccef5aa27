//! Server-side apply, spared where it would change nothing, and sets of children.

mod child;
pub(crate) mod children;
mod fields;

use std::future::IntoFuture;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::Method;
use serde_json::Value;
use watchkeeper_core::{Key, Uid};
use watchkeeper_informer::AnyValue;
use watchkeeper_wire::Uri;

use crate::apply::fields::is_applied;
use crate::client::Client;
use crate::error::Error;
use crate::exchange::Ask;
use crate::kind::{Kind, KindInfo, Scope, version_in};
use crate::state::KindState;
use crate::state::applied::{Applied, Fingerprinted};
use crate::state::desired::{Part, document};
use crate::state::view::{ReadState, Seen};
use crate::write::{Answers, Outcome, Written};

/// A server-side apply. Awaiting it sends a request, unless the object is as wanted, and returns the outcome.
pub struct Apply<'a, K: Kind> {
    client: &'a Client,
    object: &'a K,
    part: Part,
    force: bool,
}

impl Client {
    /// Applies an object on the server: sets the fields that are given and leaves all others alone.
    ///
    /// Fields that were applied before and are not given any more are removed. Fields that others own are taken over, since
    /// a controller knows what it wants; [`Apply::without_force`] asks first. What the server sets (`status`, versions,
    /// uids) is not sent, so that an object that was read may be changed and applied.
    ///
    /// # When nothing is sent
    ///
    /// If the kind is declared and the same was applied before through this client, nothing is sent as long as what the
    /// cache shows of the applied fields has not changed since. After a restart the client knows of no earlier apply and
    /// sends once, unless the cache [keeps managedFields](crate::Cache::keep_managed_fields), which tell.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn example(client: watchkeeper_client::Client) -> Result<(), watchkeeper_client::Error> {
    /// let mut page = ConfigMap::default();
    /// page.metadata.namespace = Some("default".into());
    /// page.metadata.name = Some("page".into());
    /// page.data = Some([("index.html".into(), "Hello".into())].into());
    /// let applied = client.apply(&page).await?;
    /// println!("changed: {}", applied.is_changed());
    /// # Ok(()) }
    /// ```
    pub fn apply<'a, K: Kind>(&'a self, object: &'a K) -> Apply<'a, K> {
        Apply { client: self, object, part: Part::Main, force: true }
    }

    /// As [`apply`](Self::apply), for the status and nothing else.
    pub fn apply_status<'a, K: Kind>(&'a self, object: &'a K) -> Apply<'a, K> {
        Apply { client: self, object, part: Part::Status, force: true }
    }
}

impl<K: Kind> Apply<'_, K> {
    /// Fails with [`Error::Conflict`] if another field manager owns one of the fields with another value.
    #[must_use]
    pub fn without_force(mut self) -> Self {
        self.force = false;
        self
    }

    async fn send(self) -> Result<Written<K>, Error> {
        let Self { client, object, part, force } = self;
        let kind = client.kind_state_of(object)?;
        let (key, value) = (kind.info.key(object), kind.info.encode(object)?);
        client.apply_any(&kind, &key, value, part, force).await.map(Written::of)
    }
}

impl Client {
    pub(crate) async fn apply_any(
        &self,
        kind: &KindState,
        key: &Key,
        value: Value,
        part: Part,
        force: bool,
    ) -> Result<(AnyValue, Outcome), Error> {
        let what = kind.info.describe(key);
        check_name(kind.info.scope, key, &what)?;
        let document = document(&kind.info, value, part);
        let wanted = Fingerprinted::new(document, kind.applied.lock().hasher());
        let seen = match kind.read(key) {
            Ok(ReadState::Found(seen)) => Some(seen),
            _ => None,
        };
        if let Some(seen) = seen.as_ref().filter(|_| !self.options.dry_run)
            && let Some(object) = self.unchanged(kind, key, part, &wanted, seen)?
        {
            return Ok((object, Outcome::Unchanged));
        }
        let path = match part {
            Part::Main => kind.info.path.object(key),
            Part::Status => kind.info.path.subresource(key, "status"),
        };
        let mut uri = Uri::new(path);
        uri.pair("force", if force { "true" } else { "false" });
        let ask = Ask {
            method: Method::PATCH,
            uri,
            content_type: "application/apply-patch+yaml",
            body: wanted.document.to_string().into_bytes(),
            object: what.clone(),
        };
        let answer = self.send(kind, Some(key), ask, Answers::Object).await?;
        let object = kind.info.decode(&answer.body, &what)?;
        let before = seen.as_ref().map(Seen::version);
        let outcome = match answer.code {
            201 => Outcome::Created,
            _ if before == Some(&version_in(kind.info.meta(&*object))) => Outcome::Unchanged,
            _ => Outcome::Changed,
        };
        if !self.options.dry_run {
            self.remember(kind, key, part, &wanted, &object)?;
        }
        Ok((object, outcome))
    }

    /// The object as it is, if applying this would change nothing.
    fn unchanged(
        &self,
        kind: &KindState,
        key: &Key,
        part: Part,
        wanted: &Fingerprinted,
        seen: &Seen,
    ) -> Result<Option<AnyValue>, Error> {
        let remembered = kind.applied.lock().recall(key, &self.options.manager, part);
        let same =
            |applied: &Applied| applied.document == wanted.fingerprint && applied.uid.as_ref() == seen.uid();
        let object = seen.value(&kind.info)?;
        if remembered.as_ref().is_some_and(|applied| same(applied) && applied.version == *seen.version()) {
            return Ok(Some(object));
        }
        let still = match &remembered {
            Some(applied) => same(applied) && wanted.shown_by(&kind.info.encode(&*object)?) == applied.shown,
            None => self.is_owned_as(&kind.info, part, wanted, &object)?,
        };
        if still {
            self.remember(kind, key, part, wanted, &object)?;
        }
        Ok(still.then_some(object))
    }

    /// Whether the object's `managedFields` say that exactly this was applied.
    fn is_owned_as(
        &self,
        kind: &KindInfo,
        part: Part,
        wanted: &Fingerprinted,
        object: &AnyValue,
    ) -> Result<bool, Error> {
        let subresource = (part == Part::Status).then_some("status");
        let mut entries = kind.meta(&**object).managed_fields.iter().flatten();
        let entry = entries.find(|entry| {
            entry.manager.as_deref() == Some(&*self.options.manager)
                && entry.operation.as_deref() == Some("Apply")
                && entry.subresource.as_deref().filter(|name| !name.is_empty()) == subresource
                && entry.api_version.as_deref() == Some(&*kind.api_version)
        });
        match entry.and_then(|entry| entry.fields_v1.as_ref()) {
            Some(fields) => Ok(is_applied(&fields.0, &wanted.document, &kind.encode(&**object)?)),
            None => Ok(false),
        }
    }

    fn remember(
        &self,
        kind: &KindState,
        key: &Key,
        part: Part,
        wanted: &Fingerprinted,
        object: &AnyValue,
    ) -> Result<(), Error> {
        if kind.declared.get().is_none() {
            return Ok(());
        }
        let meta = kind.info.meta(&**object);
        let applied = Applied {
            manager: Arc::clone(&self.options.manager),
            part,
            document: wanted.fingerprint,
            shown: wanted.shown_by(&kind.info.encode(&**object)?),
            uid: meta.uid.as_deref().map(Uid::from),
            version: version_in(meta),
        };
        let mut memory = kind.applied.lock();
        if memory.remember(key, applied) {
            memory.sweep(|other| other == key || !matches!(kind.read(other), Ok(ReadState::Absent)));
        }
        Ok(())
    }
}

fn check_name(scope: Scope, key: &Key, what: &str) -> Result<(), Error> {
    let missing = if key.name().is_empty() {
        "an applied object needs a metadata.name"
    } else if scope == Scope::Namespaced && key.namespace().is_none() {
        "objects of this kind live in namespaces: set metadata.namespace"
    } else {
        return Ok(());
    };
    Err(Error::Incomplete { object: what.to_owned(), missing })
}
impl<'a, K: Kind> IntoFuture for Apply<'a, K> {
    type Output = Result<Written<K>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
