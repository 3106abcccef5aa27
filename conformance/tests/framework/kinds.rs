//! What the tests work with.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Client;
use watchkeeper::informer::Store;
use watchkeeper_testkit::fixtures::config_map;

/// A ConfigMap that says one thing.
pub(crate) fn map(name: &str, says: &str) -> ConfigMap {
    config_map(name, &[("says", says)])
}

/// What a ConfigMap says.
pub(crate) fn says(map: &ConfigMap) -> Option<&str> {
    map.data.as_ref()?.get("says").map(String::as_str)
}

/// The versions of all ConfigMaps by name, as the server has them.
pub(crate) async fn on_the_server(client: &Client) -> Result<BTreeMap<String, String>, kube_client::Error> {
    let all = kube_client::Api::<ConfigMap>::namespaced(client.clone(), "default");
    let all = all.list(&kube_core::params::ListParams::default()).await?;
    let version = |map: &ConfigMap| {
        let metadata = map.metadata.clone();
        (metadata.name.unwrap_or_default(), metadata.resource_version.unwrap_or_default())
    };
    Ok(all.items.iter().map(version).collect())
}

/// The same, as an informer has them.
pub(crate) fn in_the_store(store: &Store<ConfigMap>) -> BTreeMap<String, String> {
    let objects = store.in_namespace("default");
    objects.iter().map(|object| (object.key().name().to_owned(), object.version().to_string())).collect()
}
