//! When connections are used again, and that nothing is sent twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use tokio::io::AsyncReadExt as _;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use watchkeeper_connection::{Config, Connection, Error, RequestError};

use crate::raw::{FINE, Raw, request, write};

const LONG: Duration = Duration::from_secs(10);

fn get(path: &str) -> Request<Bytes> {
    Request::get(path).body(Bytes::new()).unwrap()
}

fn post(path: &str, body: &'static str) -> Request<Bytes> {
    Request::post(path).body(Bytes::from_static(body.as_bytes())).unwrap()
}

/// Answers every request on every connection.
async fn decent() -> Raw {
    Raw::start(|mut stream, _| async move {
        while request(&mut stream).await.is_some() {
            write(&mut stream, FINE).await;
        }
    })
    .await
}

#[tokio::test]
async fn one_connection_serves_requests_one_after_the_other() {
    let server = decent().await;
    let connection = server.connection();
    for _ in 0..50 {
        assert_eq!(connection.request(get("/")).await.unwrap(), "{}");
        connection.clone().request(post("/", "{}")).await.unwrap();
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_serves_requests_one_after_the_other_on_several_threads() {
    let server = decent().await;
    let connection = server.connection();
    for _ in 0..200 {
        connection.request(get("/")).await.unwrap();
    }
    assert!(server.connections() <= 2, "{}", server.connections());
}

#[tokio::test]
async fn requests_at_the_same_time_have_connections_of_their_own_which_are_used_again() {
    let server = decent().await;
    let connection = server.connection();
    for _ in 0..3 {
        let all = (0..10).map(|_| connection.request(get("/")));
        futures_util::future::try_join_all(all).await.unwrap();
    }
    assert!(server.connections() <= 10, "{}", server.connections());
}

#[tokio::test]
async fn any_number_of_watches_leaves_other_requests_alone() {
    let server = Raw::start(|mut stream, _| async move {
        while let Some(head) = request(&mut stream).await {
            if head.contains("watch") {
                write(&mut stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n\n\r\n").await;
                // Until the client goes.
                let _ = stream.read_u8().await;
                return;
            }
            write(&mut stream, FINE).await;
        }
    })
    .await;
    let connection = server.connection();
    let mut watches = Vec::new();
    for _ in 0..200 {
        let mut body = connection.send(get("/watch")).await.unwrap().into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "\n");
        watches.push(body);
    }
    for _ in 0..20 {
        timeout(LONG, connection.request(get("/"))).await.unwrap().unwrap();
    }
    assert_eq!(server.connections(), 201);
}

#[tokio::test]
async fn a_server_that_closes_connections_that_are_free_is_not_noticed() {
    let close = Arc::new(Notify::new());
    let closed = Arc::new(Semaphore::new(0));
    let (told, tells) = (Arc::clone(&close), Arc::clone(&closed));
    let server = Raw::start(move |mut stream, _| {
        let (close, closed) = (Arc::clone(&told), Arc::clone(&tells));
        async move {
            request(&mut stream).await;
            write(&mut stream, FINE).await;
            close.notified().await;
            drop(stream);
            closed.add_permits(1);
        }
    })
    .await;
    let connection = server.connection();
    for round in 1..=20 {
        connection.request(post("/", "once")).await.unwrap();
        assert_eq!(server.connections(), round);
        close.notify_one();
        closed.acquire().await.unwrap().forget();
    }
}

#[tokio::test]
async fn a_request_that_was_sent_is_not_sent_again() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let server = Raw::start(move |mut stream, _| {
        let requests = Arc::clone(&count);
        async move {
            // The second request of a connection is read and not answered.
            for number in 0..2 {
                let Some(_) = request(&mut stream).await else { return };
                requests.fetch_add(1, Ordering::SeqCst);
                if number == 0 {
                    write(&mut stream, FINE).await;
                }
            }
        }
    })
    .await;
    let connection = server.connection();
    connection.request(get("/")).await.unwrap();
    let error = connection.request(get("/")).await.unwrap_err();
    assert!(matches!(error, RequestError::Unanswered(Error::Broken(_))), "{error}");
    assert_eq!(requests.load(Ordering::SeqCst), 2);
    connection.request(get("/")).await.unwrap();
}

#[tokio::test]
async fn a_body_that_is_dropped_closes_its_connection_and_one_that_is_read_frees_it() {
    let gone = Arc::new(Semaphore::new(0));
    let tells = Arc::clone(&gone);
    let server = Raw::start(move |mut stream, _| {
        let gone = Arc::clone(&tells);
        async move {
            while let Some(head) = request(&mut stream).await {
                match head.contains("endless") {
                    true => write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{").await,
                    false => write(&mut stream, FINE).await,
                }
            }
            gone.add_permits(1);
        }
    })
    .await;
    let connection = server.connection();
    let mut body = connection.send(get("/endless")).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    timeout(LONG, gone.acquire()).await.expect("the connection stays open").unwrap().forget();
    // One whose bytes have all come, but not its end.
    let mut body = connection.send(get("/")).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "{}");
    drop(body);
    connection.request(get("/")).await.unwrap();
    assert_eq!(server.connections(), 2);
    // A request that nobody waits for any more.
    drop(connection);
    timeout(LONG, gone.acquire()).await.expect("the connection stays open").unwrap().forget();
}

#[tokio::test]
async fn a_request_that_nobody_waits_for_closes_its_connection() {
    let gone = Arc::new(Semaphore::new(0));
    let tells = Arc::clone(&gone);
    let server = Raw::start(move |mut stream, _| {
        let gone = Arc::clone(&tells);
        async move {
            request(&mut stream).await;
            let _ = stream.read_u8().await;
            gone.add_permits(1);
        }
    })
    .await;
    let connection = server.connection();
    assert!(timeout(Duration::from_millis(100), connection.request(get("/"))).await.is_err());
    timeout(LONG, gone.acquire()).await.expect("the connection stays open").unwrap().forget();
}

#[tokio::test]
async fn half_of_an_answer_is_an_error_and_not_an_answer() {
    for (number, half) in [
        "",
        "HTTP/1.1 200",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{}",
        "what?\r\n\r\n",
    ]
    .into_iter()
    .enumerate()
    {
        let server = Raw::start(move |mut stream, _| async move {
            request(&mut stream).await;
            write(&mut stream, half).await;
        })
        .await;
        let error = server.connection().request(get("/")).await.unwrap_err();
        assert!(matches!(error, RequestError::Unanswered(Error::Broken(_))), "{number}: {error}");
    }
}

#[tokio::test]
async fn a_server_that_answers_before_it_has_the_whole_request_is_heard() {
    let server = Raw::start(|mut stream, _| async move {
        let mut head = [0; 16];
        let _ = stream.read_exact(&mut head).await;
        let refusal =
            r#"{"kind":"Status","code":413,"reason":"RequestEntityTooLarge","message":"too large"}"#;
        let length = refusal.len();
        write(&mut stream, &format!("HTTP/1.1 413 Too Large\r\ncontent-length: {length}\r\n\r\n{refusal}"))
            .await;
        // The rest is never read.
        tokio::time::sleep(LONG).await;
    })
    .await;
    let connection = server.connection();
    let body = Bytes::from(vec![b'x'; 64 << 20]);
    let sent = connection.request(Request::post("/").body(body).unwrap());
    let error = timeout(LONG / 2, sent).await.expect("no answer").unwrap_err();
    assert!(matches!(&error, RequestError::Refused(status) if status.code == Some(413)), "{error}");
}

#[tokio::test]
async fn refusals_are_read_as_what_the_server_says() {
    let server = Raw::start(|mut stream, _| async move {
        while let Some(head) = request(&mut stream).await {
            let (code, body) = match head.contains("json") {
                true => {
                    (429, r#"{"kind":"Status","reason":"TooManyRequests","message":"slow down","code":1}"#)
                }
                false => (502, "<html>"),
            };
            let length = body.len();
            let head = format!("HTTP/1.1 {code} No\r\nretry-after: 7\r\ncontent-length: {length}\r\n\r\n");
            write(&mut stream, &(head + body)).await;
        }
    })
    .await;
    let connection = server.connection();
    let RequestError::Refused(status) = connection.request(get("/json")).await.unwrap_err() else { panic!() };
    assert_eq!((status.code, status.retry_after()), (Some(429), Some(Duration::from_secs(7))));
    assert_eq!(status.message, "slow down");
    let error = connection.request(get("/html")).await.unwrap_err();
    assert_eq!(error.to_string(), "the server answered 502");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_port_where_nobody_listens_refuses_and_a_host_that_does_not_answer_is_given_up() {
    let address = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let connection = Connection::new(Config::new(&format!("http://{address}")).unwrap()).unwrap();
    let error = connection.send(get("/")).await.unwrap_err();
    let Error::Connect { server, reason } = &error else { panic!("{error}") };
    assert!(*server == address.to_string() && reason.to_string().contains("Connection refused"), "{error}");

    // Takes connections and never says hello.
    let silent = Raw::start(|mut stream, _| async move {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let config = Config::new(&format!("https://{}", silent.address)).unwrap();
    let connection = Connection::new(config.connect_timeout(Duration::from_millis(200))).unwrap();
    let error = connection.send(get("/")).await.unwrap_err();
    assert!(
        matches!(&error, Error::Connect { reason, .. } if reason.to_string().contains("within")),
        "{error}"
    );
}

#[tokio::test]
async fn connections_that_are_free_for_long_are_closed() {
    let gone = Arc::new(Semaphore::new(0));
    let tells = Arc::clone(&gone);
    let server = Raw::start(move |mut stream, _| {
        let gone = Arc::clone(&tells);
        async move {
            while request(&mut stream).await.is_some() {
                write(&mut stream, FINE).await;
            }
            gone.add_permits(1);
        }
    })
    .await;
    let connection = server.connection();
    connection.request(get("/")).await.unwrap();
    tokio::task::yield_now().await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(91)).await;
    tokio::time::resume();
    timeout(LONG, gone.acquire()).await.expect("the connection stays open").unwrap().forget();
    connection.request(get("/")).await.unwrap();
    assert_eq!(server.connections(), 2);
}
