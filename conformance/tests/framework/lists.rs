//! Servers that do not stream lists.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, Error};
use kube_core::params::{PostParams, WatchParams};
use watchkeeper::client::{Cache, Client};

use crate::kinds::{in_the_store, map, on_the_server};
use crate::place::Place;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs make peers, run by make test-real"]
async fn a_real_server_whose_streamed_lists_are_switched_off_is_read_in_pages() {
    let place = Place::real("--feature-gates=WatchList=false").await;
    let maps: Api<ConfigMap> = Api::namespaced(place.client(), "default");
    for number in 0..501 {
        maps.create(&PostParams::default(), &map(&format!("m{number}"), "")).await.unwrap();
    }
    let streamed = WatchParams::default().initial_events();
    let refused = maps.watch(&streamed, "0").await.map(drop).unwrap_err();
    assert!(matches!(&refused, Error::Api(status) if status.code == 422), "{refused}");

    let client = Client::new(place.connection());
    let informer = client.declare(Cache::of::<ConfigMap>().namespaces(["default"])).unwrap();
    client.synced().await.unwrap();
    assert_eq!(in_the_store(&informer.store()), on_the_server(&place.client()).await.unwrap());
}
