use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use watchkeeper_client::{Client, Kind};
use watchkeeper_core::Key;
use watchkeeper_events::{Event, Recorder};
use watchkeeper_informer::{Readable, Store};

use crate::error::Result;
use crate::reference::reference;

/// What a controller has to know of the objects that it works on, whether they are in a cluster or not.
pub(crate) trait Access<T>: Send + Sync {
    /// The newest state that is known.
    fn read<'a>(&'a self, client: &'a Client, key: &'a Key) -> BoxFuture<'a, Result<Option<Arc<T>>>>;
    /// Whether its deletion was asked for and waits for finalizers.
    fn is_deleting(&self, object: &T) -> bool;
    fn has_finalizer(&self, object: &T, name: &str) -> bool;
    /// Gives the object with the finalizer.
    fn add_finalizer<'a>(
        &'a self,
        client: &'a Client,
        object: Arc<T>,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Arc<T>>>;
    fn remove_finalizer<'a>(
        &'a self,
        client: &'a Client,
        object: &'a T,
        name: &'a str,
    ) -> BoxFuture<'a, Result<()>>;
    fn record(&self, recorder: &Recorder, object: &T, event: Event);
}

/// Objects of a cluster: read from the cache, own writes included.
pub(crate) struct OfKind;

impl<K: Kind> Access<K> for OfKind {
    fn read<'a>(&'a self, client: &'a Client, key: &'a Key) -> BoxFuture<'a, Result<Option<Arc<K>>>> {
        Box::pin(async move { Ok(client.get::<K>(key).await?) })
    }

    fn is_deleting(&self, object: &K) -> bool {
        object.meta().deletion_timestamp.is_some()
    }

    fn has_finalizer(&self, object: &K, name: &str) -> bool {
        object.meta().finalizers.iter().flatten().any(|finalizer| finalizer == name)
    }

    fn add_finalizer<'a>(
        &'a self,
        client: &'a Client,
        object: Arc<K>,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Arc<K>>> {
        Box::pin(async move { Ok(client.add_finalizer(&*object, name).await?.object) })
    }

    fn remove_finalizer<'a>(
        &'a self,
        client: &'a Client,
        object: &'a K,
        name: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            client.remove_finalizer(object, name).await?;
            Ok(())
        })
    }

    fn record(&self, recorder: &Recorder, object: &K, event: Event) {
        recorder.event(&reference(object), event);
    }
}

/// Objects of a source of their own: read from its store. Nothing waits for finalizers there.
pub(crate) struct OfSource<T: Readable> {
    /// Set when the controller starts.
    pub(crate) store: Arc<RwLock<Option<Store<T>>>>,
}

impl<T: Readable> Access<T> for OfSource<T> {
    fn read<'a>(&'a self, _client: &'a Client, key: &'a Key) -> BoxFuture<'a, Result<Option<Arc<T>>>> {
        let found = self.store.read().as_ref().and_then(|store| store.get(key));
        Box::pin(async move { Ok(found.map(|object| object.get()).transpose()?) })
    }

    fn is_deleting(&self, _object: &T) -> bool {
        false
    }

    fn has_finalizer(&self, _object: &T, _name: &str) -> bool {
        true
    }

    fn add_finalizer<'a>(
        &'a self,
        _client: &'a Client,
        object: Arc<T>,
        _name: &'a str,
    ) -> BoxFuture<'a, Result<Arc<T>>> {
        Box::pin(async move { Ok(object) })
    }

    fn remove_finalizer<'a>(
        &'a self,
        _client: &'a Client,
        _object: &'a T,
        _name: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { Ok(()) })
    }

    fn record(&self, _recorder: &Recorder, _object: &T, _event: Event) {}
}
