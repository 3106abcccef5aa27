use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// The sockets that this process has open.
fn sockets() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

async fn still_serves(server: &Server) {
    let mut client = server.client("h2").await;
    assert_eq!(client.get("/whoami", None).await.status(), 200);
}

#[tokio::test]
async fn garbage_on_the_ports_closes_that_connection_only() {
    let server = Server::start().await;
    let mut healthy = server.client("h2").await;
    let garbage: Vec<Vec<u8>> = vec![
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xff; 10_000],
        b"\x16\x03\x01\xff\xff\x01\x00".to_vec(),
        b"\n".repeat(100_000),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nrubbish".to_vec(),
    ];
    for port in [server.https, server.http] {
        for bytes in &garbage {
            let mut socket = TcpStream::connect(port).await.unwrap();
            let _ = socket.write_all(bytes).await; // may be closed before all is written
            let _ = socket.shutdown().await;
            let mut rest = Vec::new();
            let read = tokio::time::timeout(TIMEOUT, socket.read_to_end(&mut rest)).await;
            assert!(read.is_ok(), "the connection is still open after {:?}", &bytes[..bytes.len().min(20)]);
        }
    }
    assert_eq!(healthy.get("/whoami", None).await.status(), 200);
}

#[tokio::test]
async fn garbage_inside_of_tls_closes_that_connection_only() {
    let server = Server::start().await;
    for alpn in ["h2", "http/1.1"] {
        let mut stream = server.tls(alpn).await;
        stream.write_all(&[0xfe; 5000]).await.unwrap();
        let mut rest = Vec::new();
        tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut rest)).await.unwrap().ok();
    }
    still_serves(&server).await;
}

#[tokio::test]
async fn too_many_and_too_large_headers_are_refused() {
    let server = Server::start().await;
    let large = "x".repeat(1 << 20);
    let many: String = (0..300).map(|number| format!("h{number}: x\r\n")).collect();
    for headers in [format!("large: {large}\r\n"), many] {
        let mut stream = server.tls("http/1.1").await;
        let request = format!("GET /whoami HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        let _ = stream.write_all(request.as_bytes()).await; // may be closed before all is written
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 431");
    }
    let mut client = server.client("h2").await;
    let mut request = get("/whoami", None);
    request.headers_mut().insert("large", large.parse().unwrap());
    assert!(!client.send(request).await.is_ok_and(|response| response.status() == 200));
    still_serves(&server).await;
}

#[tokio::test]
async fn clients_and_servers_of_different_authorities_do_not_talk() {
    let server = Server::start().await;
    let stranger = Site::new();
    let error = handshake(server.https, &stranger.authority(), "h2", None).await.unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");

    let (certificate, key) = stranger.client("admin");
    let issued = Some((certificate.as_str(), key.as_str()));
    // In TLS 1.3 the client learns with its first read that its certificate was not good enough.
    let refused = match handshake(server.https, &server.site.authority(), "http/1.1", issued).await {
        Ok(mut stream) => {
            let _ = stream.write_all(b"GET /whoami HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
            stream.read_to_end(&mut Vec::new()).await.is_err()
        }
        Err(_) => true,
    };
    assert!(refused);
    assert_eq!(server.example.open.load(Ordering::SeqCst), 0);
    still_serves(&server).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_connects_and_says_nothing_is_left_alone_only_so_long() {
    let server = Server::start().await;
    let before = tokio::time::Instant::now();
    let mut silent = TcpStream::connect(server.https).await.unwrap();
    assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0);
    assert!(before.elapsed() <= Duration::from_secs(15), "{:?}", before.elapsed());

    for alpn in ["h2", "http/1.1"] {
        let before = tokio::time::Instant::now();
        let mut stream = server.tls(alpn).await;
        let mut seen = Vec::new();
        let _ = stream.read_to_end(&mut seen).await; // with or without saying goodbye
        assert!(before.elapsed() <= Duration::from_secs(12), "{alpn} {:?}", before.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_never_ends_is_given_up() {
    let server = Server::start().await;
    for (begin, seconds) in [
        ("GET / HTTP/1.1\r\nslow: ", 12),
        ("POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc", 100),
    ] {
        let before = tokio::time::Instant::now();
        let mut stream = server.tls("http/1.1").await;
        stream.write_all(begin.as_bytes()).await.unwrap();
        let mut seen = Vec::new();
        let _ = stream.read_to_end(&mut seen).await; // with or without saying goodbye
        assert!(before.elapsed() <= Duration::from_secs(seconds), "{begin:?} {:?}", before.elapsed());
    }
    assert_eq!(server.example.open.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn thousands_of_connections_closed_at_once_leave_nothing_behind() {
    let server = Server::start().await;
    still_serves(&server).await;
    for _ in 0..10 {
        let mut open = Vec::new();
        for number in 0..200 {
            let mut socket = TcpStream::connect(server.https).await.unwrap();
            if number % 2 == 0 {
                socket.write_all(b"\x16\x03\x01\x01\x00").await.unwrap(); // the beginning of a handshake
            }
            open.push(socket);
        }
        for _ in 0..10 {
            let mut stream = server.tls("h2").await;
            stream.write_all(b"PRI * HTTP/2.0").await.unwrap();
            drop(stream);
        }
        drop(open);
        still_serves(&server).await;
    }
    let (before, front) = (sockets(), server.front);
    assert_eq!(front.shutdown(TIMEOUT).await, Drained::Clean);
    assert!(sockets() <= before);
}
