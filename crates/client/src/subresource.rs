use std::marker::PhantomData;

use http::Method;
use serde_json::Value;
use watchkeeper_core::{Key, Version};
use watchkeeper_wire::Uri;

use crate::client::Client;
use crate::error::Error;
use crate::exchange::{Ask, decode};
use crate::kind::Kind;
use crate::known::Known;
use crate::patch::Patch;
use crate::write::Answers;

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
    /// What it is now.
    pub async fn get(&self) -> Result<Value, Error> {
        let known = self.client.known::<K>();
        let answer = self.client.ask(Ask::get(self.uri(&known), self.what(&known))).await?;
        decode(&answer.body, &self.what(&known))
    }

    /// Changes it as a patch says.
    pub async fn patch(&self, patch: Patch) -> Result<Value, Error> {
        self.write(Method::PATCH, patch.content_type(), patch.body()).await
    }

    /// Replaces it.
    pub async fn update(&self, value: &Value) -> Result<Value, Error> {
        self.write(Method::PUT, "application/json", value.to_string().into_bytes()).await
    }

    /// Creates it: evicts a pod, issues a token.
    pub async fn create(&self, value: &Value) -> Result<Value, Error> {
        self.write(Method::POST, "application/json", value.to_string().into_bytes()).await
    }

    async fn write(&self, method: Method, content_type: &'static str, body: Vec<u8>) -> Result<Value, Error> {
        let known = self.client.known::<K>();
        let ask = Ask { method, uri: self.uri(&known), content_type, body, object: self.what(&known) };
        let answer = self.client.send(&known, Some(&self.key), ask, Answers::Other).await?;
        let said: Value = decode(&answer.body, &self.what(&known))?;
        if !self.client.options.dry_run {
            if said["kind"] == *known.kind.kind {
                known.note_object(&answer.body);
            } else {
                let version = said["metadata"]["resourceVersion"].as_str().filter(|text| !text.is_empty());
                known.note_doubt(&self.key, version.map(Version::from));
            }
        }
        Ok(said)
    }

    fn uri(&self, known: &Known) -> Uri {
        Uri::new(known.kind.path.subresource(&self.key, &self.name))
    }

    fn what(&self, known: &Known) -> String {
        format!("{}/{}", known.kind.describe(&self.key), self.name)
    }
}
