//! Requests to servers that are no clusters.

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use watchkeeper_connection::{Error, HttpClient};

use crate::place::Place;
use crate::raw::{FINE, Raw, request, write};

#[tokio::test]
async fn requests_go_where_their_urls_say_and_share_connections_by_server() {
    let server = || {
        Raw::start(|mut stream, _| async move {
            while let Some(head) = request(&mut stream).await {
                assert!(head.starts_with("GET /a/b?c=d HTTP/1.1\r\n"), "{head}");
                write(&mut stream, FINE).await;
            }
        })
    };
    let (one, other) = (server().await, server().await);
    let place = Place::start();
    place.write("ca.crt", &place.site.authority());
    let client = HttpClient::new(Some(place.file("ca.crt"))).unwrap();
    let get = |url: String| {
        let client = client.clone();
        async move {
            let answer = client.send(Request::get(url).body(Bytes::new()).unwrap()).await?;
            answer.into_body().collect().await.map(|body| body.to_bytes())
        }
    };
    for _ in 0..3 {
        assert_eq!(get(format!("http://{}/a/b?c=d", one.address)).await.unwrap(), "{}");
        get(format!("http://{}/a/b?c=d", other.address)).await.unwrap();
    }
    assert_eq!((one.connections(), other.connections()), (1, 1));
    let said = get(format!("https://{}/a", place.address)).await.unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&said).unwrap()["uri"], "/a");
    assert!(matches!(get("/relative".into()).await, Err(Error::Malformed(_))));
    assert!(HttpClient::new(Some(place.file("nowhere"))).unwrap_err().contains("nowhere"));
}
