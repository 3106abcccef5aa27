//! What the server sees to by itself: what every namespace has, where the server is, and that nothing takes for ever.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::Instant;
use watchkeeper_apiserver::front::Body;
use watchkeeper_apiserver::{Clock, Options};
use watchkeeper_storage::Memory;

use crate::harness::{Api, config_map, read};

const ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/default";
const CERTIFICATES: &str = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints/kubernetes";
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const EVENTS: &str = "/api/v1/namespaces/default/events";

async fn start(change: impl FnOnce(&mut Options)) -> Api {
    let mut options = Options::default();
    change(&mut options);
    Api::with(Arc::new(Memory::new(watchkeeper_storage::Options::default())), options).await
}

#[tokio::test]
async fn every_namespace_has_an_account_that_comes_back() {
    let api = start(|_| {}).await;
    let first = api.eventually(ACCOUNT, |answer| answer.code == 200).await.ok();
    api.delete(ACCOUNT).await.ok();
    let is_another = |account: &Value| account["metadata"]["uid"] != first["metadata"]["uid"];
    api.eventually(ACCOUNT, |answer| answer.code == 200 && is_another(&answer.json())).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}});
    api.post("/api/v1/namespaces", namespace).await.ok();
    api.eventually("/api/v1/namespaces/new/serviceaccounts/default", |answer| answer.code == 200).await;
}

#[tokio::test]
async fn every_namespace_has_the_certificates_and_nobody_can_change_them() {
    let api = start(|options| options.certificate_authority = Some("made up".into())).await;
    let is_right = |answer: &crate::harness::Answer| {
        answer.code == 200 && answer.json()["data"] == json!({"ca.crt": "made up"})
    };
    let map = api.eventually(CERTIFICATES, is_right).await.ok();
    assert!(map["metadata"]["annotations"]["kubernetes.io/description"].is_string());
    api.merge(CERTIFICATES, json!({"data": {"ca.crt": "other", "more": "x"}})).await.ok();
    api.eventually(CERTIFICATES, is_right).await;
    api.merge(CERTIFICATES, json!({"metadata": {"annotations": null}})).await.ok();
    let is_described = |answer: &crate::harness::Answer| {
        answer.json()["metadata"]["annotations"]["kubernetes.io/description"].is_string()
    };
    api.eventually(CERTIFICATES, is_described).await;
    api.delete(CERTIFICATES).await.ok();
    api.eventually(CERTIFICATES, is_right).await;
    // A namespace that goes takes them along.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}});
    api.post("/api/v1/namespaces", namespace).await.ok();
    api.eventually("/api/v1/namespaces/new/configmaps/kube-root-ca.crt", is_right).await;
    api.delete("/api/v1/namespaces/new").await;
    api.eventually("/api/v1/namespaces/new", |answer| answer.code == 404).await;
}

#[tokio::test]
async fn what_is_turned_off_is_left_to_others() {
    let api = start(|options| options.service_accounts = false).await;
    api.delete("/api/v1/namespaces/kube-node-lease").await;
    api.eventually("/api/v1/namespaces/kube-node-lease", |answer| answer.code == 404).await;
    assert_eq!(api.get(ACCOUNT).await.code, 404);
    assert_eq!(api.get(CERTIFICATES).await.code, 404);
}

#[tokio::test]
async fn the_endpoints_of_the_server_are_where_it_listens() {
    let api = start(|_| {}).await;
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

#[tokio::test(start_paused = true)]
async fn events_are_forgotten_an_hour_after_they_were_last_written() {
    let (start_time, begin) = (SystemTime::now(), Instant::now());
    let clock = Clock::new(move || start_time + begin.elapsed());
    let api = start(|options| options.clock = clock).await;
    let event = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "reason": "Because",
            "involvedObject": {"namespace": "default"},
        })
    };
    for name in ["once", "again"] {
        api.post(EVENTS, event(name)).await.ok();
    }
    let mut watch =
        api.watch(&format!("{EVENTS}?watch=1&timeoutSeconds=99999&fieldSelector=metadata.name=once")).await;
    assert_eq!(watch.told().await.0, "ADDED");
    tokio::time::sleep(Duration::from_secs(3000)).await;
    api.merge(&format!("{EVENTS}/again"), json!({"count": 2})).await.ok();
    assert_eq!(api.get(&format!("{EVENTS}/once")).await.code, 200);
    tokio::time::sleep(Duration::from_secs(620)).await;
    assert_eq!(watch.told().await, ("DELETED".to_owned(), "once".to_owned()));
    assert_eq!(api.get(&format!("{EVENTS}/once")).await.code, 404);
    assert_eq!(api.get(&format!("{EVENTS}/again")).await.code, 200);
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert_eq!(api.get(&format!("{EVENTS}/again")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_is_answered_all_the_same() {
    let api = start(|_| {}).await;
    let endless = || Body::stream(futures_util::stream::pending());
    for (query, seconds) in [("?timeout=2s", 2), ("", 60), ("?timeout=5m", 60)] {
        let begin = Instant::now();
        let request = http::Request::builder().method("POST").uri(format!("{MAPS}{query}"));
        let answer = api.answer(request.body(endless()).unwrap()).await;
        let status = answer.failed(504);
        assert_eq!(status["reason"], "Timeout");
        assert_eq!(status["message"], "Timeout: request did not complete within the allotted timeout");
        assert_eq!(begin.elapsed().as_secs(), seconds, "{query}");
    }
}

#[tokio::test]
async fn long_answers_are_compressed_for_those_who_ask() {
    let api = start(|_| {}).await;
    let text: String = (0..40_000).map(|number| format!("{number} ")).collect();
    api.post(MAPS, config_map("long", json!({"k": text}))).await.ok();
    api.post(MAPS, config_map("short", json!({"k": "v"}))).await.ok();
    let ask = |path: String, encoding: &'static str| {
        let request = http::Request::builder().uri(path).header("accept-encoding", encoding);
        api.call(request.body(Body::empty()).unwrap())
    };
    for path in [format!("{MAPS}/long"), MAPS.to_owned()] {
        let plain = api.get(&path).await;
        assert!(plain.headers.get("content-encoding").is_none());
        let response = ask(path.clone(), "br, gzip").await;
        assert_eq!(response.headers()["content-encoding"], "gzip");
        assert_eq!(response.headers()["vary"], "Accept-Encoding");
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        assert!(bytes.len() < plain.text.len() * 3 / 4, "{}", bytes.len());
        let mut decoded = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut decoded).unwrap();
        assert_eq!(decoded, plain.text);
    }
    for (path, encoding) in [(format!("{MAPS}/short"), "gzip"), (format!("{MAPS}/long"), "br")] {
        let answer = read(ask(path, encoding).await).await;
        assert!(answer.headers.get("content-encoding").is_none());
        answer.ok();
    }
    // Events must not wait for each other in a compressor.
    let response = ask(format!("{MAPS}?watch=1"), "gzip").await;
    assert!(response.headers().get("content-encoding").is_none());
}
