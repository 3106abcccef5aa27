use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::json;
use watchkeeper_testkit::eventually;
use watchkeeper_workloads::Timing;

use crate::place::{Place, deployment, set_image};

#[tokio::test(start_paused = true)]
async fn a_service_has_the_addresses_of_its_ready_pods() {
    let place = Place::new(Timing::default()).await;
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    });
    place.create::<Service>(service).await;
    place.create::<Deployment>(deployment(3, "web:1")).await;
    place.rolled_out("web").await;
    let ready = |count: usize| {
        let place = &place;
        eventually(move || async move {
            let mut pods: Vec<_> =
                place.pods().await.iter().map(|pod| pod.status.as_ref().unwrap().pod_ip.clone()).collect();
            pods.sort();
            let endpoints = place.get::<Endpoints>("web").await?;
            let subset = endpoints.subsets.as_ref()?.first()?.clone();
            assert_eq!(subset.ports.as_ref()?[0].port, 8080);
            let mut addresses: Vec<_> =
                subset.addresses?.into_iter().map(|address| Some(address.ip)).collect();
            addresses.sort();
            let slice = place.list::<EndpointSlice>().await.into_iter().find(|slice| {
                slice.metadata.labels.as_ref().is_some_and(|labels| {
                    labels.get("kubernetes.io/service-name").map(String::as_str) == Some("web")
                })
            })?;
            let of_slice = slice
                .endpoints
                .iter()
                .flatten()
                .filter(|one| one.conditions.as_ref().unwrap().ready == Some(true))
                .count();
            (addresses == pods && addresses.len() == count && of_slice == count).then_some(())
        })
    };
    ready(3).await;
    place.modify::<Deployment>("web", |web| web.spec.replicas = Some(1)).await;
    ready(1).await;
    place.modify::<Deployment>("web", |web| set_image(web, "web:2")).await;
    place.rolled_out("web").await;
    ready(1).await;
}
