//! The same objects as a typed kind, as a kind known at run time only, and as metadata; and several sources in one store.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::discovery::ApiResource;
use kube_core::metadata::PartialObjectMeta;
use kube_core::{DynamicObject, ResourceExt};
use watchkeeper_core::Key;
use watchkeeper_informer::{Informer, InformerSet, Policy};
use watchkeeper_sources::kubernetes::Kubernetes;

use crate::truth::Truth;

fn key() -> Key {
    Key::new(Some("d"), "a")
}

#[tokio::test]
async fn a_kind_can_be_typed_dynamic_or_only_metadata() {
    let truth = Truth::new();
    truth.put("a", r#"{"greeting":"hello"}"#);
    let server = truth.serve().await;
    let resource = ApiResource::erase::<ConfigMap>(&());

    let typed = Informer::<ConfigMap>::builder().start(Kubernetes::of::<ConfigMap>(server.connection()));
    typed.synced().await.unwrap();
    let map = typed.store().get(&key()).unwrap().get().unwrap();
    assert_eq!(map.data.as_ref().unwrap()["greeting"], "hello");

    let dynamic =
        Informer::<DynamicObject>::builder().start(Kubernetes::resource(server.connection(), &resource));
    dynamic.synced().await.unwrap();
    let map = dynamic.store().get(&key()).unwrap().get().unwrap();
    assert_eq!(map.types.as_ref().unwrap().kind, "ConfigMap");
    assert_eq!(map.data["data"]["greeting"], "hello");

    let source = Kubernetes::of::<ConfigMap>(server.connection()).metadata_only();
    let metadata = Informer::<PartialObjectMeta<ConfigMap>>::builder().policy(Policy::Typed).start(source);
    metadata.synced().await.unwrap();
    assert_eq!(metadata.store().get(&key()).unwrap().get().unwrap().name_any(), "a");
}

#[tokio::test]
async fn an_informer_set_tells_selectors_apart() {
    let truth = Truth::new();
    truth.put("a", "{}");
    let server = truth.serve().await;
    let set = InformerSet::default();
    let all = || Kubernetes::of::<ConfigMap>(server.connection());
    let first = set.informer::<ConfigMap>(all());
    let second = set.informer::<ConfigMap>(all());
    let labelled = set.informer::<ConfigMap>(all().labels("app=web"));
    let elsewhere = set.informer::<ConfigMap>(all().namespace("shop"));
    for informer in [&first, &second, &labelled, &elsewhere] {
        informer.synced().await.unwrap();
    }
    assert_eq!(set.len(), 3);
    let paths: Vec<_> = server.requests().iter().map(|request| request.path.clone()).collect();
    assert_eq!(paths.iter().filter(|path| path.contains("/namespaces/shop/")).count(), 1, "{paths:?}");
    let selectors =
        server.requests().iter().filter(|request| request.param("labelSelector") == "app=web").count();
    assert_eq!((server.requests().len(), selectors), (3, 1));
}

#[tokio::test]
async fn several_clusters_or_namespaces_make_one_store() {
    let (shop, bank) = (Truth::new(), Truth::new());
    shop.put("a", "{}");
    bank.put("b", "{}");
    let (shop_server, bank_server) = (shop.serve().await, bank.serve().await);
    let informer =
        Informer::<ConfigMap>::builder().start(Kubernetes::of::<ConfigMap>(shop_server.connection()));
    informer.add_source(Kubernetes::of::<ConfigMap>(bank_server.connection()));
    informer.synced().await.unwrap();
    assert_eq!(informer.store().len(), 2);
    assert_eq!(informer.store().positions().len(), 2);
}
