//! One pod of a StatefulSet: its name, its labels, its claims.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
};
use watchkeeper_client::Error;

use crate::revisions::REVISION;
use crate::template::pod_of;

/// The number in the name of a pod, if it is the name of a pod of this set.
pub(crate) fn ordinal(set: &StatefulSet, pod: &Pod) -> Option<i32> {
    let (prefix, number) = pod.metadata.name.as_deref()?.rsplit_once('-')?;
    (Some(prefix) == set.metadata.name.as_deref()).then(|| number.parse().ok()).flatten()
}

/// The name of the revision that a pod was made of.
pub(crate) fn revision(pod: &Pod) -> &str {
    let labels = pod.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(REVISION)).map(String::as_str).unwrap_or_default()
}

/// A pod of the set, of this template.
pub(crate) fn pod(
    set: &StatefulSet,
    ordinal: i32,
    template: &PodTemplateSpec,
    revision: &str,
) -> Result<Pod, Error> {
    let mut pod = pod_of(set, template)?;
    let name = format!("{}-{ordinal}", set.metadata.name.as_deref().unwrap_or_default());
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert("statefulset.kubernetes.io/pod-name".into(), name.clone());
    labels.insert("apps.kubernetes.io/pod-index".into(), ordinal.to_string());
    labels.insert(REVISION.into(), revision.into());
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(name.clone());
    spec.subdomain = set.spec.service_name.clone().filter(|service| !service.is_empty());
    let claims = set.spec.volume_claim_templates.iter().flatten();
    let mut volumes: Vec<Volume> = claims.filter_map(|claim| volume(set, ordinal, claim)).collect();
    let others = spec.volumes.take().unwrap_or_default();
    let is_other = |other: &Volume| volumes.iter().all(|volume| volume.name != other.name);
    let others: Vec<_> = others.into_iter().filter(is_other).collect();
    volumes.extend(others);
    spec.volumes = (!volumes.is_empty()).then_some(volumes);
    pod.metadata.name = Some(name);
    Ok(pod)
}

fn volume(set: &StatefulSet, ordinal: i32, claim: &PersistentVolumeClaim) -> Option<Volume> {
    let source = PersistentVolumeClaimVolumeSource {
        claim_name: claim_name(set, ordinal, claim),
        ..PersistentVolumeClaimVolumeSource::default()
    };
    let name = claim.metadata.name.clone()?;
    Some(Volume { name, persistent_volume_claim: Some(source), ..Volume::default() })
}

/// The claims that a pod of the set needs.
pub(crate) fn claims(set: &StatefulSet, ordinal: i32) -> Vec<PersistentVolumeClaim> {
    let templates = set.spec.volume_claim_templates.iter().flatten();
    let made = templates.map(|template| {
        let mut claim = template.clone();
        claim.metadata.name = Some(claim_name(set, ordinal, template));
        claim.metadata.namespace = set.metadata.namespace.clone();
        let labels = set.spec.selector.match_labels.iter().flatten();
        claim
            .metadata
            .labels
            .get_or_insert_default()
            .extend(labels.map(|(key, value)| (key.clone(), value.clone())));
        claim.status = None;
        claim
    });
    made.collect()
}

fn claim_name(set: &StatefulSet, ordinal: i32, claim: &PersistentVolumeClaim) -> String {
    let (claim, set) = (claim.metadata.name.as_deref(), set.metadata.name.as_deref());
    format!("{}-{}-{ordinal}", claim.unwrap_or_default(), set.unwrap_or_default())
}
