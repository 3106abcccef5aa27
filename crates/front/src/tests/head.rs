//! Answers to HEAD.

use super::*;

fn head(path: &str) -> http::Request<Full<Bytes>> {
    let mut request = get(path, None);
    *request.method_mut() = http::Method::HEAD;
    request
}

#[tokio::test]
async fn the_answer_to_a_head_has_the_length_of_that_to_a_get_and_no_content() {
    let server = Server::start().await;
    for alpn in BOTH {
        let mut client = server.client(alpn).await;
        let length = text(client.get("/whoami", None).await).await.len();
        for _ in 0..3 {
            let response = client.send(head("/whoami")).await.unwrap();
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers()["content-length"], length.to_string(), "{alpn}");
            assert_eq!(text(response).await, "", "{alpn}");
        }
        for (path, code) in [("/panic", 500), ("/nothing", 404), ("/large", 200)] {
            let response = client.send(head(path)).await.unwrap();
            assert_eq!(
                (response.status().as_u16(), text(response).await.as_str()),
                (code, ""),
                "{alpn} {path}"
            );
        }
        assert_eq!(text(client.get("/whoami", None).await).await.len(), length, "{alpn}");
    }
}

#[tokio::test]
async fn a_head_does_not_begin_a_stream() {
    let server = Server::start().await;
    for alpn in BOTH {
        let mut client = server.client(alpn).await;
        let response = client.send(head("/watch")).await.unwrap();
        assert_eq!((response.status().as_u16(), text(response).await.as_str()), (200, ""), "{alpn}");
        until(|| server.example.open.load(Ordering::SeqCst) == 0).await;
        assert_eq!(client.get("/whoami", None).await.status(), 200, "{alpn}");
    }
}

/// curl is strict about content that it did not ask for.
#[tokio::test(flavor = "multi_thread")]
async fn curl_takes_the_answer_to_a_head() {
    let server = Server::start().await;
    let url = format!("https://{}/whoami", server.https);
    for protocol in ["--http2", "--http1.1"] {
        let curl = tokio::task::spawn_blocking({
            let url = url.clone();
            move || std::process::Command::new("curl").args(["-sSk", "--head", protocol, &url]).output()
        });
        // Not every machine has it; hyper is asked above.
        let Ok(output) = curl.await.unwrap() else { return };
        let (said, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && said.contains(" 200"), "{protocol}: {said}{error}");
        assert!(said.to_lowercase().contains("content-length: "), "{said}");
    }
}
