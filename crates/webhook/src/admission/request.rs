use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// The operation that is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object is changed.
    Update,
    /// The object is deleted.
    Delete,
    /// A client connects to a subresource of the object, such as `exec`.
    Connect,
}

impl Operation {
    /// The name in the rules of configurations: `CREATE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A kind with its group and version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GroupVersionKind {
    /// The group; empty for the core kinds.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind: `Deployment`.
    pub kind: String,
}

/// A resource with its group and version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GroupVersionResource {
    /// The group; empty for the core kinds.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural: `deployments`.
    pub resource: String,
}

/// The user of a request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct UserInfo {
    /// The name of the user.
    pub username: String,
    /// The uid of the user, which tells users of the same name apart over time.
    pub uid: String,
    /// The groups of the user.
    pub groups: Vec<String>,
    /// Further attributes of the user.
    pub extra: Value,
}

/// The request of an API server to a webhook: an operation of a user on an object.
///
/// The objects are at hand as [types](Self::object) or [as they were sent](Self::object_json).
///
/// ```
/// use watchkeeper_webhook::{AdmissionRequest, Operation, Verdict};
///
/// fn deletions_are_announced(request: &AdmissionRequest) -> Verdict {
///     let mut verdict = Verdict::allow();
///     if request.operation == Operation::Delete && !request.dry_run {
///         verdict.warn(format!("{} is told of it", request.user.username));
///     }
///     verdict
/// }
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AdmissionRequest {
    /// The uid of this request for admission.
    pub uid: String,
    /// The kind of the object, in the version that the webhook asked for.
    #[serde(default)]
    pub kind: GroupVersionKind,
    /// The resource, likewise.
    #[serde(default)]
    pub resource: GroupVersionResource,
    /// The subresource: `status`, `scale`; empty for the object itself.
    #[serde(default, rename = "subResource", alias = "subresource")]
    pub subresource: String,
    /// The kind that was asked for, which differs if the object was converted for the webhook.
    #[serde(default)]
    pub request_kind: Option<GroupVersionKind>,
    /// The resource that was asked for, likewise.
    #[serde(default)]
    pub request_resource: Option<GroupVersionResource>,
    /// The name; empty if the server is to make one.
    #[serde(default)]
    pub name: String,
    /// The namespace; empty for cluster-scoped objects.
    #[serde(default)]
    pub namespace: String,
    /// The operation.
    pub operation: Operation,
    /// The user.
    #[serde(default, rename = "userInfo")]
    pub user: UserInfo,
    /// Whether nothing is going to be stored. A webhook that has side effects must not have them then.
    #[serde(default, deserialize_with = "or_false")]
    pub dry_run: bool,
    /// The options of the request: `CreateOptions` and the like.
    #[serde(default)]
    pub options: Value,
    #[serde(default)]
    object: Option<Box<RawValue>>,
    #[serde(default)]
    old_object: Option<Box<RawValue>>,
}

/// `dryRun` may be `null`.
fn or_false<'de, D: serde::Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl AdmissionRequest {
    /// The new state of the object; none for a deletion. The error names the field that does not match the type.
    pub fn object<T: DeserializeOwned>(&self) -> Result<Option<T>, String> {
        read(self.object_json())
    }

    /// The present state of the object; none for a creation.
    pub fn old_object<T: DeserializeOwned>(&self) -> Result<Option<T>, String> {
        read(self.old_object_json())
    }

    /// The new state of the object, in JSON.
    pub fn object_json(&self) -> Option<&str> {
        self.object.as_deref().map(RawValue::get).filter(|text| *text != "null")
    }

    /// The present state of the object, in JSON.
    pub fn old_object_json(&self) -> Option<&str> {
        self.old_object.as_deref().map(RawValue::get).filter(|text| *text != "null")
    }
}

fn read<T: DeserializeOwned>(json: Option<&str>) -> Result<Option<T>, String> {
    json.map(|json| watchkeeper_informer::decode(json.as_bytes())).transpose()
}
