use futures_util::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

#[tokio::test]
async fn headers_and_the_first_piece_of_a_stream_leave_at_once() {
    let server = Server::start().await;
    for alpn in BOTH {
        let response = server.client(alpn).await.get("/watch", None).await;
        let mut body = response.into_body();
        let piece = tokio::time::timeout(TIMEOUT, body.frame()).await.unwrap().unwrap().unwrap();
        assert_eq!(piece.into_data().unwrap(), "first\n", "{alpn}");
    }
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_stream() {
    let server = Server::start().await;
    for alpn in BOTH {
        let mut client = server.client(alpn).await;
        let mut body = client.get("/watch", None).await.into_body();
        body.frame().await.unwrap().unwrap();
        assert_eq!(server.example.open.load(Ordering::SeqCst), 1);
        drop((body, client));
        until(|| server.example.open.load(Ordering::SeqCst) == 0).await;
    }
}

#[tokio::test]
async fn a_body_of_three_mebibytes_is_read_and_one_byte_more_is_answered_with_413() {
    let server = Server::start().await;
    for alpn in BOTH {
        for (size, code, answer) in
            [(MAX_REQUEST_BYTES, 200, "3145728"), (MAX_REQUEST_BYTES + 1, 413, "too large")]
        {
            let request = http::Request::post("https://localhost/read").header("host", "localhost");
            let request = request.body(Full::from(vec![b'x'; size])).unwrap();
            let response = server.client(alpn).await.send(request).await.unwrap();
            assert_eq!((response.status().as_u16(), text(response).await.as_str()), (code, answer), "{alpn}");
        }
    }
}

#[tokio::test]
async fn a_client_that_sends_all_before_it_reads_sees_the_413() {
    let server = Server::start().await;
    let mut socket = TcpStream::connect(server.http).await.unwrap();
    let length = 2 * MAX_REQUEST_BYTES;
    let head = format!("POST /read HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(&vec![b'x'; length]).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 413"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn a_body_without_a_length_is_answered_with_413_when_the_limit_is_reached() {
    let endless = stream::iter((0..1_000_000).map(|_| Bytes::from(vec![0; 1000])));
    let read = Body::stream(endless).read(10_000).await;
    assert_eq!(read, Err(BodyError::TooLarge { limit: 10_000 }));
    let pieces = Body::stream(stream::iter(["", "one ", "two ", "", "three"].map(Bytes::from)));
    assert_eq!(pieces.read(13).await.unwrap(), "one two three");
    assert_eq!(Body::whole("four").read(3).await, Err(BodyError::TooLarge { limit: 3 }));
    assert_eq!(Body::empty().read(0).await.unwrap(), "");
}

#[tokio::test]
async fn sixty_megabytes_arrive_whole() {
    let server = Server::start().await;
    for alpn in BOTH {
        let response = server.client(alpn).await.get("/large", None).await;
        assert_eq!(text(response).await.len(), 960 * (64 << 10), "{alpn}");
    }
}

#[tokio::test]
async fn a_hundred_watches_share_one_connection_and_the_next_request_waits() {
    let server = Server::start().await;
    let mut client = server.client("h2").await;
    let mut bodies = Vec::new();
    for _ in 0..100 {
        bodies.push(client.get("/watch", None).await.into_body());
    }
    for body in &mut bodies {
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "first\n");
    }
    assert_eq!(server.example.open.load(Ordering::SeqCst), 100);
    // The client was told how many there may be, and keeps to it.
    let mut next = Box::pin(client.get("/watch", None));
    for _ in 0..1_000 {
        assert!((&mut next).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    assert_eq!(server.example.open.load(Ordering::SeqCst), 100);
    bodies.pop();
    assert_eq!(next.await.status(), 200);
    drop(bodies);
    until(|| server.example.open.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn a_panic_is_an_answer_and_the_connection_lives_on() {
    let server = Server::start().await;
    for alpn in BOTH {
        let mut client = server.client(alpn).await;
        let response = client.get("/panic", None).await;
        assert_eq!(response.status(), 500);
        assert_eq!(text(response).await, "the server failed at this request; see its log\n");
        assert_eq!(client.get("/whoami", None).await.status(), 200);
        until(|| server.example.open.load(Ordering::SeqCst) == 0).await;
    }
}

#[tokio::test]
async fn a_listener_that_panics_goes_on_and_keeps_its_connections() {
    let server = Server::start().await;
    let supervisor = &server.example.supervisor;
    let mut before = server.client("h2").await;
    assert_eq!(before.get("/whoami", None).await.status(), 200);
    supervisor.inject("listener");
    until(|| supervisor.panics("listener") == 2).await; // one for each address
    assert_eq!(before.get("/whoami", None).await.status(), 200);
    let mut after = server.client("http/1.1").await;
    assert_eq!(after.get("/panic", None).await.status(), 500);
    assert_eq!(supervisor.panics("request"), 1);
}

#[tokio::test]
async fn plain_http_is_served_without_tls() {
    let server = Server::start().await;
    let socket = TcpStream::connect(server.http).await.unwrap();
    let mut client = Client::over(socket, "http/1.1").await;
    assert_eq!(text(client.get("/whoami", Some(TOKEN)).await).await, "admin with 0 certificates");
}

#[tokio::test]
async fn an_address_in_use_is_an_error_that_names_it() {
    let server = Server::start().await;
    let error = Listener::bind(server.https).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("cannot listen on {}: Address already in use", server.https)),
        "{error}"
    );
}

#[tokio::test]
async fn a_service_answers_without_any_socket() {
    let service = super::Shared(Arc::default());
    let request = http::Request::get("/whoami").body(Body::empty()).unwrap();
    let response = service.call(request).await;
    let body = response.into_body().read(1000).await.unwrap();
    assert_eq!(body, "stranger with 0 certificates");
}

#[tokio::test]
async fn a_function_is_a_service() {
    let listener = any();
    let address = listener.address();
    let front = Front::builder(|request: Request| async move {
        let from = Peer::of(&request).unwrap().address().ip();
        Response::new(Body::whole(format!("{} from {from}", request.uri().path())))
    });
    let _front = front.http(listener).start().unwrap();
    let mut client = Client::over(TcpStream::connect(address).await.unwrap(), "http/1.1").await;
    assert_eq!(text(client.get("/path", None).await).await, "/path from 127.0.0.1");
}
