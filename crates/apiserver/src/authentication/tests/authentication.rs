use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use bytes::Bytes;
use http_body_util::Full;
use watchkeeper_front::private_file;

use super::client::TIMEOUT;
use super::*;

#[tokio::test]
async fn the_admin_token_is_admin_and_does_not_reach_the_service() {
    let server = Server::start().await;
    for alpn in BOTH {
        let token = format!("Bearer {}", server.credentials.admin_token());
        let response = server.client(alpn).await.get("/whoami", Some(&token)).await;
        assert_eq!(text(response).await, "admin  system:masters|system:authenticated false", "{alpn}");
    }
}

#[tokio::test]
async fn a_client_that_shows_nothing_is_anonymous() {
    let server = Server::start().await;
    for alpn in BOTH {
        let response = server.client(alpn).await.get("/whoami", None).await;
        assert_eq!(text(response).await, "system:anonymous  system:unauthenticated false");
    }
}

#[tokio::test]
async fn a_wrong_token_is_answered_with_the_status_of_kubernetes() {
    let server = Server::start().await;
    let almost = &server.credentials.admin_token()[1..];
    for wrong in ["Bearer nobody", "bearer \u{fc}", &format!("Bearer {almost}")] {
        let response = server.client("h2").await.get("/whoami", Some(wrong)).await;
        assert_eq!(response.status(), 401, "{wrong}");
        assert_eq!(response.headers()["content-type"], "application/json");
        let expected = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;
        assert_eq!(text(response).await.trim_end(), expected);
    }
    assert_eq!(server.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_is_answered_although_nobody_reads_the_body_that_comes_with_it() {
    let server = Server::start().await;
    let body = Bytes::from(vec![b'x'; 1 << 20]);
    for alpn in BOTH {
        for number in 0..200 {
            let mut client = server.client(alpn).await;
            let request = http::Request::put("https://localhost/read")
                .header("host", "localhost")
                .header("authorization", "Bearer nobody")
                .body(Full::new(body.clone()))
                .unwrap();
            let answer = tokio::time::timeout(TIMEOUT, client.send(request)).await.expect("in time");
            let answer = answer.unwrap_or_else(|error| panic!("{alpn} {number}: {error:?}"));
            assert_eq!(answer.status(), 401);
            assert!(text(answer).await.contains("Unauthorized"), "{alpn} {number}");
        }
    }
}

#[tokio::test]
async fn schemes_other_than_bearer_and_empty_tokens_count_as_nothing() {
    let server = Server::start().await;
    let mut client = server.client("http/1.1").await;
    for nothing in ["Basic YWRtaW46eA==", "Bearer", "Bearer ", "Bearer  two-spaces"] {
        let response = client.get("/whoami", Some(nothing)).await;
        assert_eq!(text(response).await, "system:anonymous  system:unauthenticated false", "{nothing}");
    }
    let token = format!("  bEaReR {} and more", server.credentials.admin_token());
    assert!(text(client.get("/whoami", Some(&token)).await).await.starts_with("admin "));
}

#[tokio::test]
async fn a_client_certificate_names_the_user_and_all_groups_and_wins_over_a_token() {
    let server = Server::start().await;
    let groups = ["developers", "on-call", "gr\u{fc}n"].map(str::to_owned);
    let issued = server.credentials.issue_client("jane", &groups).unwrap();
    for alpn in BOTH {
        let mut client = Client::over(server.tls(alpn, Some(&issued)).await, alpn).await;
        let expected = "jane  developers|on-call|gr\u{fc}n|system:authenticated false";
        assert_eq!(text(client.get("/whoami", None).await).await, expected);
        assert_eq!(text(client.get("/whoami", Some("Bearer nobody")).await).await, expected);
    }
}

#[tokio::test]
async fn token_files_are_read_as_kube_apiserver_reads_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.csv");
    let content = "t1,alice,1\r\n\nt2,bob,2,\"dev,ops\",ignored\nt3,\"say \"\"hi\"\"\",3,one\n,nobody,4\nt1,carol,5,\"\"";
    private_file::write(&file, content.as_bytes()).unwrap();
    let mut tokens = Tokens::new();
    tokens.add_file(&file).unwrap();
    let who = |token: &'static str| {
        let presented = Presented { token: Some(token.as_bytes()), certificate: None };
        let tokens = &tokens;
        async move { tokens.authenticate(&presented).await.unwrap() }
    };
    let bob = who("t2").await.unwrap();
    assert_eq!((bob.user.as_str(), bob.uid.as_str()), ("bob", "2"));
    assert_eq!(bob.groups, ["dev", "ops", "system:authenticated"]);
    assert_eq!(who("t3").await.unwrap().user, "say \"hi\"");
    let carol = who("t1").await.unwrap();
    assert_eq!(
        (carol.user.as_str(), carol.groups.as_slice()),
        ("carol", &["system:authenticated".to_owned()][..])
    );
    assert_eq!(who("").await, None);
    assert_eq!(who("t").await, None);
    assert_eq!(format!("{tokens:?}"), r#"{"bob", "say \"hi\"", "carol"}"#);
}

#[test]
fn a_token_file_is_read_again_and_a_bad_one_leaves_the_tokens_that_are_in_force() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.csv");
    private_file::write(&file, b"old,alice,1\nadmin,mallory,2\n").unwrap();
    let mut tokens = Tokens::new();
    tokens.add_file(&file).unwrap();
    tokens.add("admin", Identity::admin());
    let who = |token: &str| tokens.find(token.as_bytes()).map(|identity| identity.user);
    assert_eq!(who("old").as_deref(), Some("alice"));
    assert!(!tokens.refresh().unwrap());
    std::fs::write(&file, "new,bob,1\nadmin,mallory,2\n").unwrap();
    assert!(tokens.refresh().unwrap());
    assert_eq!((who("old"), who("new").as_deref()), (None, Some("bob")));
    std::fs::write(&file, "broken").unwrap();
    assert!(tokens.refresh().is_err());
    assert!(!tokens.refresh().unwrap(), "it is said once");
    std::fs::remove_file(&file).unwrap();
    assert!(tokens.refresh().is_err());
    assert_eq!(who("new").as_deref(), Some("bob"));
    assert_eq!(who("admin"), Some(Identity::admin().user), "no file takes a fixed token over");
}

#[test]
fn a_token_file_that_others_can_change_gives_nobody_a_token() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.csv");
    let write = |content: &str, mode: u32| {
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, content).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    };
    private_file::write(&file, b"old,alice,1\n").unwrap();
    let mut tokens = Tokens::new();
    tokens.add_file(&file).unwrap();
    let who = |token: &str| tokens.find(token.as_bytes()).map(|identity| identity.user);
    for (mode, can) in [(0o666, "change"), (0o640, "read")] {
        write("new,mallory,1,system:masters\n", mode);
        let shown = file.display();
        let wanted = format!("{shown}: others can {can} it (mode {mode:04o}): run chmod 600 {shown}");
        assert_eq!(tokens.refresh().unwrap_err().to_string(), wanted);
        assert!(!tokens.refresh().unwrap(), "it is said once");
        assert_eq!((who("old").as_deref(), who("new")), (Some("alice"), None), "{mode:o}");
        assert_eq!(Tokens::new().add_file(&file).unwrap_err().to_string(), wanted);
        write("old,alice,1\n", mode);
        assert!(!tokens.refresh().unwrap(), "there is nothing new in it");
    }
    write("new,bob,1\n", 0o644);
    tokens.refresh().unwrap_err();
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    assert!(tokens.refresh().unwrap());
    assert_eq!((who("old"), who("new").as_deref()), (None, Some("bob")));

    let mut trusting = Tokens::new();
    write("one,alice,1\n", 0o644);
    trusting.add_file_if(&file, |_| Ok(())).unwrap();
    write("two,alice,1\n", 0o644);
    assert!(trusting.refresh().unwrap());
    assert!(trusting.find(b"two").is_some());
}

#[test]
fn a_bad_token_file_is_refused_with_the_line_and_without_the_token() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.csv");
    for (content, complaint) in [
        ("t,u,1\nsecret,alice", "line 2 has 2 columns, at least 3 are needed: token, user name, user uid"),
        ("sec\"ret,alice,1", "line 1: a quote in a value that does not begin with one"),
        ("\"secret,alice,1", "line 1: a quote is not closed"),
        ("\"secret\"x,alice,1", "line 1: text behind a closing quote"),
    ] {
        private_file::write(&file, content.as_bytes()).unwrap();
        let error = Tokens::new().add_file(&file).unwrap_err().to_string();
        assert_eq!(error, format!("token file {}: {complaint}", file.display()));
    }
    let error = Tokens::new().add_file(&directory.path().join("none")).unwrap_err().to_string();
    assert!(error.contains("none: No such file"), "{error}");
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    let directory = tempfile::tempdir().unwrap();
    let credentials = Credentials::load_or_create(Some(directory.path())).unwrap();
    let token = credentials.admin_token();
    let mut tokens = Tokens::new();
    tokens.add(token, Identity::admin());
    let presented = Presented { token: Some(token.as_bytes()), certificate: None };
    let kubeconfig = Kubeconfig::new("https://localhost", &credentials).unwrap();
    let issued = credentials.issue_client("jane", &[]).unwrap();
    let shown = format!("{credentials:?} {tokens:?} {presented:?} {kubeconfig:?} {issued:?}");
    assert!(!shown.contains(token) && !shown.contains("KEY"), "{shown}");
    let mode = std::fs::metadata(directory.path().join("admin.token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_certificate_that_expires_is_refused_on_the_connection_that_it_opened() {
    let later = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let clock = Clock::new({
        let later = Arc::clone(&later);
        move || std::time::SystemTime::now() + Duration::from_secs(later.load(Ordering::SeqCst))
    });
    let credentials = Credentials::load_or_create(None).unwrap();
    let server = Server::by(credentials, clock).await;
    let issued = server.credentials.issue_client("jane", &["developers".into()]).unwrap();
    for alpn in BOTH {
        later.store(0, Ordering::SeqCst);
        let mut client = Client::over(server.tls(alpn, Some(&issued)).await, alpn).await;
        assert!(text(client.get("/whoami", None).await).await.starts_with("jane "));
        // Certificates are good for a year.
        later.store(364 * 24 * 3600, Ordering::SeqCst);
        assert_eq!(client.get("/whoami", None).await.status(), 200, "{alpn}");
        later.store(366 * 24 * 3600, Ordering::SeqCst);
        let response = client.get("/whoami", None).await;
        assert_eq!(response.status(), 401, "{alpn}");
        assert!(text(response).await.contains(r#""reason":"Unauthorized""#));
        // As with kube-apiserver, whoever has another credential needs no certificate.
        let response = client.get("/whoami", Some(&server.token())).await;
        assert!(text(response).await.starts_with("admin "), "{alpn}");
    }
}

#[tokio::test]
async fn a_panic_is_answered_with_the_status_of_kubernetes() {
    let server = Server::start().await;
    for alpn in BOTH {
        let mut client = server.client(alpn).await;
        let response = client.get("/panic", None).await;
        assert_eq!(response.status(), 500);
        assert!(text(response).await.contains(r#""reason":"InternalError""#));
        assert_eq!(client.get("/whoami", None).await.status(), 200);
    }
}

#[tokio::test]
async fn plain_http_is_refused_where_others_could_read_tokens() {
    let credentials = Credentials::load_or_create(None).unwrap();
    let listener = any();
    let tls = credentials.tls(&listener, &[]).unwrap();
    let options = Options {
        https: (listener, tls),
        http: Some(Listener::bind("0.0.0.0:0".parse().unwrap()).unwrap()),
        authenticators: vec![],
        limits: Limits::default(),
        clock: Clock::default(),
        anonymous: true,
    };
    let error = listen(options, WhoAmI::default()).unwrap_err().to_string();
    assert!(error.contains("only served on loopback addresses, not on 0.0.0.0:"), "{error}");
}

#[tokio::test]
async fn connections_count_as_those_of_their_users() {
    let server = Server::start().await;
    let mut registry = prometheus_client::registry::Registry::default();
    server._front.metrics().register(&mut registry);
    let open = || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let count = |client: &str| {
            let begin = format!("connections{{client=\"{client}\"}} ");
            text.lines().find_map(|line| line.strip_prefix(&begin)).unwrap_or("0").to_owned()
        };
        [count("authenticated"), count("stranger")]
    };
    let issued = server.credentials.issue_client("jane", &[]).unwrap();
    let _certificate = server.tls("h2", Some(&issued)).await;
    client::until(|| open() == ["1", "0"]).await;
    let mut token = server.client("h2").await;
    text(token.get("/whoami", None).await).await;
    assert_eq!(open(), ["1", "1"], "anonymous clients count as strangers");
    text(token.get("/whoami", Some(&server.token())).await).await;
    assert_eq!(open(), ["2", "0"]);
}
