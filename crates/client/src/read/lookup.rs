use std::hash::Hash;
use std::sync::Arc;

use watchkeeper_informer::{Index, Untyped};

use crate::client::Client;
use crate::error::Error;
use crate::kind::{Kind, typed};
use crate::read::list::gather;

/// An index of a cache by a value of the user's choice, which shows the client's own writes.
///
/// Made by [`Client::index`]. A handle; cloning it is cheap.
pub struct Lookup<K: Kind, V> {
    client: Client,
    inner: Arc<Inner<K, V>>,
}

struct Inner<K: Kind, V> {
    index: Index<Untyped, V>,
    values: Values<K, V>,
}

/// What an object stands under.
type Values<K, V> = Box<dyn Fn(&K) -> Vec<V> + Send + Sync>;

impl Client {
    /// Indexes a declared kind by whatever a function gives for each object, at any time. A name stands for one index: asked
    /// for again with the same type of values, it gives the index that is there, whatever the function.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use watchkeeper_client::{Client, Error};
    /// # async fn example(client: &Client) -> Result<(), Error> {
    /// let by_node = client.index("node", |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()))?;
    /// let here = by_node.get(&"node-1".to_owned()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn index<K, V, I>(
        &self,
        name: &str,
        values: impl Fn(&K) -> I + Send + Sync + 'static,
    ) -> Result<Lookup<K, V>, Error>
    where
        K: Kind,
        V: Hash + Eq + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
    {
        let kind = self.kind_state::<K>();
        let declared = kind.declared()?;
        let mut indexes = declared.indexes.lock();
        if let Some(any) = indexes.get(name) {
            let inner =
                Arc::clone(any).downcast::<Inner<K, V>>().map_err(|_| Error::DeclaredDifferently {
                    kind: format!("index {name:?} of {}", kind.info.kind),
                    declared: "values of another type".to_owned(),
                    wanted: std::any::type_name::<V>().to_owned(),
                })?;
            return Ok(Lookup { client: self.clone(), inner });
        }
        let values = Arc::new(values);
        let of_stored = Arc::clone(&values);
        let index = declared.store.index(name, move |object| Ok(of_stored(&typed::<K>(object.value()?))));
        let inner = Arc::new(Inner {
            index,
            values: Box::new(move |object: &K| values(object).into_iter().collect::<Vec<V>>()),
        });
        indexes.insert(name.to_owned(), Arc::clone(&inner) as _);
        Ok(Lookup { client: self.clone(), inner })
    }
}

impl<K: Kind, V: Hash + Eq + Clone + Send + Sync + 'static> Lookup<K, V> {
    /// The objects under a value, ordered by key.
    pub async fn get(&self, value: &V) -> Result<Vec<Arc<K>>, Error> {
        let kind = self.client.kind_state::<K>();
        let declared = kind.ready()?;
        let Inner { index, values } = &*self.inner;
        let Some(objects) = gather(&self.client, &kind, declared, || index.get(value)).await? else {
            return self.client.list::<K>().matching(|object| values(object).contains(value)).await;
        };
        let mut found = Vec::with_capacity(objects.len());
        for seen in objects {
            let object = typed::<K>(seen.value(&kind.info)?);
            // What comes from the index stands under the value, but what was written may stand anywhere.
            if values(&object).contains(value) {
                found.push(object);
            }
        }
        Ok(found)
    }
}

impl<K: Kind, V> Clone for Lookup<K, V> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), inner: Arc::clone(&self.inner) }
    }
}
