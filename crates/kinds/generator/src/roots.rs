use k8s_openapi::api::{
    admissionregistration::v1 as admission, apps::v1 as apps, authentication::v1 as authentication,
    authorization::v1 as authorization, autoscaling::v1 as autoscaling_v1, autoscaling::v2 as autoscaling_v2,
    batch::v1 as batch, certificates::v1 as certificates, coordination::v1 as coordination, core::v1 as core,
    discovery::v1 as discovery, events::v1 as events,
    flowcontrol::v1 as flowcontrol, networking::v1 as networking, node::v1 as node,
    policy::v1 as policy, rbac::v1 as rbac, resource::v1 as resource, scheduling::v1 as scheduling,
    storage::v1 as storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as registration;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Asks for the schema of each type and, if it is the type of a kind with lists, adds the one of its list.
macro_rules! ask {
    ($generator:ident, $lists:ident; kinds: $($kind:ty),+ $(,)?; others: $($other:ty),+ $(,)?) => {
        let $lists = [$(name_of(&$generator.subschema_for::<$kind>())),+];
        $($generator.subschema_for::<$other>();)+
    };
}

/// The definitions of everything the built-in kinds are made of, by name, references written as in Swagger.
pub(crate) fn definitions() -> BTreeMap<String, Value> {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = "/definitions".into());
    let mut generator = SchemaGenerator::new(settings);
    ask!(generator, lists;
        kinds: core::Namespace, core::ConfigMap, core::Secret, core::Service, core::ServiceAccount, core::Pod,
        core::PodTemplate, core::ReplicationController, core::PersistentVolume, core::PersistentVolumeClaim, core::Node,
        core::Event, core::Endpoints, core::LimitRange, core::ResourceQuota, apps::Deployment, apps::ReplicaSet,
        apps::StatefulSet, apps::DaemonSet, apps::ControllerRevision, batch::Job, batch::CronJob, coordination::Lease,
        events::Event, networking::Ingress, networking::IngressClass, networking::NetworkPolicy, rbac::Role,
        rbac::RoleBinding, rbac::ClusterRole, rbac::ClusterRoleBinding, discovery::EndpointSlice,
        autoscaling_v1::HorizontalPodAutoscaler, autoscaling_v2::HorizontalPodAutoscaler, policy::PodDisruptionBudget,
        scheduling::PriorityClass, storage::StorageClass, admission::ValidatingWebhookConfiguration,
        admission::MutatingWebhookConfiguration, admission::ValidatingAdmissionPolicy,
        admission::ValidatingAdmissionPolicyBinding, admission::MutatingAdmissionPolicy,
        admission::MutatingAdmissionPolicyBinding, certificates::CertificateSigningRequest, networking::IPAddress,
        networking::ServiceCIDR, node::RuntimeClass, resource::DeviceClass, resource::ResourceClaim,
        resource::ResourceClaimTemplate, resource::ResourceSlice, storage::CSIDriver, storage::CSINode,
        storage::CSIStorageCapacity, storage::VolumeAttachment, storage::VolumeAttributesClass,
        extensions::CustomResourceDefinition, registration::APIService, core::ComponentStatus, flowcontrol::FlowSchema,
        flowcontrol::PriorityLevelConfiguration;
        others: authentication::SelfSubjectReview, authentication::TokenReview, authentication::TokenRequest,
        authorization::SelfSubjectAccessReview, authorization::SelfSubjectRulesReview,
        authorization::SubjectAccessReview, authorization::LocalSubjectAccessReview, autoscaling_v1::Scale,
        policy::Eviction, core::Binding, meta::Status, meta::DeleteOptions, meta::APIGroup, meta::APIGroupList,
        meta::APIResourceList, meta::APIVersions, meta::ListMeta,
    );
    let taken = generator.take_definitions(false);
    let mut definitions: BTreeMap<String, Value> = taken.into_iter().collect();
    for name in lists {
        definitions.insert(format!("{name}List"), list_of(&name));
    }
    definitions
}

fn name_of(reference: &schemars::Schema) -> String {
    let reference = reference.get("$ref").and_then(Value::as_str).unwrap_or_default();
    reference.rsplit('/').next().unwrap_or_default().to_owned()
}

fn list_of(name: &str) -> Value {
    let kind = name.rsplit('.').next().unwrap_or_default();
    json!({
        "description": format!("{kind}List is a list of {kind} objects."),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": "The version of the schema of this list."},
            "kind": {"type": "string", "description": "The kind of this list."},
            "metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta", "description": "Metadata of the list."},
            "items": {"type": "array", "items": {"$ref": format!("#/definitions/{name}")}, "description": "The objects."},
        },
    })
}
