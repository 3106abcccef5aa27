use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::error::Error;
use crate::kind::{Kind, key_of, kind_of};

/// A reference to an owner: an object is deleted with its last owner.
pub fn owner_reference<O: Kind>(owner: &O) -> Result<OwnerReference, Error> {
    let meta = owner.meta();
    let (api_version, kind) = kind_of(owner);
    let missing = "an owner needs a name and a uid: read it from the API";
    let part = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    match (part(&meta.name), part(&meta.uid)) {
        (Some(name), Some(uid)) => {
            Ok(OwnerReference { api_version, kind, name, uid, ..OwnerReference::default() })
        }
        _ => {
            let object = format!("{kind} {}", key_of(owner));
            Err(Error::Incomplete { object, missing })
        }
    }
}

/// A reference to the controller of an object. When the controller is deleted in the foreground, it waits for the object.
pub fn controller_reference<O: Kind>(owner: &O) -> Result<OwnerReference, Error> {
    Ok(OwnerReference { controller: Some(true), block_owner_deletion: Some(true), ..owner_reference(owner)? })
}

/// The owner that controls an object, if one does.
pub fn controller_of<K: Kind>(object: &K) -> Option<&OwnerReference> {
    controller_in(object.meta())
}

pub(crate) fn controller_in(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}
