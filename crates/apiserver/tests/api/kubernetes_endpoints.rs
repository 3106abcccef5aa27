//! The endpoints of the Service `default/kubernetes`: where the server is.

use serde_json::json;

use crate::harness::Api;

const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints/kubernetes";
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";

#[tokio::test]
async fn the_endpoints_of_the_server_are_where_it_listens() {
    let api = Api::start().await;
    assert_eq!(api.get(ENDPOINTS).await.code, 404);
    api.server.advertise(Some("192.0.2.7:6443".parse().unwrap())).await.unwrap();
    let endpoints = api.get(ENDPOINTS).await.ok();
    let ports = json!([{"name": "https", "port": 6443, "protocol": "TCP"}]);
    assert_eq!(endpoints["subsets"], json!([{"addresses": [{"ip": "192.0.2.7"}], "ports": ports}]));
    let slice = api.get(SLICE).await.ok();
    assert_eq!(slice["endpoints"][0]["addresses"], json!(["192.0.2.7"]));
    assert_eq!((&slice["ports"], &slice["addressType"]), (&ports, &json!("IPv4")));
    api.server.advertise(Some("192.0.2.8:7443".parse().unwrap())).await.unwrap();
    assert_eq!(api.get(ENDPOINTS).await.ok()["subsets"][0]["addresses"][0]["ip"], "192.0.2.8");
    assert_eq!(api.get(SLICE).await.ok()["ports"][0]["port"], 7443);
    let service = api.get("/api/v1/namespaces/default/services/kubernetes").await.ok();
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 7443);
    api.server.advertise(Some("[2001:db8::7]:6443".parse().unwrap())).await.unwrap();
    assert_eq!(api.get(SLICE).await.ok()["addressType"], "IPv6");
    // Where nobody else can reach it, it is nowhere.
    api.server.advertise(Some("127.0.0.1:6443".parse().unwrap())).await.unwrap();
    assert_eq!((api.get(ENDPOINTS).await.code, api.get(SLICE).await.code), (404, 404));
}
