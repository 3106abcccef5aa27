use std::process::Command;

use super::*;

fn openssl(arguments: &[&str]) -> String {
    let output = Command::new("openssl").args(arguments).output().expect("openssl is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn openssl_verifies_what_the_authority_issues() {
    let directory = tempfile::tempdir().unwrap();
    let credentials = Credentials::load_or_create(Some(directory.path())).unwrap();
    let issued = credentials.issue_client("jane", &["developers".into(), "on-call".into()]).unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("jane.crt"), &issued.certificate).unwrap();
    std::fs::write(path("jane.key"), &issued.key).unwrap();

    let strict = ["verify", "-x509_strict", "-purpose", "sslclient", "-CAfile"];
    let verified = openssl(&[&strict[..], &[&path("ca.crt"), &path("jane.crt")]].concat());
    assert!(verified.ends_with("OK\n"), "{verified}");
    let subject = openssl(&["x509", "-in", &path("jane.crt"), "-noout", "-subject", "-nameopt", "RFC2253"]);
    assert_eq!(subject, "subject=CN=jane,O=on-call,O=developers\n");
    let text = openssl(&["x509", "-in", &path("jane.crt"), "-noout", "-text"]);
    assert!(text.contains("Version: 3") && text.contains("TLS Web Client Authentication"), "{text}");
    openssl(&["pkey", "-in", &path("jane.key"), "-noout", "-check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_reaches_the_server_by_all_of_its_names() {
    let server = Server::start().await;
    let directory = tempfile::tempdir().unwrap();
    let authority = directory.path().join("ca.crt");
    std::fs::write(&authority, server.credentials.authority_certificate()).unwrap();
    let port = server.https.port();
    let names = ["localhost", "127.0.0.1", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];
    for name in names {
        for version in ["--http1.1", "--http2"] {
            let mut curl = Command::new("curl");
            curl.args(["-sS", version, "--noproxy", "*", "--resolve", &format!("{name}:{port}:127.0.0.1")]);
            curl.arg("--cacert").arg(&authority).arg(format!("https://{name}:{port}/whoami"));
            let output = tokio::task::spawn_blocking(move || curl.output()).await.unwrap();
            let output = output.expect("curl is installed");
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.stdout, b"system:anonymous  system:unauthenticated false", "{name} {error}");
        }
    }
}

#[test]
fn names_that_cannot_be_in_a_certificate_are_refused() {
    let credentials = Credentials::load_or_create(None).unwrap();
    assert!(credentials.issue_client("", &[]).is_err());
    assert!(credentials.issue_client("a", &[String::new()]).is_err());
    assert!(credentials.issue_client("a\nb", &[]).is_err());
    for bad in ["", "a b", "https://a", "b\u{fc}cher.example"] {
        assert!(credentials.tls(&any(), &[bad.into()]).is_err(), "{bad}");
    }
}

/// The PEM files of a server whose certificate and whose clients' certificates others issued.
struct Files {
    _directory: tempfile::TempDir,
    certificate: std::path::PathBuf,
    key: std::path::PathBuf,
    authorities: std::path::PathBuf,
}

impl Files {
    fn of(server: &Credentials, clients: &Credentials) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let [certificate, key, authorities] =
            ["apiserver.crt", "apiserver.key", "clients.crt"].map(|name| directory.path().join(name));
        let issued = server.issue_server(&[]).unwrap();
        std::fs::write(&certificate, issued.certificate).unwrap();
        std::fs::write(&key, issued.key).unwrap();
        std::fs::write(&authorities, clients.authority_certificate()).unwrap();
        Self { _directory: directory, certificate, key, authorities }
    }

    fn serve(&self) -> (Front, SocketAddr) {
        let tls = Tls::files(TlsFiles {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            client_authorities: Some(self.authorities.clone()),
        });
        let listener = any();
        let address = listener.address();
        let options = Options {
            https: (listener, tls.unwrap()),
            http: None,
            authenticators: vec![Box::new(ClientCertificates)],
            limits: Limits::default(),
            clock: Clock::default(),
            anonymous: true,
        };
        (listen(options, WhoAmI::default()).unwrap(), address)
    }
}

#[tokio::test]
async fn certificates_from_files_are_shown_and_believed() {
    let [ours, clients, strangers] = [(); 3].map(|()| Credentials::load_or_create(None).unwrap());
    let (_front, address) = Files::of(&ours, &clients).serve();
    let jane = clients.issue_client("jane", &["developers".into()]).unwrap();
    let mut client = Client::over(handshake(address, &ours, "h2", Some(&jane)).await.unwrap(), "h2").await;
    assert_eq!(text(client.get("/whoami", None).await).await, "jane  developers|system:authenticated false");
    let anybody = handshake(address, &ours, "h2", None).await.unwrap();
    let anybody = Client::over(anybody, "h2").await.get("/whoami", None).await;
    assert_eq!(text(anybody).await, "system:anonymous  system:unauthenticated false");
    assert!(handshake(address, &clients, "h2", None).await.is_err(), "the server is not of that authority");
    let stranger = strangers.issue_client("jane", &[]).unwrap();
    // The answer to a bad certificate may come after the client believes that all is well.
    if let Ok(stream) = handshake(address, &ours, "http/1.1", Some(&stranger)).await {
        assert!(Client::over(stream, "http/1.1").await.send(get("/whoami", None)).await.is_err());
    }
}

#[test]
fn certificates_are_made_where_there_are_none_and_kept_where_there_are() {
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = ["certs/a.crt", "certs/a.key"].map(|name| directory.path().join(name));
    let read = || (std::fs::read(&certificate).unwrap(), std::fs::read(&key).unwrap());
    Credentials::create_server_files(&certificate, &key, &["api.example".into()]).unwrap();
    let made = read();
    Credentials::create_server_files(&certificate, &key, &[]).unwrap();
    assert!(made == read());
    let path = certificate.to_str().unwrap();
    let verified = openssl(&["verify", "-CAfile", path, "-verify_hostname", "api.example", path]);
    assert!(verified.ends_with("OK\n"), "{verified}");
    std::fs::remove_file(&key).unwrap();
    let error = Credentials::create_server_files(&certificate, &key, &[]).unwrap_err().to_string();
    assert!(error.ends_with("a.key: is missing, but the certificate is there"), "{error}");
}
