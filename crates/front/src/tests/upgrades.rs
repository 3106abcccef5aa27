use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Request as HttpRequest, StatusCode};
use http_body_util::BodyExt as _;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::stall::STALLED;
use crate::{Body, Drained, Front, Listener, Request, Response, Upgrade};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Answers `/upgrade` by taking the connection over and saying everything louder, and everything else with its version.
async fn answer(request: Request) -> Response {
    if request.uri().path() != "/upgrade" {
        return Response::new(Body::whole(format!("{:?}", request.version())));
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert("connection", "upgrade".parse().unwrap());
    response.headers_mut().insert("upgrade", "louder".parse().unwrap());
    response.extensions_mut().insert(Upgrade::new(|mut stream| async move {
        let mut buffer = [0; 64];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            stream.write_all(&buffer[..count].to_ascii_uppercase()).await.unwrap();
            stream.flush().await.unwrap();
        }
    }));
    response
}

fn serve() -> (Front, SocketAddr) {
    let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let address = listener.address();
    (Front::builder(answer).http_and_h2c(listener).start().unwrap(), address)
}

async fn upgraded(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "GET /upgrade HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: louder\r\n\r\nfirst";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    let answered = async {
        while !read.ends_with(b"\r\n\r\nFIRST") {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0, "{}", String::from_utf8_lossy(&read));
        }
    };
    timeout(TIMEOUT, answered).await.unwrap();
    assert!(read.starts_with(b"HTTP/1.1 101 "));
    stream
}

#[tokio::test]
async fn a_connection_is_handed_over_with_what_was_sent_behind_the_head() {
    let (front, address) = serve();
    let mut stream = upgraded(address).await;
    stream.write_all(b"second").await.unwrap();
    let mut read = [0; 6];
    timeout(TIMEOUT, stream.read_exact(&mut read)).await.unwrap().unwrap();
    assert_eq!(&read, b"SECOND");
    stream.shutdown().await.unwrap();
    assert_eq!(timeout(TIMEOUT, stream.read(&mut read)).await.unwrap().unwrap(), 0);
    assert_eq!(front.shutdown(TIMEOUT).await, Drained::Clean);
}

#[tokio::test]
async fn a_connection_that_was_handed_over_is_cut_when_the_time_is_over() {
    let (front, address) = serve();
    let mut stream = upgraded(address).await;
    assert_eq!(front.shutdown(Duration::from_millis(50)).await, Drained::CutOff);
    let mut read = [0; 6];
    // Closed or reset.
    assert!(!matches!(timeout(TIMEOUT, stream.read(&mut read)).await.unwrap(), Ok(1..)));
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_a_connection_that_was_handed_over_is_given_up() {
    let (sender, failed) = oneshot::channel();
    let sender = Arc::new(Mutex::new(Some(sender)));
    let endless = move |_: Request| {
        let sender = sender.lock().take().unwrap();
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.extensions_mut().insert(Upgrade::new(|mut stream| async move {
            let failed = loop {
                if let Err(failed) = stream.write_all(&[b'x'; 64 << 10]).await {
                    break failed;
                }
            };
            let _ = sender.send(failed.kind());
        }));
        std::future::ready(response)
    };
    let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let address = listener.address();
    let _front = Front::builder(endless).http(listener).start().unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    timeout(TIMEOUT, stream.read_exact(&mut [0; 64 << 10])).await.unwrap().unwrap();
    // From here on nothing is read, and time goes on when nobody writes any more.
    tokio::time::pause();
    let begin = Instant::now();
    assert_eq!(failed.await.unwrap(), ErrorKind::TimedOut);
    assert!((STALLED..STALLED * 2).contains(&begin.elapsed()), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn clients_speak_the_version_that_they_begin_with() {
    let (_front, address) = serve();
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut client, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = HttpRequest::get("http://a/").body(Body::empty()).unwrap();
    let response = timeout(TIMEOUT, client.send_request(request)).await.unwrap().unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "HTTP/2.0");
    // A beginning that is shorter than the preface, in two pieces.
    let mut stream = TcpStream::connect(address).await.unwrap();
    for piece in ["P", "RI / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"] {
        stream.write_all(piece.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut read = String::new();
    timeout(TIMEOUT, stream.read_to_string(&mut read)).await.unwrap().unwrap();
    assert!(read.ends_with("HTTP/1.1"), "{read}");
}
