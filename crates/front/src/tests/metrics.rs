//! What is counted.

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

#[tokio::test]
async fn connections_answers_and_failures_are_counted_under_the_names_of_the_user() {
    let server = Server::start().await;
    let mut registry = Registry::default();
    server.front.metrics().register(registry.sub_registry_with_prefix("gateway"));
    let mut client = server.client("h2").await;
    for path in ["/whoami", "/whoami", "/nothing"] {
        text(client.get(path, Some(TOKEN)).await).await;
    }
    let mut garbage = TcpStream::connect(server.https).await.unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    garbage.read_to_end(&mut Vec::new()).await.ok();
    let metrics = || {
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    };
    until(|| metrics().contains(r#"gateway_connections{client="stranger"} 0"#)).await;
    let metrics = metrics();
    for line in [
        r#"gateway_connections{client="authenticated"} 1"#,
        r#"gateway_requests_total{code="200"} 2"#,
        r#"gateway_requests_total{code="404"} 1"#,
        "gateway_tls_handshake_failures_total 1",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}
