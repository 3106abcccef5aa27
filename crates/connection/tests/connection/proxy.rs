//! The way through an HTTP proxy.

use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use watchkeeper_connection::Connection;

use crate::place::{Place, ask};
use crate::raw::{Raw, request, write};

/// A proxy that opens tunnels, and what it was asked.
async fn proxy() -> (Raw, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes = Arc::clone(&asked);
    let proxy = Raw::start(move |mut stream, _| {
        let notes = Arc::clone(&notes);
        async move {
            let Some(head) = request(&mut stream).await else { return };
            let target = head.split(' ').nth(1).unwrap().to_owned();
            notes.lock().unwrap().push(head);
            write(&mut stream, "HTTP/1.1 200 Connection established\r\nx: y\r\n\r\n").await;
            let mut server = TcpStream::connect(target).await.unwrap();
            let _ = copy_bidirectional(&mut stream, &mut server).await;
        }
    })
    .await;
    (proxy, asked)
}

async fn through(place: &Place, url: &str) -> Connection {
    place.write("ca.crt", &place.site.authority());
    let cluster = format!("certificate-authority: ca.crt, proxy-url: '{url}'");
    Connection::from_kubeconfig(place.kubeconfig(&cluster, "token: good"), None).await.unwrap()
}

#[tokio::test]
async fn a_proxy_is_asked_for_one_tunnel_and_sees_nothing_of_what_goes_through() {
    let place = Place::start();
    let (proxy, asked) = proxy().await;
    let connection = through(&place, &format!("http://jane:p%40ss@{}", proxy.address)).await;
    for _ in 0..3 {
        assert_eq!(ask(&connection).await.unwrap()["authorization"], "Bearer good");
    }
    let server = place.address;
    // "jane:p@ss" in base64.
    let expected = format!(
        "CONNECT {server} HTTP/1.1\r\nHost: {server}\r\nProxy-Authorization: Basic amFuZTpwQHNz\r\n\r\n"
    );
    assert_eq!(*asked.lock().unwrap(), [expected]);
}

#[tokio::test]
async fn a_proxy_that_refuses_or_is_not_there_is_named() {
    let place = Place::start();
    let refusing = Raw::start(|mut stream, _| async move {
        request(&mut stream).await;
        write(&mut stream, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
    })
    .await;
    let connection = through(&place, &format!("http://jane:hunter2@{}", refusing.address)).await;
    let error = ask(&connection).await.unwrap_err().to_string();
    assert!(error.contains("407") && error.contains(&refusing.address.to_string()), "{error}");
    assert!(!error.contains("hunter2"), "{error}");

    let odd = Raw::start(|mut stream, _| async move {
        write(&mut stream, &"x".repeat(20_000)).await;
        let _ = request(&mut stream).await;
    })
    .await;
    let error =
        ask(&through(&place, &format!("http://{}", odd.address)).await).await.unwrap_err().to_string();
    assert!(error.contains("as an HTTP proxy would"), "{error}");

    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = ask(&through(&place, &format!("http://{nobody}")).await).await.unwrap_err().to_string();
    assert!(error.contains(&format!("the proxy {nobody} is not reached: Connection refused")), "{error}");
}
