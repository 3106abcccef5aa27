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
    let port = server.front.https_address().port();
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
        assert!(tls::server_config(&credentials, &[bad.into()]).is_err(), "{bad}");
    }
}
