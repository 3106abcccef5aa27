use std::cmp::Ordering;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use watchkeeper_core::{Key, Order};
use watchkeeper_informer::AnyValue;

use crate::client::Client;
use crate::error::Error;
use crate::kind::{Kind, typed, version_in};
use crate::state::KindState;
use crate::state::view::ReadState;
use crate::write::difference::merge_patch;
use crate::write::patch::Patch;
use crate::write::{ATTEMPTS, Outcome, Written};

impl Client {
    /// Reads an object, changes it, and sends the differences as a patch. No request is sent if there are none.
    ///
    /// The difference is guarded by the version that it is based on. If somebody else was faster, the object is read from
    /// the API and changed again, up to five times; so the function may be called more than once. Fields that the Rust type
    /// does not know are left alone, except inside lists, which are sent whole.
    ///
    /// The status is a resource of its own for most kinds: use [`Client::status`] for it.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use watchkeeper_client::{Client, Error};
    /// # use watchkeeper_core::{Key, Order};
    /// # async fn example(client: &Client) -> Result<(), Error> {
    /// let key = Key::new(Some("shop"), "cart");
    /// let cart = client.modify(&key, |map: &mut ConfigMap| {
    ///     map.data.get_or_insert_default().insert("total".into(), "3".into());
    /// });
    /// if cart.await?.is_changed() {
    ///     println!("the total is 3 now");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn modify<K: Kind>(
        &self,
        key: &Key,
        mut change: impl FnMut(&mut K) + Send,
    ) -> Result<Written<K>, Error> {
        let kind = self.kind_state::<K>();
        let Some(first) = self.newest(&kind, key).await? else {
            return Err(Error::NotFound { object: kind.info.describe(key) });
        };
        let info = &kind.info;
        let send = &mut |current: &AnyValue| {
            let mut changed = K::clone(&typed(Arc::clone(current)));
            change(&mut changed);
            let Some(mut patch) = merge_patch(&info.encode(&**current)?, &info.encode(&changed)?) else {
                return Ok(None);
            };
            patch["metadata"]["resourceVersion"] = json!(info.meta(&**current).resource_version);
            Ok(Some(Patch::Merge(patch)))
        };
        self.insist(&kind, key, first, None, send).await.map(Written::of)
    }

    /// The newest state that is known: the cache with what was written, or where there is none, the API.
    async fn newest(&self, kind: &KindState, key: &Key) -> Result<Option<AnyValue>, Error> {
        if kind.declared.get().is_some_and(|declared| declared.partial) {
            return self.fetch(kind, key).await;
        }
        match kind.read(key) {
            Ok(ReadState::Found(seen)) => seen.value(&kind.info).map(Some),
            Ok(ReadState::Absent) => Ok(None),
            Ok(ReadState::Live)
            | Err(Error::NotDeclared { .. } | Error::NotSynced { .. } | Error::OutsideCache { .. }) => {
                self.fetch(kind, key).await
            }
            Err(error) => Err(error),
        }
    }

    /// What is known now of an incarnation of which this state was read some time ago, unless that state is the newest; `None`
    /// then.
    pub(crate) async fn newer_than(
        &self,
        kind: &KindState,
        meta: &ObjectMeta,
        key: &Key,
    ) -> Result<Option<AnyValue>, Error> {
        if kind.declared.get().is_some_and(|declared| declared.partial) {
            let whole = self.fetch(kind, key).await?;
            return whole.map(Some).ok_or_else(|| Error::NotFound { object: kind.info.describe(key) });
        }
        if let Ok(ReadState::Found(seen)) = kind.read(key)
            && Order::Total.compare(seen.version(), &version_in(meta)).is_some_and(Ordering::is_ge)
            && let Ok(value) = seen.value(&kind.info)
            && kind.info.meta(&*value).uid == meta.uid
        {
            return Ok(Some(value));
        }
        Ok(None)
    }

    /// Sends what `change` makes of an object; if the object turns out to be another by now, makes it of that.
    pub(crate) async fn insist(
        &self,
        kind: &KindState,
        key: &Key,
        first: AnyValue,
        subresource: Option<&str>,
        change: &mut (dyn FnMut(&AnyValue) -> Result<Option<Patch>, Error> + Send),
    ) -> Result<(AnyValue, Outcome), Error> {
        let mut object = first;
        let mut attempt = 1;
        loop {
            let Some(patch) = change(&object)? else { return Ok((object, Outcome::Unchanged)) };
            let may_retry = attempt < ATTEMPTS;
            match self.patch_at(kind, key, subresource, &patch).await {
                Ok(now) => {
                    let version = |object: &AnyValue| version_in(kind.info.meta(&**object));
                    let same = version(&now) == version(&object);
                    return Ok((now, if same { Outcome::Unchanged } else { Outcome::Changed }));
                }
                Err(Error::Conflict { .. }) if may_retry => {}
                // A test in a JSON patch that fails makes the patch invalid.
                Err(Error::Invalid { .. }) if may_retry && matches!(patch, Patch::Json(_)) => {}
                Err(error) => return Err(error),
            }
            attempt += 1;
            match self.fetch(kind, key).await? {
                Some(newer) => object = newer,
                None => return Err(Error::NotFound { object: kind.info.describe(key) }),
            }
        }
    }
}
