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
async fn requests_that_others_could_cut_off_elsewhere_are_refused_and_their_connection_is_closed() {
    let server = Server::start().await;
    let next = "GET /whoami HTTP/1.1\r\nhost: a\r\n\r\n";
    for (number, head) in [
        "POST /read HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /read HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
        "POST /read HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello",
        "GET /whoami HTTP/1.1\nhost: a\n\n",
    ]
    .iter()
    .enumerate()
    {
        let mut stream = TcpStream::connect(server.http).await.unwrap();
        // Behind one that is as it should be, so that the second of the connection is meant.
        stream.write_all(format!("{next}{head}{next}").as_bytes()).await.unwrap();
        let mut read = Vec::new();
        tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut read)).await.unwrap().unwrap();
        let read = String::from_utf8(read).unwrap();
        let codes: Vec<&str> = read.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
        assert_eq!(codes, ["200", "400"], "{head:?}: {read}");
        assert_eq!(server.front.metrics().malformed_so_far(), number as u64 + 1);
    }
    assert_eq!(server.example.open.load(Ordering::SeqCst), 0);
}

/// A request as it may be written, and the length of its body.
fn written(random: &mut fastrand::Rng) -> (String, usize) {
    let body: String =
        (0..random.usize(..40)).map(|_| *random.choice(b"a\r\n0: ").unwrap() as char).collect();
    let name = |random: &mut fastrand::Rng, name: &str| match random.u8(..3) {
        0 => name.to_owned(),
        1 => name.to_uppercase(),
        _ => name[..1].to_uppercase() + &name[1..],
    };
    let space = |random: &mut fastrand::Rng| ["", " ", "\t", "  "][random.usize(..4)];
    let mut text =
        "\r\n".repeat(random.usize(..3)) + "POST /read HTTP/1.1\r\n" + &name(random, "host") + ": a\r\n";
    if random.bool() {
        text += &format!("x-content-length: {}\r\n", "5".repeat(random.usize(..200)));
    }
    if random.bool() {
        text += &(name(random, "content-length")
            + ":"
            + space(random)
            + &body.len().to_string()
            + space(random)
            + "\r\n\r\n");
        text += &body;
        return (text, body.len());
    }
    text +=
        &(name(random, "transfer-encoding") + ":" + space(random) + "chunked" + space(random) + "\r\n\r\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(random.usize(1..=rest.len()));
        let extension = ["", ";", ";x=y", " ;x=\"y\""][random.usize(..4)];
        text += &format!("{}{:X}{extension}\r\n{chunk}\r\n", "0".repeat(random.usize(..5)), chunk.len());
        rest = after;
    }
    text += ["0\r\n\r\n", "00;x\r\nx: y\r\ncontent-length: 7\r\n\r\n"][random.usize(..2)];
    (text, body.len())
}

#[tokio::test]
async fn requests_that_follow_each_other_at_once_are_answered_one_by_one_however_they_are_written() {
    let server = Server::start().await;
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..100 {
        let (requests, lengths): (Vec<String>, Vec<usize>) = (0..15).map(|_| written(&mut random)).unzip();
        let last = "GET /whoami HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        let all = requests.concat() + last;
        let (mut answers, mut sending) = TcpStream::connect(server.http).await.unwrap().into_split();
        let mut pieces = fastrand::Rng::with_seed(random.u64(..));
        let bytes = all.clone();
        let sender = tokio::spawn(async move {
            let mut rest = bytes.as_bytes();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(pieces.usize(1..=rest.len().min(300)));
                sending.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
                rest = after;
            }
            sending
        });
        let mut read = String::new();
        tokio::time::timeout(TIMEOUT, answers.read_to_string(&mut read)).await.unwrap().unwrap();
        drop(sender.await.unwrap());
        let bodies: Vec<&str> = read.split("\r\n\r\n").skip(1).collect();
        let told: Vec<usize> =
            bodies.iter().filter_map(|body| body.split("HTTP/").next()?.parse().ok()).collect();
        assert_eq!(told, lengths, "{all:?}: {read}");
    }
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
