use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use watchkeeper_core::Uid;

use crate::error::Error;
use crate::kind::{Kind, describe_object};

/// A reference to an owner: when the owner is deleted, so is what it owns, unless there is another owner.
pub fn owner_reference<O: Kind>(owner: &O) -> Result<OwnerReference, Error> {
    let meta = owner.meta();
    let missing = "an owner needs a name and a uid: read it from the API";
    let part = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    match (part(&meta.name), part(&meta.uid)) {
        (Some(name), Some(uid)) => Ok(OwnerReference {
            api_version: O::api_version(&()).into_owned(),
            kind: O::kind(&()).into_owned(),
            name,
            uid,
            ..OwnerReference::default()
        }),
        _ => Err(Error::Incomplete { object: describe_object(owner), missing }),
    }
}

/// A reference to the one owner that controls an object, and that waits for it when it is deleted in the foreground.
pub fn controller_reference<O: Kind>(owner: &O) -> Result<OwnerReference, Error> {
    Ok(OwnerReference { controller: Some(true), block_owner_deletion: Some(true), ..owner_reference(owner)? })
}

/// The owner that controls an object, if one does.
pub fn controller_of<K: Kind>(object: &K) -> Option<&OwnerReference> {
    object.meta().owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// The uid of an object as the caches know it.
pub(crate) fn uid_of<K: Kind>(object: &K) -> Option<Uid> {
    object.meta().uid.as_deref().map(Uid::from)
}

/// Fails unless an owner, which is in this namespace if in any, is in the namespace of the child or in none.
pub(crate) fn check_namespaces<K: Kind>(
    owner: &str,
    namespace: Option<&str>,
    child: &K,
) -> Result<(), Error> {
    match namespace {
        Some(_) if child.meta().namespace.as_deref() != namespace => {
            Err(Error::CannotOwn { owner: owner.to_owned(), child: describe_object(child) })
        }
        _ => Ok(()),
    }
}
