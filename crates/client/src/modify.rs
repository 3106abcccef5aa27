use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::json;
use watchkeeper_core::{Key, Order};

use crate::client::Client;
use crate::difference::merge_patch;
use crate::error::Error;
use crate::kind::{Kind, describe, key_of};
use crate::known::Known;
use crate::patch::Patch;
use crate::view::Look;
use crate::write::{ATTEMPTS, Outcome, Written, value_of, version_of};

impl Client {
    /// Reads an object, changes it, and sends what is different: nothing, if nothing is.
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
        let known = self.known::<K>();
        let Some(first) = self.newest(&known, key).await? else {
            return Err(Error::NotFound { object: describe::<K>(key) });
        };
        self.insist(&known, key, first, None, |object| {
            let mut changed = object.clone();
            change(&mut changed);
            let Some(mut patch) = merge_patch(&value_of(object)?, &value_of(&changed)?) else {
                return Ok(None);
            };
            patch["metadata"]["resourceVersion"] = json!(object.meta().resource_version);
            Ok(Some(Patch::Merge(patch)))
        })
        .await
    }

    /// The newest state that is known: the cache with what was written, or where there is none, the API.
    pub(crate) async fn newest<K: Kind>(&self, known: &Known<K>, key: &Key) -> Result<Option<Arc<K>>, Error> {
        if known.declared.get().is_some_and(|declared| declared.partial) {
            return self.fetch(known, key).await;
        }
        match known.look(key) {
            Ok(Look::Found(sight)) => sight.value().map(Some),
            Ok(Look::Absent) => Ok(None),
            Ok(Look::Live)
            | Err(Error::NotDeclared { .. } | Error::NotSynced { .. } | Error::OutsideCache { .. }) => {
                self.fetch(known, key).await
            }
            Err(error) => Err(error),
        }
    }

    /// The newer of an object that was read some time ago and what is known of the same incarnation now.
    pub(crate) async fn newer_of<K: Kind>(&self, known: &Known<K>, object: &K) -> Result<Arc<K>, Error> {
        let key = key_of(object);
        if known.declared.get().is_some_and(|declared| declared.partial) {
            let whole = self.fetch(known, &key).await?;
            return whole.ok_or_else(|| Error::NotFound { object: describe::<K>(&key) });
        }
        if let Ok(Look::Found(sight)) = known.look(&key)
            && Order::Total.compare(sight.version(), &version_of(object)).is_some_and(Ordering::is_ge)
            && let Ok(value) = sight.value()
            && value.meta().uid == object.meta().uid
        {
            return Ok(value);
        }
        Ok(Arc::new(object.clone()))
    }

    /// Sends what `change` makes of an object; if the object turns out to be another by now, makes it of that.
    pub(crate) async fn insist<K: Kind>(
        &self,
        known: &Known<K>,
        key: &Key,
        first: Arc<K>,
        subresource: Option<&str>,
        mut change: impl FnMut(&K) -> Result<Option<Patch>, Error> + Send,
    ) -> Result<Written<K>, Error> {
        let mut object = first;
        let mut attempt = 1;
        loop {
            let Some(patch) = change(&object)? else {
                return Ok(Written { object, outcome: Outcome::Unchanged });
            };
            let may_retry = attempt < ATTEMPTS;
            match self.patch_at(known, key, subresource, &patch).await {
                Ok(now) => {
                    let same = version_of(&now) == version_of(&*object);
                    let outcome = if same { Outcome::Unchanged } else { Outcome::Changed };
                    return Ok(Written { object: Arc::new(now), outcome });
                }
                Err(Error::Conflict { .. }) if may_retry => {}
                // A test in a JSON patch that fails makes the patch invalid.
                Err(Error::Invalid { .. }) if may_retry && matches!(patch, Patch::Json(_)) => {}
                Err(error) => return Err(error),
            }
            attempt += 1;
            match self.fetch(known, key).await? {
                Some(newer) => object = newer,
                None => return Err(Error::NotFound { object: describe::<K>(key) }),
            }
        }
    }
}
