//! The templates that an owner has had, as ControllerRevisions: what `kubectl rollout history` and `undo` read.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Value, json};
use watchkeeper_client::{Client, Error, Kind, controller_of, controller_reference, key_of};
use watchkeeper_core::Uid;

use crate::fingerprint::fingerprint;

/// The label of a pod that names the revision it was made of.
pub(crate) const REVISION: &str = "controller-revision-hash";
const HASH: &str = "controller.kubernetes.io/hash";

/// The revisions of an owner, oldest first, and that of its template now.
pub(crate) struct Revisions {
    pub(crate) all: Vec<Arc<ControllerRevision>>,
    pub(crate) newest: Arc<ControllerRevision>,
}

impl Revisions {
    /// Reads the revisions of an owner; that of its template is made if it is not there, or becomes the newest again.
    pub(crate) async fn of<O: Kind>(
        owner: &O,
        template: &PodTemplateSpec,
        collisions: Option<i32>,
        client: &Client,
    ) -> Result<Self, Error> {
        let uid = owner.meta().uid.clone().unwrap_or_default();
        let owned = client.list::<ControllerRevision>().owned_by(&Uid::from(uid.as_str())).await?;
        let is_mine =
            |one: &Arc<ControllerRevision>| controller_of(&**one).is_some_and(|owner| owner.uid == uid);
        let mut all: Vec<_> = owned.into_iter().filter(is_mine).collect();
        all.sort_by_key(|one| (number(one), one.metadata.name.clone()));
        let next = all.last().map_or(0, |last| number(last)) + 1;
        let data = patch(template);
        let newest = match all.iter().rposition(|one| one.data.0 == data) {
            Some(at) if at + 1 == all.len() => Arc::clone(&all[at]),
            Some(at) => {
                let again = |revision: &mut ControllerRevision| revision.revision = Some(next);
                let again = client.modify(&key_of(&*all[at]), again).await?.object;
                all.remove(at);
                all.push(Arc::clone(&again));
                again
            }
            None => {
                let made = client.create(&described(owner, template, data, next, collisions)?).await?.object;
                all.push(Arc::clone(&made));
                made
            }
        };
        Ok(Self { all, newest })
    }

    /// The one of this name.
    pub(crate) fn named(&self, name: Option<&str>) -> Option<&Arc<ControllerRevision>> {
        self.all.iter().find(|one| one.metadata.name.as_deref() == name && name.is_some())
    }

    /// Deletes those beyond the limit that nobody needs, oldest first.
    pub(crate) async fn truncate(&self, limit: i32, needed: &[&str], client: &Client) -> Result<(), Error> {
        let unneeded = |one: &&Arc<ControllerRevision>| !needed.contains(&name(one));
        let old: Vec<_> = self.all.iter().filter(unneeded).collect();
        let too_many = old.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        for revision in old.into_iter().take(too_many) {
            match client.delete(&**revision).await {
                Ok(_) | Err(Error::NotFound { .. } | Error::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

pub(crate) fn name(revision: &ControllerRevision) -> &str {
    revision.metadata.name.as_deref().unwrap_or_default()
}

/// What tells it from others in labels of pods.
pub(crate) fn hash(revision: &ControllerRevision) -> &str {
    let labels = revision.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(HASH)).map(String::as_str).unwrap_or_default()
}

/// The template that a revision stands for.
pub(crate) fn template_of(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.0.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

fn number(revision: &ControllerRevision) -> i64 {
    revision.revision.unwrap_or(0)
}

/// What makes an owner have this template, as a strategic merge patch.
fn patch(template: &PodTemplateSpec) -> Value {
    // A template is made of maps with texts as keys, which can always be written.
    let mut template = serde_json::to_value(template).unwrap_or_default();
    template["$patch"] = "replace".into();
    json!({"spec": {"template": template}})
}

fn described<O: Kind>(
    owner: &O,
    template: &PodTemplateSpec,
    data: Value,
    revision: i64,
    collisions: Option<i32>,
) -> Result<ControllerRevision, Error> {
    let meta = owner.meta();
    let hash = fingerprint(template, collisions);
    let prefix = meta.name.as_deref().unwrap_or_default();
    let mut labels =
        template.metadata.as_ref().and_then(|metadata| metadata.labels.clone()).unwrap_or_default();
    labels.insert(HASH.into(), hash.clone());
    Ok(ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", &prefix[..prefix.len().min(223)])),
            namespace: meta.namespace.clone(),
            labels: Some(labels),
            annotations: meta.annotations.clone(),
            owner_references: Some(vec![controller_reference(owner)?]),
            ..ObjectMeta::default()
        },
        data: RawExtension(data),
        revision: Some(revision),
    })
}
