use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use watchkeeper_client::{Error, Kind, controller_reference};

/// A pod as the template of its owner describes it, in the owner's namespace and controlled by it. It has no name yet.
pub(crate) fn pod_of<O: Kind>(owner: &O, template: &PodTemplateSpec) -> Result<Pod, Error> {
    let of_template = template.metadata.clone().unwrap_or_default();
    Ok(Pod {
        metadata: ObjectMeta {
            namespace: owner.meta().namespace.clone(),
            labels: of_template.labels,
            annotations: of_template.annotations,
            finalizers: of_template.finalizers,
            owner_references: Some(vec![controller_reference(owner)?]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    })
}

/// The same with a name that the server makes up, which begins with that of the owner.
pub(crate) fn generated_pod_of<O: Kind>(owner: &O, template: &PodTemplateSpec) -> Result<Pod, Error> {
    let mut pod = pod_of(owner, template)?;
    pod.metadata.generate_name = owner.meta().name.as_ref().map(|name| format!("{name}-"));
    Ok(pod)
}
