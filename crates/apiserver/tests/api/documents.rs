//! The documents that describe what is served, as clients get and keep them.

use std::io::Read;

use flate2::read::GzDecoder;
use futures_util::future::join_all;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use watchkeeper_apiserver::front::Body;

use crate::harness::{Answer, Api, DEFINITIONS, definition, spec};

const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn tag(answer: &Answer) -> &str {
    answer.headers["etag"].to_str().unwrap()
}

async fn get_unless(api: &Api, path: &str, accept: &str, tags: &str) -> Answer {
    let request = http::Request::builder().uri(path).header("accept", accept).header("if-none-match", tags);
    api.answer(request.body(Body::empty()).unwrap()).await
}

/// All documents, with the type that is asked for.
const DOCUMENTS: [(&str, &str); 6] = [
    ("/openapi/v2", "application/json"),
    ("/openapi/v3", "application/json"),
    ("/openapi/v3/api/v1", "application/json"),
    ("/openapi/v3/apis/example.com/v1", "application/json"),
    ("/api", AGGREGATED),
    ("/apis", AGGREGATED),
];

#[tokio::test]
async fn who_has_a_document_by_its_tag_is_not_sent_it_again() {
    let api = Api::start().await;
    api.define(spec()).await;
    for (path, accept) in DOCUMENTS {
        let first = api.get_as(path, accept).await;
        assert_eq!(first.code, 200, "{path}");
        assert!(first.text.len() > 100, "{path}");
        let again = get_unless(&api, path, accept, tag(&first)).await;
        assert_eq!((again.code, again.text.as_str(), tag(&again)), (304, "", tag(&first)), "{path}");
        let others = format!("\"other\", {}", tag(&first));
        assert_eq!(get_unless(&api, path, accept, &others).await.code, 304, "{path}");
        let other = get_unless(&api, path, accept, "\"other\"").await;
        assert_eq!((other.code, &other.text), (200, &first.text), "{path}");
    }
}

#[tokio::test]
async fn a_definition_is_in_the_documents_as_soon_as_it_is_made_and_gone_when_it_is_gone() {
    let api = Api::start().await;
    let before = api.get("/openapi/v2").await;
    assert!(!before.text.contains("com.example.v1.Widget"));
    assert_eq!(api.get("/openapi/v3/apis/example.com/v1").await.code, 404);
    api.define(spec()).await;
    let with = api.get("/openapi/v2").await;
    assert!(with.text.contains("com.example.v1.Widget"));
    assert_ne!(tag(&with), tag(&before));
    let third = api.get("/openapi/v3/apis/example.com/v1").await;
    assert!(third.text.contains("com.example.v1.Widget"));
    assert!(api.get_as("/apis", AGGREGATED).await.text.contains("widgets"));

    let mut changed = definition(json!({"type": "object", "properties": {"novelty": {"type": "string"}}}));
    let path = format!("{DEFINITIONS}/widgets.example.com");
    changed["metadata"]["resourceVersion"] = api.get(&path).await.ok()["metadata"]["resourceVersion"].clone();
    api.put(&path, changed).await.ok();
    assert!(api.get("/openapi/v2").await.text.contains("novelty"));
    let changed = api.get("/openapi/v3/apis/example.com/v1").await;
    assert!(changed.text.contains("novelty") && tag(&changed) != tag(&third));

    api.delete(&path).await.ok();
    api.eventually("/openapi/v2", |answer| tag(answer) == tag(&before)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_or_not_by_many_at_once_it_is_the_same_document() {
    let api = Api::start().await;
    api.define(spec()).await;
    let plain = api.get("/openapi/v2").await;
    let ask = async || {
        let request = http::Request::builder().uri("/openapi/v2").header("accept-encoding", "gzip");
        let response = api.call(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.headers()["content-encoding"], "gzip");
        assert_eq!(response.headers()["etag"], tag(&plain));
        let vary: Vec<_> = response.headers().get_all("vary").iter().collect();
        assert_eq!(vary, ["Accept-Encoding", "Accept"]);
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let mut text = String::new();
        GzDecoder::new(&*bytes).read_to_string(&mut text).unwrap();
        assert!(text == plain.text);
    };
    join_all((0..8).map(|_| ask())).await;
    let request = http::Request::builder().uri("/openapi/v2").header("accept", PROTOBUF);
    let protobuf = api.call(request.body(Body::empty()).unwrap()).await;
    assert!(protobuf.headers()["content-type"].to_str().unwrap().contains("protobuf"));
    assert_ne!(protobuf.headers()["etag"], tag(&plain));
    serde_json::from_str::<Value>(&plain.text).unwrap();
}

#[tokio::test]
async fn documents_are_not_indented_for_anybody() {
    let api = Api::start().await;
    let plain = api.get("/openapi/v2").await;
    assert!(api.get("/openapi/v2?pretty=true").await.text == plain.text);
}

#[tokio::test]
async fn where_the_server_is_does_not_depend_on_what_clients_call_it() {
    let api = Api::start().await;
    let asked = || http::Request::get("/api").header("host", "evil.example:1").body(Body::empty()).unwrap();
    assert_eq!(api.answer(asked()).await.ok()["serverAddressByClientCIDRs"], json!([]), "it is nowhere yet");
    api.server.advertise(Some("127.0.0.1:6443".parse().unwrap())).await.unwrap();
    let expected = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]);
    assert_eq!(api.answer(asked()).await.ok()["serverAddressByClientCIDRs"], expected);
}

#[tokio::test]
async fn path_items_have_parameters_or_say_nothing_of_them() {
    let api = Api::start().await;
    api.define(spec()).await;
    let root = api.get("/openapi/v3").await.ok();
    let mut items = 0;
    for path in root["paths"].as_object().unwrap().keys() {
        let document = api.get(&format!("/openapi/v3/{path}")).await.ok();
        for (name, item) in document["paths"].as_object().unwrap() {
            let is_empty = |parameters: &Value| parameters.as_array().is_none_or(Vec::is_empty);
            assert!(!item.get("parameters").is_some_and(is_empty), "{name}: {item}");
            items += 1;
        }
    }
    assert!(items > 300, "{items} path items");
}

#[tokio::test]
async fn a_defined_kind_describes_its_version_and_kind_as_built_in_kinds_do() {
    let api = Api::start().await;
    api.define(spec()).await;
    for (own, built_in) in [
        (
            ("/openapi/v3/apis/example.com/v1", "/components/schemas/com.example.v1.Widget/properties"),
            ("/openapi/v3/api/v1", "/components/schemas/io.k8s.api.core.v1.ConfigMap/properties"),
        ),
        (
            ("/openapi/v2", "/definitions/com.example.v1.Widget/properties"),
            ("/openapi/v2", "/definitions/io.k8s.api.core.v1.ConfigMap/properties"),
        ),
    ] {
        let (own_document, document) = (api.get(own.0).await.ok(), api.get(built_in.0).await.ok());
        let (own, built_in) = (own_document.pointer(own.1).unwrap(), document.pointer(built_in.1).unwrap());
        for field in ["apiVersion", "kind"] {
            let description = built_in[field]["description"].as_str().unwrap();
            assert!(description.contains("More info: https://git.k8s.io/community"), "{description}");
            assert_eq!(own[field]["description"], description, "{field}");
        }
    }
}
