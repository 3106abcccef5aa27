use serde_json::Value;

/// A change of an object, in one of the forms that Kubernetes knows.
///
/// ```no_run
/// # use k8s_openapi::api::apps::v1::Deployment;
/// # use watchkeeper_client::{Client, Error, Patch};
/// # async fn example(client: Client, key: watchkeeper_core::Key) -> Result<(), Error> {
/// let patch = Patch::Merge(serde_json::json!({"spec": {"replicas": 3}}));
/// client.patch::<Deployment>(&key, patch).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Patch {
    /// A JSON merge patch (RFC 7396): named fields are replaced, `null` removes a field, lists are replaced whole.
    Merge(Value),
    /// Operations, done one after the other, all or none (RFC 6902). A list of objects with `op`, `path`, `value`.
    Json(Value),
    /// As a merge, but lists are merged by the keys that the kind defines. Built-in kinds only.
    Strategic(Value),
}

impl Patch {
    pub(crate) fn content_type(&self) -> &'static str {
        match self {
            Self::Merge(_) => "application/merge-patch+json",
            Self::Json(_) => "application/json-patch+json",
            Self::Strategic(_) => "application/strategic-merge-patch+json",
        }
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        let (Self::Merge(value) | Self::Json(value) | Self::Strategic(value)) = self;
        value.to_string().into_bytes()
    }
}
