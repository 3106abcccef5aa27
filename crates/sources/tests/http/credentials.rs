//! Secrets in files.

use std::time::Duration;

use watchkeeper_core::Error;
use watchkeeper_sources::http::Http;

use crate::service::Service;
use crate::tap::Tap;

#[tokio::test]
async fn a_secret_that_is_replaced_is_used_at_once_and_is_in_no_error() {
    let service = Service::start().await;
    service.put("a", 1);
    service.lock().password = Some("Bearer hunter2".into());
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    let http = Http::get(&format!("{}?key=hunter3", service.url("/items")))
        .items("/items")
        .key("/id")
        .interval(Duration::from_millis(5))
        .bearer_file(&token);
    let error = Tap::closed(&http).failure().await;
    assert!(matches!(&error, Error::Unavailable { reason, .. } if reason.contains("token")), "{error}");

    std::fs::write(&token, "hunter2\n").unwrap();
    let mut tap = Tap::on(&http).await;
    service.lock().password = Some("Bearer hunter4".into());
    std::fs::write(&token, "hunter4").unwrap();
    service.put("a", 2);
    tap.until_value("a", 2).await;

    service.lock().password = Some("Bearer hunter5".into());
    let error = tap.failure().await;
    assert!(matches!(&error, Error::Denied(said) if said.contains("401")), "{error}");
    let shown = format!("{error} {error:?} {http:?} {}", watchkeeper_core::Source::name(&http));
    assert!(!shown.contains("hunter"), "{shown}");
}
