//! The objects that every cluster begins with.

use std::sync::Arc;

use watchkeeper_apiserver::{ApiServer, Options};
use watchkeeper_storage::{Memory, Storage};

use crate::harness::Api;

/// A server that writes nothing by itself once it has started.
fn quiet() -> Options {
    let mut options = Options::default();
    options.garbage_collection = false;
    options.namespace_deletion = false;
    options.service_accounts = false;
    options.role_aggregation = false;
    options
}

#[tokio::test]
async fn all_of_it_is_written_in_one_commit_and_only_what_is_missing() {
    let storage: Arc<dyn Storage> = Arc::new(Memory::new(watchkeeper_storage::Options::default()));
    let api = Api::with(Arc::clone(&storage), quiet()).await;
    // The second one says how other servers can believe this one, with the certificate of this start.
    assert_eq!(storage.stats().revision, 2);
    for path in [
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/kube-system",
        "/api/v1/namespaces/default/services/kubernetes",
        "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking",
        "/apis/networking.k8s.io/v1/servicecidrs/kubernetes",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cluster-admin",
        "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps",
    ] {
        assert_eq!(api.get(path).await.ok()["metadata"]["resourceVersion"], "1", "{path}");
    }
    let service = api.get("/api/v1/namespaces/default/services/kubernetes").await.ok();
    assert_eq!(service["spec"]["clusterIPs"], serde_json::json!(["10.0.0.1"]));
    drop(api);
    let api = Api::with(Arc::clone(&storage), quiet()).await;
    assert_eq!(storage.stats().revision, 3, "nothing was missing but the certificate of this start");
    for path in [
        "/api/v1/namespaces/default/services/kubernetes",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/view",
    ] {
        api.delete(path).await.ok();
    }
    let before = storage.stats().revision;
    let api = Api::with(Arc::clone(&storage), quiet()).await;
    assert_eq!(storage.stats().revision, before + 2, "two were missing");
    assert_eq!(api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/view").await.code, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_that_start_at_the_same_time_make_it_once() {
    let storage: Arc<dyn Storage> = Arc::new(Memory::new(watchkeeper_storage::Options::default()));
    let starting = (0..8).map(|_| tokio::spawn(ApiServer::start(Arc::clone(&storage), quiet())));
    for started in futures_util::future::join_all(starting).await {
        started.unwrap().unwrap();
    }
    let api = Api::with(Arc::clone(&storage), quiet()).await;
    let namespace = api.get("/api/v1/namespaces/kube-system").await.ok();
    assert_eq!(namespace["metadata"]["resourceVersion"], "1");
}
