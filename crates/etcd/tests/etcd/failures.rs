//! What goes wrong between a client and its servers.

use std::time::{Duration, Instant};

use watchkeeper_etcd::testing::{Proxy, Server};
use watchkeeper_etcd::{Client, Error, Keys, Notice, Put, Range, Watch};

use crate::server;

/// An endpoint at which nobody listens.
fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_passed_over() {
    let server = server!();
    let client = Client::builder([nowhere(), nowhere(), server.endpoint()]).build().unwrap();
    client.put(&Put::new("a", "1")).await.unwrap();
    let alone = Client::builder([nowhere()]).build().unwrap();
    let error = alone.put(&Put::new("a", "2")).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}: certainly not sent");
    assert!(error.to_string().contains("127.0.0.1:"), "{error}");
}

#[tokio::test]
async fn a_connection_that_was_cut_is_made_again() {
    let server = server!();
    let proxy = Proxy::to(server.port()).await.unwrap();
    let client = Client::builder([proxy.endpoint()]).build().unwrap();
    for round in 0..20 {
        client.range(&Range::of(Keys::one("a"))).await.unwrap_or_else(|error| panic!("{round}: {error}"));
        proxy.cut();
    }
    server.kill();
    let error = client.range(&Range::of(Keys::one("a"))).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_) | Error::Unknown(_)), "{error}");
    server.restart().await.unwrap();
    client.range(&Range::of(Keys::one("a"))).await.unwrap();
}

/// Which member leads, once there is one.
async fn leading(members: &[Server]) -> usize {
    let asked = members.iter().map(|member| member.builder().build().unwrap()).collect::<Vec<_>>();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        for (at, client) in asked.iter().enumerate() {
            let status = client.status().await.unwrap();
            if status.leader == status.header.member {
                return at;
            }
        }
        assert!(Instant::now() < deadline, "nobody leads");
    }
}

#[tokio::test]
async fn calls_go_to_the_member_that_leads_and_streams_stay_where_they_are() {
    let Some(members) = Server::cluster(3, &[]).await.unwrap() else { return };
    let mut proxies = Vec::new();
    for member in &members {
        proxies.push(Proxy::to(member.port()).await.unwrap());
    }
    let mut at = leading(&members).await;
    // The first endpoint is one that follows.
    proxies.rotate_left((at + 1) % 3);
    at = 2;
    let client = Client::builder(proxies.iter().map(Proxy::endpoint)).build().unwrap();
    let mut watcher = client.watcher().await.unwrap();
    watcher.watch(&Watch::of(Keys::prefix("/"))).await.unwrap();
    assert!(matches!(watcher.next().await.unwrap(), Notice::Created { .. }));
    assert!(client.find_leader().await.unwrap());
    let status = client.status().await.unwrap();
    assert_eq!(status.header.member, status.leader);
    eventually(|| proxies.iter().map(Proxy::connections).collect::<Vec<_>>() == [1, 0, 1]).await;
    assert!(client.find_leader().await.unwrap(), "it is there already");
    client.put(&Put::new("/a", "1")).await.unwrap();
    assert!(matches!(watcher.next().await.unwrap(), Notice::Changes { .. }));
    assert_eq!((proxies[0].connections(), proxies[at].connections()), (1, 1));

    // One that says nothing is not waited for, and nothing changes.
    let follower = Client::builder(proxies.iter().map(Proxy::endpoint)).build().unwrap();
    follower.put(&Put::new("/a", "2")).await.unwrap();
    proxies[at].mute(true);
    let begun = Instant::now();
    assert!(!follower.find_leader().await.unwrap());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let status = follower.status().await.unwrap();
    assert_ne!(status.header.member, status.leader);
    proxies[at].mute(false);

    // Another one leads.
    let to =
        client.members().await.unwrap().into_iter().find(|member| member.id != status.leader).unwrap().id;
    client.move_leader(to).await.unwrap();
    assert!(client.find_leader().await.unwrap());
    let status = client.status().await.unwrap();
    assert_eq!((status.header.member, status.leader), (to, to));
    client.put(&Put::new("/a", "3")).await.unwrap();
    for _ in 0..2 {
        assert!(matches!(watcher.next().await.unwrap(), Notice::Changes { .. }), "on the old connection");
    }
}

/// Waits until something is so.
async fn eventually(is_so: impl Fn() -> bool) {
    let all = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all).await.expect("it never comes");
}

#[tokio::test]
async fn a_write_without_an_answer_is_unknown_and_not_repeated_and_a_read_is_asked_elsewhere() {
    let server = server!();
    let (first, second) = (Proxy::to(server.port()).await.unwrap(), Proxy::to(server.port()).await.unwrap());
    let timeout = Duration::from_millis(500);
    let client = Client::builder([first.endpoint(), second.endpoint()]).timeout(timeout).build().unwrap();
    client.put(&Put::new("a", "1")).await.unwrap();
    first.mute(true);
    let begun = Instant::now();
    let error = client.put(&Put::new("a", "2")).await.unwrap_err();
    assert!(matches!(error, Error::Unknown(_)), "{error}");
    assert!(begun.elapsed() < timeout * 10);
    // The next endpoint knows what became of it: it was done once.
    let found = client.range(&Range::of(Keys::one("a"))).await.unwrap();
    assert_eq!((&*found.kvs[0].value, found.kvs[0].version), (&b"2"[..], 2));

    // The connection breaks before the answer: a read goes to the other endpoint, a write does not.
    let client = Client::builder([first.endpoint(), second.endpoint()]).build().unwrap();
    first.mute(false);
    client.range(&Range::of(Keys::one("a"))).await.unwrap();
    first.mute(true);
    let later = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        first.cut();
    };
    let look = Range::of(Keys::one("a"));
    let (found, ()) = tokio::join!(client.range(&look), later);
    assert_eq!(found.unwrap().kvs[0].version, 2);
}

#[tokio::test]
async fn a_write_on_a_connection_that_breaks_is_unknown_and_not_repeated() {
    let server = server!();
    let proxy = Proxy::to(server.port()).await.unwrap();
    let client = Client::builder([proxy.endpoint(), server.endpoint()]).build().unwrap();
    client.put(&Put::new("a", "1")).await.unwrap();
    assert_eq!(proxy.connections(), 1);
    proxy.mute(true);
    let later = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        proxy.cut();
    };
    let put = Put::new("a", "2");
    let (put, ()) = tokio::join!(client.put(&put), later);
    assert!(matches!(put, Err(Error::Unknown(_))), "{put:?}");
    let found = client.range(&Range::of(Keys::one("a"))).await.unwrap();
    assert_eq!((&*found.kvs[0].value, found.kvs[0].version), (&b"2"[..], 2), "once");
}

#[tokio::test]
async fn a_watch_on_a_dead_connection_ends() {
    let server = server!("--grpc-keepalive-min-time", "100ms");
    let proxy = Proxy::to(server.port()).await.unwrap();
    let client = Client::builder([proxy.endpoint()]).keep_alive(Duration::from_millis(600)).build().unwrap();
    let mut watcher = client.watcher().await.unwrap();
    watcher.watch(&Watch::of(Keys::prefix("/"))).await.unwrap();
    assert!(matches!(watcher.next().await.unwrap(), Notice::Created { .. }));
    // The other side is there and says nothing, not even that it is there.
    proxy.mute(true);
    let error =
        tokio::time::timeout(Duration::from_secs(20), watcher.next()).await.expect("it ends").unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    proxy.mute(false);
    client.range(&Range::of(Keys::one("a"))).await.unwrap();
}

#[tokio::test]
async fn what_does_not_speak_etcd_is_said_to() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let answering = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
    });
    let client = Client::builder([endpoint]).timeout(Duration::from_secs(2)).build().unwrap();
    let error = client.range(&Range::of(Keys::one("a"))).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_) | Error::Unknown(_)), "{error:?}");
    answering.abort();
    assert!(matches!(Client::builder(["ftp://a"]).build(), Err(Error::Settings(_))));
    assert!(matches!(Client::builder::<String>([]).build(), Err(Error::Settings(_))));
}
