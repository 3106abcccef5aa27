use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use watchkeeper_client::{Client, Error, Kind, Lookup, controller_of, controller_reference, key_of};
use watchkeeper_core::Uid;

use crate::labels::selects;
use crate::pods;

/// The pods of an owner: those that it controls. Those among them that it does not select any more are let go; those that
/// nobody controls and that it selects are taken.
pub(crate) async fn claim<O: Kind>(
    owner: &O,
    selector: &LabelSelector,
    client: &Client,
) -> Result<Vec<Arc<Pod>>, Error> {
    let uid = owner.meta().uid.clone().unwrap_or_default();
    let owned = client.list::<Pod>().owned_by(&Uid::from(uid.as_str())).await?;
    let is_mine = |pod: &Pod| controller_of(pod).is_some_and(|controller| controller.uid == uid);
    let mut claimed = Vec::with_capacity(owned.len());
    for pod in owned.into_iter().filter(|pod| is_mine(pod)) {
        if selects(selector, pod.metadata.labels.as_ref()) {
            claimed.push(pod);
        } else if !pods::is_terminating(&pod) {
            unless_gone(release(&pod, &uid, client).await)?;
        }
    }
    let namespace = owner.meta().namespace.clone().unwrap_or_default();
    for orphan in index_orphans(client)?.get(&namespace).await? {
        let fits = selects(selector, orphan.metadata.labels.as_ref()) && pods::is_active(&orphan);
        if fits && let Some(adopted) = unless_gone(adopt(&orphan, owner, client).await)? {
            claimed.push(adopted);
        }
    }
    Ok(claimed)
}

/// The pods that nobody controls, by namespace.
fn index_orphans(client: &Client) -> Result<Lookup<Pod, String>, Error> {
    client.index("orphans", |pod: &Pod| {
        let orphan = controller_of(pod).is_none();
        orphan.then(|| pod.metadata.namespace.clone().unwrap_or_default())
    })
}

async fn release(pod: &Pod, uid: &str, client: &Client) -> Result<(), Error> {
    let let_go = |pod: &mut Pod| {
        let owners = pod.metadata.owner_references.take().unwrap_or_default();
        let rest: Vec<_> = owners.into_iter().filter(|owner| owner.uid != uid).collect();
        pod.metadata.owner_references = (!rest.is_empty()).then_some(rest);
    };
    client.modify(&key_of(pod), let_go).await.map(drop)
}

async fn adopt<O: Kind>(pod: &Pod, owner: &O, client: &Client) -> Result<Arc<Pod>, Error> {
    let reference = controller_reference(owner)?;
    let take = |pod: &mut Pod| {
        // Somebody else may have been faster.
        if controller_of(pod).is_none() {
            pod.metadata.owner_references.get_or_insert_default().push(reference.clone());
        }
    };
    Ok(client.modify(&key_of(pod), take).await?.object)
}

fn unless_gone<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
