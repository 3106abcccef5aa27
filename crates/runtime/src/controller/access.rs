use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use parking_lot::RwLock;
use watchkeeper_client::{Client, Kind};
use watchkeeper_core::{Key, Source};
use watchkeeper_informer::{AnyValue, Store};

use crate::context::Origin;
use crate::error::{Error, Result};
use crate::events::{Recorder, record_hot_loop};

/// An object as it was read.
pub(crate) struct Read {
    pub(crate) object: AnyValue,
    /// Where it came from, if that is no cluster.
    pub(crate) origin: Option<Arc<Origin>>,
}

/// What a controller has to know of the objects that it works on, whether they are in a cluster or not.
pub(crate) trait Access: Send + Sync {
    /// The newest state that is known.
    fn read<'a>(&'a self, client: &'a Client, key: &'a Key) -> BoxFuture<'a, Result<Option<Read>>>;
    /// Whether its deletion was asked for and waits for finalizers.
    fn is_deleting(&self, object: &AnyValue) -> bool;
    fn has_finalizer(&self, object: &AnyValue, name: &str) -> bool;
    /// Gives the object with the finalizer.
    fn add_finalizer<'a>(
        &'a self,
        client: &'a Client,
        object: AnyValue,
        name: &'a str,
    ) -> BoxFuture<'a, Result<AnyValue>>;
    fn remove_finalizer<'a>(
        &'a self,
        client: &'a Client,
        object: &'a AnyValue,
        name: &'a str,
    ) -> BoxFuture<'a, Result<()>>;
    /// Records that an object keeps its own controller busy.
    fn record_hot_loop(&self, recorder: &Recorder, object: &AnyValue, note: String);
}

/// Objects of a cluster: read from the cache, own writes included.
pub(crate) struct OfKind<K>(PhantomData<fn(K)>);

impl<K> Default for OfKind<K> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<K: Kind> Access for OfKind<K> {
    fn read<'a>(&'a self, client: &'a Client, key: &'a Key) -> BoxFuture<'a, Result<Option<Read>>> {
        Box::pin(async move {
            let found = client.get::<K>(key).await?;
            Ok(found.map(|object| Read { object: object as AnyValue, origin: None }))
        })
    }

    fn is_deleting(&self, object: &AnyValue) -> bool {
        object.downcast_ref::<K>().is_some_and(|object| object.meta().deletion_timestamp.is_some())
    }

    fn has_finalizer(&self, object: &AnyValue, name: &str) -> bool {
        let finalizers = object.downcast_ref::<K>().and_then(|object| object.meta().finalizers.as_ref());
        finalizers.into_iter().flatten().any(|finalizer| finalizer == name)
    }

    fn add_finalizer<'a>(
        &'a self,
        client: &'a Client,
        object: AnyValue,
        name: &'a str,
    ) -> BoxFuture<'a, Result<AnyValue>> {
        Box::pin(async move {
            let object = typed::<K>(object)?;
            Ok(client.add_finalizer(&*object, name).await?.object as AnyValue)
        })
    }

    fn remove_finalizer<'a>(
        &'a self,
        client: &'a Client,
        object: &'a AnyValue,
        name: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let object = typed::<K>(Arc::clone(object))?;
            client.remove_finalizer(&*object, name).await?;
            Ok(())
        })
    }

    fn record_hot_loop(&self, recorder: &Recorder, object: &AnyValue, note: String) {
        if let Some(object) = object.downcast_ref::<K>() {
            record_hot_loop(recorder, object, note);
        }
    }
}

/// A value as the type that a controller was made for.
pub(crate) fn typed<T: Send + Sync + 'static>(object: AnyValue) -> Result<Arc<T>> {
    let expected = std::any::type_name::<T>();
    object.downcast().map_err(|_| Error::message(format!("the object is of another type than {expected}")))
}

/// Objects of a source of their own: read from its store. Nothing waits for finalizers there.
pub(crate) struct OfSource {
    /// Set when the controller starts.
    pub(crate) store: Arc<RwLock<Option<Store>>>,
    /// Where statuses go.
    pub(crate) source: Arc<dyn Source>,
}

impl Access for OfSource {
    fn read<'a>(&'a self, _client: &'a Client, key: &'a Key) -> BoxFuture<'a, Result<Option<Read>>> {
        let found = self.store.read().as_ref().and_then(|store| store.get(key));
        let source = Arc::clone(&self.source);
        Box::pin(async move {
            let Some(found) = found else { return Ok(None) };
            let origin = Origin { source, key: found.key().clone(), version: found.version().clone() };
            Ok(Some(Read { object: found.value()?, origin: Some(Arc::new(origin)) }))
        })
    }

    fn is_deleting(&self, _object: &AnyValue) -> bool {
        false
    }

    fn has_finalizer(&self, _object: &AnyValue, _name: &str) -> bool {
        true
    }

    fn add_finalizer<'a>(
        &'a self,
        _client: &'a Client,
        object: AnyValue,
        _name: &'a str,
    ) -> BoxFuture<'a, Result<AnyValue>> {
        Box::pin(ready(Ok(object)))
    }

    fn remove_finalizer<'a>(
        &'a self,
        _client: &'a Client,
        _object: &'a AnyValue,
        _name: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(ready(Ok(())))
    }

    fn record_hot_loop(&self, _recorder: &Recorder, _object: &AnyValue, _note: String) {}
}
