//! Sockets that come from elsewhere, and that go on without this front.

use super::*;

#[tokio::test]
async fn a_socket_that_was_bound_elsewhere_is_served() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = Listener::from_std(socket).unwrap().named("probes");
    assert_eq!(listener.name(), Some("probes"));
    let address = listener.address();
    let _front = Front::builder(Shared(Arc::default())).http(listener).start().unwrap();
    let mut client = Client::over(TcpStream::connect(address).await.unwrap(), "http/1.1").await;
    assert_eq!(client.get("/whoami", None).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn what_is_on_its_way_is_answered_before_a_front_goes() {
    for alpn in BOTH {
        let server = Server::start().await;
        let mut busy = server.client(alpn).await;
        // Connected, and has not asked yet.
        let fresh = server.tls(alpn).await;
        let answer = tokio::spawn(async move { text(busy.get("/slow", None).await).await });
        server.example.arrived.notified().await;
        let shared = Arc::clone(&server.front.shared);
        let leaving = tokio::spawn(server.front.hand_over(TIMEOUT));
        until(|| shared.leaving.is_cancelled()).await;
        // So long may a request be on its way.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut fresh = Client::over(fresh, alpn).await;
        assert_eq!(text(fresh.get("/whoami", None).await).await, "stranger with 0 certificates", "{alpn}");
        server.example.finish.notify_one();
        assert_eq!(answer.await.unwrap(), "done");
        assert_eq!(leaving.await.unwrap(), Drained::Clean);
        assert!(TcpStream::connect(server.https).await.is_err(), "nobody else has the socket");
    }
}

#[tokio::test]
async fn a_socket_that_was_handed_over_is_served_by_the_next_front() {
    let listener = any();
    let address = listener.address();
    let next = listener.try_clone().unwrap();
    let first = Front::builder(Shared(Arc::default())).http(listener).start().unwrap();
    let mut kept = Client::over(TcpStream::connect(address).await.unwrap(), "http/1.1").await;
    assert_eq!(kept.get("/whoami", None).await.status(), 200);
    let next =
        Front::builder(|_: Request| async { Response::new("next".into()) }).http(next).start().unwrap();
    let shared = Arc::clone(&first.shared);
    let leaving = tokio::spawn(first.hand_over(TIMEOUT));
    until(|| shared.leaving.is_cancelled()).await;
    // Whoever is connected gets one more answer, and is told to go.
    let answer = kept.send(get("/whoami", None)).await.unwrap();
    assert_eq!(answer.headers()["connection"], "close");
    assert_eq!(text(answer).await, "stranger with 0 certificates");
    let mut other = Client::over(TcpStream::connect(address).await.unwrap(), "http/1.1").await;
    assert_eq!(text(other.get("/whoami", None).await).await, "next");
    assert_eq!(leaving.await.unwrap(), Drained::Clean);
    drop(next);
}
