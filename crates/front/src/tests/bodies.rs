//! The limit to what a request may carry, whatever the service does.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

fn limited() -> Server {
    Server::limited(Limits { body_bytes: 1000, ..Limits::default() })
}

#[tokio::test]
async fn a_body_that_announces_too_much_is_refused_before_the_service_hears_of_it() {
    let server = limited();
    for alpn in BOTH {
        for (size, code, answer) in [(1000, 200, "1000"), (1001, 413, "the body is too large\n")] {
            let request = http::Request::post("https://localhost/read").header("host", "localhost");
            let request = request.body(Full::from(vec![b'x'; size])).unwrap();
            let response = server.client(alpn).await.send(request).await.unwrap();
            assert_eq!((response.status().as_u16(), text(response).await.as_str()), (code, answer), "{alpn}");
        }
    }
}

#[tokio::test]
async fn a_body_without_a_length_breaks_off_at_the_limit() {
    let server = limited();
    let mut socket = TcpStream::connect(server.http).await.unwrap();
    let head =
        "POST /read HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..3 {
        socket.write_all(format!("190\r\n{}\r\n", "x".repeat(400)).as_bytes()).await.unwrap();
    }
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 413") && answer.ends_with("too large"), "{answer}");
}

/// Says one thing after the other on one connection, and gives the answers until it is closed.
async fn conversation(server: &Server, said: &[&str]) -> String {
    let mut socket = TcpStream::connect(server.http).await.unwrap();
    for text in said {
        socket.write_all(text.as_bytes()).await.unwrap();
        // Later than the answer would be if nobody waited.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut answer = Vec::new();
    tokio::time::timeout(TIMEOUT, socket.read_to_end(&mut answer)).await.unwrap().unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_body_that_nobody_reads_is_waited_for_and_the_connection_stays() {
    let server = Server::start().await;
    let post = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n";
    let get = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let answers = conversation(&server, &[post, "hello", get]).await;
    assert_eq!(answers.matches("HTTP/1.1 404 Not Found").count(), 2, "{answers}");
    let chunked = "POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let answers = conversation(&server, &[chunked, "0\r\n\r\n", get]).await;
    assert_eq!(answers.matches("HTTP/1.1 404 Not Found").count(), 2, "{answers}");
}

#[tokio::test]
async fn who_is_not_listened_to_any_more_is_told_so_with_the_answer() {
    let server = Server::start().await;
    for head in ["content-length: 5", "content-length: 900000", "content-length: 5\r\nexpect: 100-continue"] {
        let post = format!("POST / HTTP/1.1\r\nhost: localhost\r\n{head}\r\n\r\n");
        let answer = conversation(&server, &[&post]).await;
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{head}: {answer}");
        assert!(answer.contains("connection: close\r\n"), "{head}: {answer}");
    }
}
