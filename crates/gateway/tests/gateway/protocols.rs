//! HTTP/2, gRPC, WebSocket, server-sent events, TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, Method, Request, Version};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use rustls_pki_types::ServerName;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use watchkeeper_front::{
    Authority, Body, ClientAuth, Front, Key, Listener, Purpose, ServerCertificate, Tls, Upgrade, pem,
};
use watchkeeper_go::base64;

use crate::support::{Bench, Server, connect_http2, open, request, within};

fn stream(frames: mpsc::UnboundedReceiver<Bytes>) -> Body {
    Body::stream(futures_util::stream::unfold(frames, |mut frames| async {
        Some((frames.recv().await?, frames))
    }))
}

#[tokio::test]
async fn grpc_goes_through_with_its_trailers_both_ways_at_once() {
    let bench = Bench::start().await;
    // Answers each message when it comes, and says how it went at the end.
    let server = Server::start(|request: watchkeeper_front::Request| async move {
        assert_eq!(
            (request.version(), request.headers()["te"].as_bytes()),
            (Version::HTTP_2, &b"trailers"[..])
        );
        assert_eq!(request.uri().authority().unwrap().as_str(), "gateway.test");
        let frames =
            request.into_body().into_data_stream().map(|data| Ok::<_, String>(Frame::data(data.unwrap())));
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", "0".parse().unwrap());
        let frames = frames.chain(futures_util::stream::iter([Ok(Frame::trailers(trailers))]));
        let mut response = watchkeeper_front::Response::new(Body::wrap(StreamBody::new(frames)));
        response.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
        response
    });
    let spec = json!({"url": format!("http://{}", server.address), "protocol": "HTTP2"});
    bench.put("GatewayBackend", "grpc", spec).await;
    bench.route("grpc", "/", "grpc").await;
    let mut client = connect_http2(bench.address).await;
    let (messages, receiver) = mpsc::unbounded_channel();
    let asked = Request::post("http://gateway.test/echo.Echo/Talk")
        .header("te", "trailers")
        .header("content-type", "application/grpc")
        .body(stream(receiver))
        .unwrap();
    let response = within("the head", client.send_request(asked)).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    let mut body = response.into_body();
    for number in 0..5_u8 {
        messages.send(Bytes::from(vec![number; 3])).unwrap();
        let frame = within("a message", body.frame()).await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), vec![number; 3]);
    }
    drop(messages);
    let trailers = within("trailers", body.frame()).await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(trailers["grpc-status"], "0");
}

#[tokio::test]
async fn requests_of_http2_go_to_servers_of_http1_and_the_other_way_round() {
    let (bench, server) = (Bench::start().await, Server::echo("one"));
    bench.backend("one", &[&server]).await;
    let spec = json!({"url": format!("http://{}/base", server.address), "protocol": "HTTP2"});
    bench.put("GatewayBackend", "two", spec).await;
    bench.route("one", "/one", "one").await;
    bench.route("two", "/two", "two").await;
    let mut client = connect_http2(bench.address).await;
    let asked = Request::post("http://gateway.test/one").body(Body::whole("hello")).unwrap();
    let response = client.send_request(asked).await.unwrap();
    let told: serde_json::Value =
        serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!((&told["version"], &told["body"]), (&json!("HTTP/1.1"), &json!("hello")));
    assert_eq!(told["headers"]["host"], "gateway.test");
    let told = bench.get("/two?x").await.json();
    assert_eq!((&told["version"], &told["target"]), (&json!("HTTP/2.0"), &json!("/base/two?x")));
    assert_eq!(told["authority"], "gateway.test");
}

#[tokio::test]
async fn a_websocket_is_carried_both_ways_over_edits_of_its_route() {
    let bench = Bench::start().await;
    let server = Server::start(|request: watchkeeper_front::Request| async move {
        assert_eq!(request.headers()["upgrade"], "websocket");
        let mut response = watchkeeper_front::Response::new(Body::empty());
        *response.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert("upgrade", "websocket".parse().unwrap());
        response.headers_mut().insert("connection", "upgrade".parse().unwrap());
        response.headers_mut().insert("sec-websocket-accept", "abc".parse().unwrap());
        response.extensions_mut().insert(Upgrade::new(|mut stream| async move {
            let mut buffer = [0; 100];
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                stream.write_all(&buffer[..count].to_ascii_uppercase()).await.unwrap();
                stream.flush().await.unwrap();
            }
        }));
        response
    });
    bench.backend("one", &[&server]).await;
    bench.route("ws", "/", "one").await;
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    // What comes right behind the head belongs to the new protocol.
    let head =
        "GET /chat HTTP/1.1\r\nhost: gateway.test\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\nfirst";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    within("the first answer", async {
        while !read.ends_with(b"FIRST") {
            stream.read_buf(&mut read).await.unwrap();
        }
    })
    .await;
    let text = String::from_utf8(read).unwrap();
    assert!(text.starts_with("HTTP/1.1 101 ") && text.contains("sec-websocket-accept: abc\r\n"), "{text}");
    bench.remove("GatewayRoute", "ws").await;
    bench.remove("GatewayBackend", "one").await;
    assert_eq!(bench.get("/chat").await.status, 404);
    stream.write_all(b"second").await.unwrap();
    let mut answer = [0; 6];
    within("the second answer", stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"SECOND");
    stream.shutdown().await.unwrap();
    assert_eq!(within("the end", stream.read(&mut answer)).await.unwrap(), 0);
}

#[tokio::test]
async fn events_of_a_stream_leave_when_they_come() {
    let bench = Bench::start().await;
    let (sender, events) = mpsc::unbounded_channel::<mpsc::UnboundedSender<Bytes>>();
    let server = Server::start(move |_: watchkeeper_front::Request| {
        let sender = sender.clone();
        async move {
            let (pieces, receiver) = mpsc::unbounded_channel();
            sender.send(pieces).unwrap();
            let mut response = watchkeeper_front::Response::new(stream(receiver));
            response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
            response
        }
    });
    let mut events = events;
    bench.backend("one", &[&server]).await;
    let spec = json!({"rules": [{"backends": [{"name": "one"}], "filters": {"compress": {}}}]});
    bench.put("GatewayRoute", "all", spec).await;
    let mut asked = request(Method::GET, "/", Body::empty());
    asked.headers_mut().insert("accept-encoding", "gzip".parse().unwrap());
    let mut body = within("the head", open(bench.address, asked)).await.into_body();
    let pieces = within("the stream", events.recv()).await.unwrap();
    for number in 0..10 {
        let event = Bytes::from(format!("data: {number}\n\n"));
        pieces.send(event.clone()).unwrap();
        // The next one is sent only when this one has arrived: nothing is held back.
        assert_eq!(within("an event", body.frame()).await.unwrap().unwrap().into_data().unwrap(), event);
    }
    drop(body);
    within("the backend hears that the client left", pieces.closed()).await;
}

#[tokio::test]
async fn a_silent_response_is_cut_when_its_time_is_over() {
    let bench = Bench::start().await;
    let server = Server::start(|_: watchkeeper_front::Request| async move {
        let pieces =
            futures_util::stream::iter([Bytes::from("begin")]).chain(futures_util::stream::pending());
        watchkeeper_front::Response::new(Body::stream(pieces))
    });
    bench.backend("one", &[&server]).await;
    let spec = json!({"rules": [{"backends": [{"name": "one"}], "timeouts": {"idle": "100ms"}}]});
    bench.put("GatewayRoute", "all", spec).await;
    let mut body = open(bench.address, request(Method::GET, "/", Body::empty())).await.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "begin");
    assert!(
        within("the end", body.frame()).await.unwrap().is_err(),
        "it did not end well, and the client can tell"
    );
}

/// A certificate for a host with its key, as data of a Secret.
pub(crate) fn pair(authority: &Authority, host: &str) -> serde_json::Value {
    let key = Key::generate().unwrap();
    let names = [host.to_owned()];
    let certificate =
        authority.issue(&key, (host, &[]), &Purpose::Server(&names), SystemTime::now()).unwrap();
    let coded = |text: String| base64::encode(text);
    json!({
        "tls.crt": coded(pem::certificate(&certificate)),
        "tls.key": coded(pem::key(key.pkcs8())),
    })
}

/// The certificate that a client is shown that asks for a host.
pub(crate) async fn shown(address: SocketAddr, authority: &Authority, host: &str) -> Result<Vec<u8>, String> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate().clone()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let mut stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|error| error.to_string())?;
    let head = format!("GET /hello HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    Ok(stream.get_ref().1.peer_certificates().unwrap()[0].to_vec())
}

#[tokio::test]
async fn certificates_are_chosen_by_host_and_swapped_as_pairs() {
    let authority = Authority::with_key("test", Key::generate().unwrap(), SystemTime::now()).unwrap();
    let listener = json!({"port": 0, "protocol": "HTTPS", "tls": {"certificates": [
        {"secretName": "shop", "hosts": ["shop.test"]}, {"secretName": "rest"},
    ]}});
    let bench = Bench::with(listener).await;
    let respond = json!({"rules": [{"filters": {"respond": {"body": "hello"}}}]});
    bench.put("GatewayRoute", "hello", respond).await;
    let secret = |name: &str, data: serde_json::Value| {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data});
        bench.objects.put(&watchkeeper_core::Key::new(Some("Secret"), name), &object).unwrap();
    };
    let resolved = async |expected: bool| {
        let (id, mut handle) = (crate::support::id("GatewayListener", "web"), bench.handle.clone());
        within("the Secrets", async {
            while handle.report(&id).unwrap().resolved.is_true != expected {
                handle.changed().await;
            }
        })
        .await;
    };
    assert!(shown(bench.address, &authority, "shop.test").await.is_err());
    let report = bench.handle.report(&crate::support::id("GatewayListener", "web")).unwrap();
    assert!(
        report.resolved.message.contains("there is no Secret default/shop"),
        "{}",
        report.resolved.message
    );
    secret("shop", pair(&authority, "shop.test"));
    secret("rest", pair(&authority, "rest.test"));
    resolved(true).await;
    let shop = shown(bench.address, &authority, "shop.test").await.unwrap();
    assert_ne!(shop, shown(bench.address, &authority, "rest.test").await.unwrap());
    // A pair that does not fit together is not served: the one before is.
    let (mut broken, new) = (pair(&authority, "shop.test"), pair(&authority, "shop.test"));
    broken["tls.key"] = new["tls.key"].clone();
    secret("shop", broken);
    resolved(false).await;
    let report = bench.handle.report(&crate::support::id("GatewayListener", "web")).unwrap();
    let message = &report.resolved.message;
    assert!(
        message.starts_with("spec.tls.certificates[0].secretName: ")
            && message.ends_with("the certificate before is served"),
        "{message}"
    );
    assert_eq!(shown(bench.address, &authority, "shop.test").await.unwrap(), shop);
    secret("shop", new);
    resolved(true).await;
    within("the new pair", async {
        while shown(bench.address, &authority, "shop.test").await.unwrap() == shop {}
    })
    .await;
}

#[tokio::test]
async fn servers_are_spoken_to_over_tls_and_believed_by_their_authorities() {
    let authority = Authority::with_key("test", Key::generate().unwrap(), SystemTime::now()).unwrap();
    let data = pair(&authority, "inner.test");
    let part = |name: &str| base64::decode(data[name].as_str().unwrap()).unwrap();
    let certificate = ServerCertificate::from_pem(&part("tls.crt"), &part("tls.key")).unwrap();
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.address();
    let answer = |request: watchkeeper_front::Request| async move {
        watchkeeper_front::Response::new(Body::whole(format!("{:?}", request.version())))
    };
    let tls = Tls::new(certificate, &ClientAuth::Off).unwrap();
    let _front = Front::builder(answer).https(listener, tls).start().unwrap();
    let bench = Bench::start().await;
    bench.route("all", "/", "b").await;
    let ca = pem::certificate(authority.certificate());
    let spec = |protocol: &str, tls: serde_json::Value| json!({"url": format!("https://{address}"), "protocol": protocol, "tls": tls});
    bench.put("GatewayBackend", "b", spec("HTTP1", json!({"ca": ca, "serverName": "inner.test"}))).await;
    assert_eq!(bench.get("/").await.text(), "HTTP/1.1");
    bench.put("GatewayBackend", "b", spec("HTTP2", json!({"ca": ca, "serverName": "inner.test"}))).await;
    assert_eq!(bench.get("/").await.text(), "HTTP/2.0");
    // Connections that were opened for another name are not used for this one.
    for tls in [
        json!({"ca": ca, "serverName": "other.test"}),
        json!({"ca": ca}),
        json!({"serverName": "inner.test"}),
    ] {
        bench.put("GatewayBackend", "b", spec("HTTP1", tls.clone())).await;
        assert_eq!(bench.get("/").await.status, 502, "{tls}");
    }
}

#[tokio::test]
async fn a_proxy_says_where_the_client_is() {
    let bench = Bench::with(json!({"port": 0, "proxyProtocol": true, "trustedProxies": ["127.0.0.1"]})).await;
    let server = Server::echo("s");
    bench.backend("b", &[&server]).await;
    bench.route("r", "/", "b").await;
    let ask = async |from: [u8; 4], header: &[u8]| {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        let mut stream = socket.connect(bench.address).await.unwrap();
        let sent =
            [header, b"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 9.9.9.9\r\nConnection: close\r\n\r\n"]
                .concat();
        // One byte after the other: the header may come in any pieces.
        for byte in sent {
            if stream.write_all(&[byte]).await.is_err() {
                break;
            }
        }
        let mut answer = Vec::new();
        let _ = within("an answer", stream.read_to_end(&mut answer)).await;
        String::from_utf8(answer).unwrap()
    };
    let answer = ask([127, 0, 0, 1], b"PROXY TCP4 192.0.2.7 127.0.0.1 5000 80\r\n").await;
    assert!(answer.contains(r#""x-forwarded-for":"192.0.2.7""#), "{answer}");
    let answer = ask([127, 0, 0, 1], b"PROXY UNKNOWN\r\n").await;
    assert!(answer.contains(r#""x-forwarded-for":"9.9.9.9, 127.0.0.1""#), "{answer}");
    assert_eq!(ask([127, 0, 0, 1], b"").await, "", "no header");
    assert_eq!(ask([127, 0, 0, 2], b"PROXY TCP4 192.0.2.7 127.0.0.1 5000 80\r\n").await, "", "no proxy");
}

#[tokio::test]
async fn spans_are_exported_and_backends_are_told_the_trace() {
    let (sender, mut exported) = mpsc::unbounded_channel();
    let collector = Server::start(move |request: watchkeeper_front::Request| {
        let sender = sender.clone();
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().read(1 << 20).await.unwrap();
            sender.send((path, serde_json::from_slice::<serde_json::Value>(&body).unwrap())).unwrap();
            watchkeeper_front::Response::new(Body::whole("{}"))
        }
    });
    let otlp = watchkeeper_gateway::Otlp {
        endpoint: format!("http://{}", collector.address).parse().unwrap(),
        one_in: 1_000,
        service: "test".to_owned(),
    };
    let bench = Bench::tracing(otlp).await;
    let server = Server::echo("s");
    bench.backend("b", &[&server]).await;
    bench.route("r", "/", "b").await;
    let told =
        |answer: crate::support::Answer| answer.json()["headers"]["traceparent"].as_str().unwrap().to_owned();
    // The first of a thousand begins a trace that is exported, the second one that is not.
    let first = told(bench.get("/first").await);
    let second = told(bench.get("/second").await);
    assert!(
        first.ends_with("-01") && second.ends_with("-00") && first[3..35] != second[3..35],
        "{first} {second}"
    );
    let (trace, parent) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let given = format!("00-{trace}-{parent}-01");
    let passed = told(bench.send(Request::get("/third").header("traceparent", &given)).await);
    assert!(passed.starts_with(&format!("00-{trace}-")) && passed != given, "{passed}");
    let mut spans = Vec::new();
    while spans.len() < 2 {
        let (path, body) = within("spans", exported.recv()).await.unwrap();
        assert_eq!(path, "/v1/traces");
        let service = &body["resourceSpans"][0]["resource"]["attributes"][0];
        assert_eq!(
            (&service["key"], &service["value"]["stringValue"]),
            (&json!("service.name"), &json!("test"))
        );
        spans.extend(body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone());
    }
    assert_eq!((&spans[0]["traceId"], spans[0].get("parentSpanId")), (&json!(first[3..35]), None));
    assert_eq!(spans[0]["name"], "GET default/r");
    assert_eq!((&spans[1]["traceId"], &spans[1]["parentSpanId"]), (&json!(trace), &json!(parent)));
    assert_eq!(spans[1]["spanId"], passed[36..52]);
    let code = spans[1]["attributes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|each| each["key"] == "http.response.status_code");
    assert_eq!(code.unwrap()["value"]["intValue"], "200");
}
