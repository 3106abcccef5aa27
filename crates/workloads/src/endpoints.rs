//! EndpointSlices and Endpoints: the addresses of the pods behind a Service.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort as Port, EndpointSubset, Endpoints, ObjectReference, Pod, Service,
    ServicePort,
};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use watchkeeper_client::{Client, Error as Failure, Kind, controller_reference, key_of};
use watchkeeper_runtime::{Action, Context, Controller, Predicate, Result, Watch};

use crate::{labels, pods};

/// One run for all Services of a namespace: a pod does not say which of them select it.
pub(crate) fn controller() -> Controller {
    let of_pod = Watch::of(|pod: &Pod| pod.metadata.namespace.clone()).filter(Predicate::when(is_news));
    Controller::keyed::<String>("endpoints")
        .watch(of_pod)
        .watch(Watch::of(|service: &Service| service.metadata.namespace.clone()))
        .watch(Watch::of(|slice: &EndpointSlice| slice.metadata.namespace.clone()))
        .watch(Watch::of(|endpoints: &Endpoints| endpoints.metadata.namespace.clone()))
        .hot_loop_limit(u32::MAX)
        .reconcile(|namespace, cx| async move { reconcile(&namespace, &cx).await })
}

/// Whether something changed that can be seen in an endpoint.
fn is_news(old: Option<&Pod>, new: Option<&Pod>) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return true };
    let seen = |pod: &Pod| {
        (
            address(pod).map(str::to_owned),
            pods::is_ready(pod),
            pods::is_terminating(pod),
            pods::is_finished(pod),
        )
    };
    seen(old) != seen(new) || old.metadata.labels != new.metadata.labels
}

async fn reconcile(namespace: &str, cx: &Context) -> Result<Action> {
    let client = cx.client();
    let services = client.list::<Service>().in_namespace(namespace).await?;
    if services.is_empty() {
        return Ok(Action::done());
    }
    let pods = client.list::<Pod>().in_namespace(namespace).await?;
    for service in services {
        let Some(spec) = &service.spec else { continue };
        let Some(selector) = spec.selector.as_ref().filter(|selector| !selector.is_empty()) else { continue };
        if service.metadata.deletion_timestamp.is_some() || spec.type_.as_deref() == Some("ExternalName") {
            continue;
        }
        let selected = |pod: &&Arc<Pod>| {
            labels::contains(pod.metadata.labels.as_ref(), Some(selector))
                && address(pod).is_some()
                && !pods::is_finished(pod)
        };
        let backends: Vec<&Pod> = pods.iter().filter(selected).map(|pod| &**pod).collect();
        write(client, slice(&service, &backends)?, |known, wanted| {
            (known.endpoints, known.ports) = (wanted.endpoints, wanted.ports);
        })
        .await?;
        write(client, endpoints(&service, &backends)?, |known, wanted| known.subsets = wanted.subsets)
            .await?;
    }
    Ok(Action::done())
}

/// Creates an object, or changes what is different in it.
async fn write<K: Kind>(client: &Client, wanted: K, change: fn(&mut K, K)) -> Result<(), Failure> {
    let key = key_of(&wanted);
    let written = match client.get::<K>(&key).await? {
        None => client.create(&wanted).await.map(drop),
        Some(_) => client.modify(&key, |known: &mut K| change(known, wanted.clone())).await.map(drop),
    };
    match written {
        // Somebody was faster or it is just gone: its next change tells.
        Err(Failure::AlreadyExists { .. } | Failure::NotFound { .. }) => Ok(()),
        written => written,
    }
}

fn address(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref()
}

fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".into()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// The number of a port in a pod. Of a port with a name, that of the first pod that has one of this name.
fn target(port: &ServicePort, backends: &[&Pod]) -> Option<i32> {
    match &port.target_port {
        None => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => backends.iter().find_map(|pod| {
            let mut ports = pod.spec.as_ref()?.containers.iter().flat_map(|one| one.ports.iter().flatten());
            ports.find(|port| port.name.as_ref() == Some(name)).map(|port| port.container_port)
        }),
    }
}

fn ports<'a>(service: &'a Service, backends: &'a [&Pod]) -> impl Iterator<Item = (&'a ServicePort, i32)> {
    let all = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    all.filter_map(move |port| Some((port, target(port, backends)?)))
}

fn slice(service: &Service, backends: &[&Pod]) -> Result<EndpointSlice, Failure> {
    let name = service.metadata.name.clone().unwrap_or_default();
    let labels =
        [("kubernetes.io/service-name", name.as_str()), ("endpointslice.kubernetes.io/managed-by", MANAGER)];
    let one = |pod: &&Pod| {
        let (ready, going) = (pods::is_ready(pod), pods::is_terminating(pod));
        Endpoint {
            addresses: address(pod).map(str::to_owned).into_iter().collect(),
            conditions: Some(EndpointConditions {
                ready: Some(ready && !going),
                serving: Some(ready),
                terminating: Some(going),
            }),
            node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            target_ref: Some(reference(pod)),
            ..Endpoint::default()
        }
    };
    let port = |(port, number): (&ServicePort, i32)| EndpointPort {
        name: Some(port.name.clone().unwrap_or_default()),
        port: Some(number),
        protocol: port.protocol.clone(),
        app_protocol: port.app_protocol.clone(),
    };
    Ok(EndpointSlice {
        metadata: ObjectMeta {
            // One slice for each Service, however many pods it has.
            name: Some(format!("{name}-simulated")),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            owner_references: Some(vec![controller_reference(service)?]),
            ..ObjectMeta::default()
        },
        address_type: "IPv4".into(),
        endpoints: Some(backends.iter().take(1000).map(one).collect()),
        ports: Some(ports(service, backends).map(port).collect()),
    })
}

const MANAGER: &str = "simulate.watchkeeper.dev";

fn endpoints(service: &Service, backends: &[&Pod]) -> Result<Endpoints, Failure> {
    let addresses = |ready: bool| {
        let of = |pod: &&&Pod| pods::is_ready(pod) == ready && !pods::is_terminating(pod);
        let all: Vec<_> = backends
            .iter()
            .filter(of)
            .take(1000)
            .map(|pod| EndpointAddress {
                ip: address(pod).unwrap_or_default().to_owned(),
                node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
                target_ref: Some(reference(pod)),
                hostname: None,
            })
            .collect();
        (!all.is_empty()).then_some(all)
    };
    let port = |(port, number): (&ServicePort, i32)| Port {
        name: port.name.clone().filter(|name| !name.is_empty()),
        port: number,
        protocol: port.protocol.clone(),
        app_protocol: port.app_protocol.clone(),
    };
    let (ready, not_ready) = (addresses(true), addresses(false));
    let subset = EndpointSubset {
        ports: Some(ports(service, backends).map(port).collect()),
        addresses: ready,
        not_ready_addresses: not_ready,
    };
    let has_any = subset.addresses.is_some() || subset.not_ready_addresses.is_some();
    let labels = BTreeMap::from([("endpoints.kubernetes.io/managed-by".to_owned(), MANAGER.to_owned())]);
    Ok(Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels),
            owner_references: Some(vec![controller_reference(service)?]),
            ..ObjectMeta::default()
        },
        subsets: has_any.then(|| vec![subset]),
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{
        Container, ContainerPort, PodCondition, PodSpec, PodStatus, ServiceSpec,
    };
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    /// A pod with an address that ends in `number`.
    fn pod(number: u8, ready: bool, going: bool) -> Pod {
        let condition = PodCondition {
            type_: "Ready".into(),
            status: if ready { "True" } else { "False" }.into(),
            ..PodCondition::default()
        };
        let port = ContainerPort {
            name: Some("web".into()),
            container_port: 9000 + i32::from(number),
            ..ContainerPort::default()
        };
        let container = Container { ports: Some(vec![port]), ..Container::default() };
        Pod {
            metadata: ObjectMeta {
                name: Some(format!("pod-{number}")),
                deletion_timestamp: going.then(|| Time(Default::default())),
                ..ObjectMeta::default()
            },
            spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            status: Some(PodStatus {
                pod_ip: Some(format!("10.0.0.{number}")),
                phase: Some("Running".into()),
                conditions: Some(vec![condition]),
                ..PodStatus::default()
            }),
        }
    }

    fn service(target: Option<IntOrString>) -> Service {
        let port = ServicePort { port: 80, target_port: target, ..ServicePort::default() };
        Service {
            metadata: ObjectMeta { name: Some("web".into()), uid: Some("1".into()), ..ObjectMeta::default() },
            spec: Some(ServiceSpec { ports: Some(vec![port]), ..ServiceSpec::default() }),
            status: None,
        }
    }

    #[test]
    fn each_pod_is_where_its_state_belongs() {
        let all = [pod(1, true, false), pod(2, false, false), pod(3, true, true), pod(4, false, true)];
        let all: Vec<&Pod> = all.iter().collect();
        let service = service(None);

        let slice = slice(&service, &all).unwrap_or_default();
        let said = |one: &Endpoint| {
            let conditions = one.conditions.clone().unwrap_or_default();
            (one.addresses.join(","), conditions.ready, conditions.serving, conditions.terminating)
        };
        let is = |address: &str, ready, serving, terminating| {
            (address.to_owned(), Some(ready), Some(serving), Some(terminating))
        };
        let expected = [
            is("10.0.0.1", true, true, false),
            is("10.0.0.2", false, false, false),
            is("10.0.0.3", false, true, true),
            is("10.0.0.4", false, false, true),
        ];
        assert_eq!(slice.endpoints.iter().flatten().map(said).collect::<Vec<_>>(), expected);

        let subsets = endpoints(&service, &all).unwrap_or_default().subsets.unwrap_or_default();
        let addresses = |all: &Option<Vec<EndpointAddress>>| -> Vec<_> {
            all.iter().flatten().map(|one| one.ip.clone()).collect()
        };
        assert_eq!(subsets.len(), 1);
        assert_eq!(addresses(&subsets[0].addresses), ["10.0.0.1"]);
        assert_eq!(addresses(&subsets[0].not_ready_addresses), ["10.0.0.2"]);
        let only = |pod: &Pod| endpoints(&service, &[pod]).unwrap_or_default().subsets;
        assert!(only(&pod(1, true, false)).is_some() && only(&pod(2, false, false)).is_some());
        assert_eq!(only(&pod(3, true, true)), None);
    }

    #[test]
    fn a_port_is_that_of_the_service_a_number_or_a_name_in_the_first_pod_that_has_it() {
        let all = [pod(1, true, false), pod(2, true, false)];
        let all: Vec<&Pod> = all.iter().collect();
        let of = |target: Option<IntOrString>| -> Vec<i32> {
            ports(&service(target), &all).map(|(_, number)| number).collect()
        };
        assert_eq!(of(None), [80]);
        assert_eq!(of(Some(IntOrString::Int(8080))), [8080]);
        assert_eq!(of(Some(IntOrString::String("web".into()))), [9001]);
        assert_eq!(of(Some(IntOrString::String("other".into()))), [0; 0]);
    }

    #[test]
    fn only_what_an_endpoint_shows_is_news() {
        let usual = pod(1, true, false);
        let mut same = usual.clone();
        same.metadata.annotations = Some([("a".to_owned(), "b".to_owned())].into());
        assert!(!is_news(Some(&usual), Some(&same)));
        assert!(is_news(None, Some(&usual)) && is_news(Some(&usual), None));
        let mut labelled = usual.clone();
        labelled.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
        let mut ended = usual.clone();
        ended.status.get_or_insert_default().phase = Some("Failed".into());
        for other in [pod(2, true, false), pod(1, false, false), pod(1, true, true), labelled, ended] {
            assert!(is_news(Some(&usual), Some(&other)), "{other:?}");
        }
    }
}
