//! Requests that take too long.

use serde_json::json;
use tokio::time::Instant;
use watchkeeper_apiserver::front::Body;

use crate::harness::Api;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_is_answered_all_the_same() {
    let api = Api::start().await;
    let endless = || Body::stream(futures_util::stream::pending());
    for (query, seconds) in [("?timeout=2s", 2), ("", 60), ("?timeout=5m", 60)] {
        let begin = Instant::now();
        let request = http::Request::builder().method("POST").uri(format!("{MAPS}{query}"));
        let answer = api.answer(request.body(endless()).unwrap()).await;
        let status = answer.failed(504);
        let expected = json!({
            "metadata": {}, "status": "Failure", "message": "Timeout: request did not complete within the allotted timeout",
            "reason": "Timeout", "details": {}, "code": 504,
        });
        assert_eq!(status, expected);
        assert_eq!(begin.elapsed().as_secs(), seconds, "{query}");
    }
}
