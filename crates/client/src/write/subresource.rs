use std::marker::PhantomData;

use http::Method;
use serde_json::Value;
use watchkeeper_core::{Key, Version};
use watchkeeper_wire::Uri;

use crate::client::Client;
use crate::error::Error;
use crate::exchange::{Ask, decode};
use crate::kind::Kind;
use crate::state::KindState;
use crate::write::Answers;
use crate::write::patch::Patch;

/// A part of an object that has a path of its own: `scale`, `eviction`, `token`. As JSON, since each has a type of its own.
///
/// A write here changes the object, but the answer does not show how: until the cache has caught up, reads of the object go
/// to the API. For the status there are [`Client::status`] and its likes.
pub struct Subresource<'a, K: Kind> {
    client: &'a Client,
    key: Key,
    name: String,
    kind: PhantomData<fn() -> K>,
}

impl Client {
    /// A part of an object, by its name.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use watchkeeper_client::{Client, Error, Patch};
    /// # use watchkeeper_core::Key;
    /// # async fn example(client: &Client) -> Result<(), Error> {
    /// let scale = client.subresource::<Deployment>(&Key::new(Some("shop"), "web"), "scale");
    /// scale.patch(Patch::Merge(serde_json::json!({"spec": {"replicas": 3}}))).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn subresource<K: Kind>(&self, key: &Key, name: &str) -> Subresource<'_, K> {
        Subresource { client: self, key: key.clone(), name: name.to_owned(), kind: PhantomData }
    }
}

impl<K: Kind> Subresource<'_, K> {
    /// Reads the subresource.
    pub async fn get(&self) -> Result<Value, Error> {
        let kind = self.client.kind_state::<K>();
        let answer = self.client.ask(Ask::get(self.uri(&kind), self.what(&kind))).await?;
        decode(&answer.body, &self.what(&kind))
    }

    /// Patches the subresource.
    pub async fn patch(&self, patch: Patch) -> Result<Value, Error> {
        self.write(Method::PATCH, patch.content_type(), patch.body()).await
    }

    /// Replaces the subresource.
    pub async fn update(&self, value: &Value) -> Result<Value, Error> {
        self.write(Method::PUT, "application/json", value.to_string().into_bytes()).await
    }

    /// Creates the subresource: evicts a pod, issues a token.
    pub async fn create(&self, value: &Value) -> Result<Value, Error> {
        self.write(Method::POST, "application/json", value.to_string().into_bytes()).await
    }

    async fn write(&self, method: Method, content_type: &'static str, body: Vec<u8>) -> Result<Value, Error> {
        let kind = self.client.kind_state::<K>();
        let ask = Ask { method, uri: self.uri(&kind), content_type, body, object: self.what(&kind) };
        let answer = self.client.send(&kind, Some(&self.key), ask, Answers::Other).await?;
        let said: Value = decode(&answer.body, &self.what(&kind))?;
        if !self.client.options.dry_run {
            if said["kind"] == *kind.info.kind {
                kind.note_object(&answer.body);
            } else {
                let version = said["metadata"]["resourceVersion"].as_str().filter(|text| !text.is_empty());
                kind.note_doubt(&self.key, version.map(Version::from));
            }
        }
        Ok(said)
    }

    fn uri(&self, kind: &KindState) -> Uri {
        Uri::new(kind.info.path.subresource(&self.key, &self.name))
    }

    fn what(&self, kind: &KindState) -> String {
        format!("{}/{}", kind.info.describe(&self.key), self.name)
    }
}
