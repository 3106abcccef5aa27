use std::sync::Arc;

use serde_json::{Value, json};
use watchkeeper_core::Key;
use watchkeeper_informer::AnyValue;

use crate::client::Client;
use crate::error::Error;
use crate::kind::{Kind, key_of};
use crate::state::KindState;
use crate::write::patch::Patch;
use crate::write::{Outcome, Written};

/// Gives the operations that change a list of finalizers, of an object of a version; `None` if there are none.
type Edit<'a> = dyn Fn(&[String], &str) -> Option<Vec<Value>> + Send + Sync + 'a;

impl Client {
    /// Adds a finalizer, unless the object has it. A deleted object stays until its finalizers are removed.
    ///
    /// Add it before doing anything that has to be undone. An object that is being deleted takes no new finalizers; the
    /// server says so with [`Error::Invalid`] or [`Error::Denied`].
    pub async fn add_finalizer<K: Kind>(&self, object: &K, name: &str) -> Result<Written<K>, Error> {
        self.edit_finalizers(object, |finalizers, version| {
            if finalizers.iter().any(|other| other == name) {
                return None;
            }
            Some(match finalizers {
                // A list that somebody else has begun meanwhile would be replaced; that it is not there cannot be tested.
                [] => vec![
                    json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}),
                    json!({"op": "add", "path": "/metadata/finalizers", "value": [name]}),
                ],
                some => vec![
                    json!({"op": "test", "path": "/metadata/finalizers", "value": some}),
                    json!({"op": "add", "path": "/metadata/finalizers/-", "value": name}),
                ],
            })
        })
        .await
    }

    /// Removes a finalizer, if the object has it. Other finalizers stay, also those that are added meanwhile.
    pub async fn remove_finalizer<K: Kind>(&self, object: &K, name: &str) -> Result<Written<K>, Error> {
        self.edit_finalizers(object, |finalizers, _| {
            let at = finalizers.iter().position(|other| other == name)?;
            let path = format!("/metadata/finalizers/{at}");
            Some(vec![
                json!({"op": "test", "path": path, "value": name}),
                json!({"op": "remove", "path": path}),
            ])
        })
        .await
    }

    async fn edit_finalizers<K: Kind>(
        &self,
        object: &K,
        edit: impl Fn(&[String], &str) -> Option<Vec<Value>> + Send + Sync,
    ) -> Result<Written<K>, Error> {
        let kind = self.kind_state::<K>();
        let (meta, key) = (object.meta(), key_of(object));
        let newer = self.newer_than(&kind, meta, &key).await?;
        let first = newer.unwrap_or_else(|| Arc::new(object.clone()));
        self.edit_finalizers_of(&kind, &key, meta.uid.as_deref(), first, &edit).await.map(Written::of)
    }

    async fn edit_finalizers_of(
        &self,
        kind: &KindState,
        key: &Key,
        uid: Option<&str>,
        first: AnyValue,
        edit: &Edit<'_>,
    ) -> Result<(AnyValue, Outcome), Error> {
        let change = &mut |current: &AnyValue| {
            let meta = kind.info.meta(&**current);
            if meta.uid.as_deref() != uid {
                return Err(Error::NotFound { object: kind.info.describe(key) });
            }
            let finalizers = meta.finalizers.as_deref().unwrap_or_default();
            let version = meta.resource_version.as_deref().unwrap_or_default();
            let Some(mut operations) = edit(finalizers, version) else { return Ok(None) };
            operations.insert(0, json!({"op": "test", "path": "/metadata/uid", "value": uid}));
            Ok(Some(Patch::Json(operations.into())))
        };
        self.insist(kind, key, first, None, change).await
    }
}
