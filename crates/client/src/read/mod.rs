//! Reads: from caches, with what was written laid over them, and from the API.

pub(crate) mod cache;
mod discovery;
pub(crate) mod list;
pub(crate) mod live;
pub(crate) mod lookup;

use std::sync::Arc;

use parking_lot::Mutex;
use watchkeeper_core::{Key, Version};
use watchkeeper_informer::{AnyValue, Informer, Policy};

use crate::client::Client;
use crate::error::Error;
use crate::kind::{Kind, Scope, typed};
use crate::read::cache::Cache;
use crate::read::list::List;
use crate::read::live::Live;
use crate::state::view::ReadState;
use crate::state::{Declared, KindState};

impl Client {
    /// Starts to cache a kind. The same options again give the same informer; other options are an error, since reads
    /// could not tell which of the two is meant.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn declare<K: Kind>(&self, cache: Cache<K>) -> Result<Informer<K>, Error> {
        let kind = self.kind_state::<K>();
        kind.info.check()?;
        let is_limited = kind.info.scope == Scope::Namespaced && cache.namespace_list().is_none();
        let cache = if is_limited { cache.namespaces(self.shared.namespaces.iter().cloned()) } else { cache };
        let identity = cache.identity();
        let selector = cache.selector()?;
        let mut caches = self.shared.caches.lock();
        if let Some(declared) = kind.declared.get() {
            return if declared.identity == identity {
                Ok(declared.informer.typed())
            } else {
                let (kind, declared) = (kind.info.kind.clone(), declared.identity.clone());
                Err(Error::DeclaredDifferently { kind, declared, wanted: identity })
            };
        }
        let informer = cache.start(&kind.info, &self.shared.connection, &self.shared.metrics);
        let declared = Declared {
            identity,
            store: informer.store(),
            informer: informer.clone(),
            projection: cache.projection(&kind.info),
            typed: cache.held() == Policy::Typed,
            partial: cache.is_partial(),
            selector,
            selectors: cache.selectors(),
            namespaces: cache.namespace_list(),
            indexes: Mutex::default(),
        };
        // Nobody else can have set it: the lock on the caches is held.
        let _ = kind.declared.set(declared);
        caches.push(Arc::clone(&kind));
        Ok(informer.typed())
    }

    /// The informer of a declared kind.
    pub fn informer<K: Kind>(&self) -> Result<Informer<K>, Error> {
        Ok(self.kind_state::<K>().declared()?.informer.typed())
    }

    /// Waits until all caches declared so far are complete.
    pub async fn synced(&self) -> Result<(), Error> {
        let caches = self.shared.caches.lock().clone();
        for kind in caches {
            kind.synced().await?;
        }
        Ok(())
    }

    /// The object under a key, from the cache and the client's own writes; `None` if there is none.
    ///
    /// Goes to the API only if a write left a doubt about this very object.
    pub async fn get<K: Kind>(&self, key: &Key) -> Result<Option<Arc<K>>, Error> {
        Ok(self.get_any(&self.kind_state::<K>(), key).await?.map(typed))
    }

    pub(crate) async fn get_any(&self, kind: &KindState, key: &Key) -> Result<Option<AnyValue>, Error> {
        let seen = match kind.read(key)? {
            ReadState::Found(seen) => Some(seen),
            ReadState::Absent => None,
            ReadState::Live => self.resolve(kind, key).await?,
        };
        seen.map(|seen| seen.value(&kind.info)).transpose()
    }

    /// Lists the objects of a kind, from the cache and the client's own writes. Add filters, then await the list.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn example(client: watchkeeper_client::Client) -> Result<(), watchkeeper_client::Error> {
    /// for pod in client.list::<Pod>().in_namespace("default").labels("app=web").await? {
    ///     println!("{:?}", pod.metadata.name);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn list<K: Kind>(&self) -> List<'_, K> {
        List::new(self, false)
    }

    /// Reads from the API instead of the cache.
    pub fn live(&self) -> Live<'_> {
        Live { client: self }
    }

    /// Whether this state of an object was written through this client lately: its own echo, not news. While a write of the object has
    /// no answer yet, every state may be its echo. The memory is bounded; the answer for what it no longer knows is `false`.
    pub fn wrote<K: Kind>(&self, key: &Key, version: &Version) -> bool {
        self.kind_state::<K>().recent.lock().may_be_echo(key, version)
    }

    /// Waits until the cache itself shows everything that was written of the kind through this client so far, so that
    /// informers and indexes have it, too. Writes that the cache's field selector hides are waited for until the watch has
    /// passed them, which on a quiet kind takes until the server's next bookmark.
    pub async fn barrier<K: Kind>(&self) -> Result<(), Error> {
        self.caught_up(&self.kind_state::<K>()).await
    }

    async fn caught_up(&self, kind: &KindState) -> Result<(), Error> {
        let declared = kind.declared()?;
        kind.synced().await?;
        let (notes, floor) = kind.all_notes(declared);
        for (key, _) in &notes {
            // A doubt has no version to wait for; asking the API gives it one.
            if matches!(kind.read(key)?, ReadState::Live) {
                self.resolve(kind, key).await?;
            }
        }
        let keys: Vec<Key> = notes.into_iter().map(|(key, _)| key).collect();
        let notes: Vec<_> =
            kind.all_notes(declared).0.into_iter().filter(|(key, _)| keys.contains(key)).collect();
        let reached = declared.store.until(|_| {
            notes.iter().all(|(key, note)| kind.is_obsolete(declared, key, note))
                && floor.as_ref().is_none_or(|_| kind.all_notes(declared).1.is_none())
        });
        if reached.await {
            Ok(())
        } else {
            Err(Error::NotSynced { kind: kind.info.kind.clone(), reason: None })
        }
    }
}
