//! What should be there for a WebApp. Pure: the same WebApp gives the same objects, byte by byte.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use watchkeeper::prelude::*;

use crate::v1beta1::WebApp;

/// The label that pods are known by as ours, with [`MANAGER`] as its value.
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The label with the name of the WebApp.
pub(crate) const INSTANCE: &str = "app.kubernetes.io/instance";
/// Whose objects they are.
pub(crate) const MANAGER: &str = "watchkeeper-webapp";
/// The name of the one container and the one port.
const WEB: &str = "web";
/// What the Service listens on, so that its URL needs no port.
const HTTP: i32 = 80;

/// The labels that tell the pods of one WebApp from all others. A Deployment's selector cannot be changed, so these never may.
pub(crate) fn labels(app: &WebApp) -> BTreeMap<String, String> {
    [(INSTANCE, app.name_any()), (MANAGED_BY, MANAGER.into())]
        .map(|(label, value)| (label.into(), value))
        .into()
}

/// The Deployment.
pub(crate) fn deployment(app: &WebApp) -> Deployment {
    let mut deployment = Deployment {
        spec: DeploymentSpec {
            replicas: Some(app.spec.replicas),
            selector: LabelSelector { match_labels: Some(labels(app)), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels(app)), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers: vec![container(app)], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        },
        ..named(app)
    };
    deployment.metadata.labels = Some(labels(app));
    deployment
}

fn container(app: &WebApp) -> Container {
    let variable = |(name, value): (&String, &String)| EnvVar {
        name: name.clone(),
        value: Some(value.clone()),
        ..EnvVar::default()
    };
    Container {
        name: WEB.into(),
        image: Some(app.spec.image.clone()),
        ports: Some(vec![ContainerPort {
            name: Some(WEB.into()),
            container_port: app.spec.http.port,
            protocol: Some("TCP".into()),
            ..ContainerPort::default()
        }]),
        env: Some(app.spec.environment.iter().map(variable).collect()).filter(|env: &Vec<_>| !env.is_empty()),
        ..Container::default()
    }
}

/// Takes out of a Deployment what somebody added to what runs. An apply puts back what was changed; it leaves alone what
/// others added beside it, and a variable or a container more is not what was declared.
pub(crate) fn tidy_deployment(deployment: &mut Deployment, app: &WebApp) {
    let Some(pod) = &mut deployment.spec.template.spec else { return };
    let wanted = container(app);
    pod.init_containers = None;
    pod.containers.retain(|container| container.name == WEB);
    if pod.containers.is_empty() {
        pod.containers.push(wanted.clone());
    }
    for container in &mut pod.containers {
        container.command = None;
        container.args = None;
        container.env_from = None;
        container.env.clone_from(&wanted.env);
        container.ports.clone_from(&wanted.ports);
    }
}

/// The Service.
pub(crate) fn service(app: &WebApp) -> Service {
    let mut service = Service {
        spec: Some(ServiceSpec {
            selector: Some(labels(app)),
            ports: Some(vec![port()]),
            type_: Some("ClusterIP".into()),
            ..ServiceSpec::default()
        }),
        ..named(app)
    };
    service.metadata.labels = Some(labels(app));
    service
}

fn port() -> ServicePort {
    ServicePort {
        name: Some(WEB.into()),
        port: HTTP,
        protocol: Some("TCP".into()),
        target_port: Some(IntOrString::String(WEB.into())),
        ..ServicePort::default()
    }
}

/// The same for a Service: what is reached through it is the pods of this WebApp, through one port.
pub(crate) fn tidy_service(service: &mut Service, app: &WebApp) {
    let Some(spec) = &mut service.spec else { return };
    spec.selector = Some(labels(app));
    let is_ours = |port: &ServicePort| port.port == HTTP && port.protocol.as_deref() == Some("TCP");
    if !spec.ports.as_deref().is_some_and(|ports| matches!(ports, [port] if is_ours(port))) {
        spec.ports = Some(vec![port()]);
    }
}

/// Where it is served within the cluster.
pub(crate) fn url(app: &WebApp) -> String {
    format!("http://{}.{}.svc", app.name_any(), app.namespace().unwrap_or_default())
}

/// The selector of its pods, as autoscalers read it from the scale.
pub(crate) fn selector(app: &WebApp) -> String {
    labels(app).iter().map(|(label, value)| format!("{label}={value}")).collect::<Vec<_>>().join(",")
}
