//! Answers with `Content-Encoding: gzip`.

use std::io::Read;

use http_body_util::BodyExt;
use serde_json::json;
use watchkeeper_apiserver::front::Body;

use crate::harness::{Api, config_map, read};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn long_answers_are_compressed_for_those_who_ask() {
    let api = Api::start().await;
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
