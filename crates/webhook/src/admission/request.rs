use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// What is done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It is created.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
    /// Somebody connects to a part of it, such as `exec`.
    Connect,
}

impl Operation {
    /// As rules of configurations have it: `CREATE`.
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
pub struct GroupVersionResource {
    /// The group; empty for the core kinds.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural: `deployments`.
    pub resource: String,
}

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct UserInfo {
    /// Their name.
    pub username: String,
    /// What tells them from others of the same name over time.
    pub uid: String,
    /// Their groups.
    pub groups: Vec<String>,
    /// What else is known of them.
    pub extra: Value,
}

/// What an API server asks a webhook: somebody wants to do something with an object.
///
/// The objects are at hand as [types](Self::object) or [as they were sent](Self::object_json).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionRequest {
    /// Tells this question from all others.
    pub uid: String,
    /// The kind of the object, as the webhook wants to see it.
    #[serde(default)]
    pub kind: GroupVersionKind,
    /// The resource, likewise.
    #[serde(default)]
    pub resource: GroupVersionResource,
    /// The part of the object that is written: `status`, `scale`; empty for the object.
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
    /// The namespace; empty for what is in none.
    #[serde(default)]
    pub namespace: String,
    /// What is done.
    pub operation: Operation,
    /// Who does it.
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
    /// The object as it is going to be; none if it is deleted. The error names the field that the type does not understand.
    pub fn object<T: DeserializeOwned>(&self) -> Result<Option<T>, String> {
        read(self.object_json())
    }

    /// The object as it is; none if it is created.
    pub fn old_object<T: DeserializeOwned>(&self) -> Result<Option<T>, String> {
        read(self.old_object_json())
    }

    /// The object as it is going to be, in JSON.
    pub fn object_json(&self) -> Option<&str> {
        self.object.as_deref().map(RawValue::get).filter(|text| *text != "null")
    }

    /// The object as it is, in JSON.
    pub fn old_object_json(&self) -> Option<&str> {
        self.old_object.as_deref().map(RawValue::get).filter(|text| *text != "null")
    }
}

fn read<T: DeserializeOwned>(json: Option<&str>) -> Result<Option<T>, String> {
    json.map(|json| watchkeeper_informer::decode(json.as_bytes())).transpose()
}
