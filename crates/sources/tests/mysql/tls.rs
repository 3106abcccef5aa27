//! TLS, as `ssl-mode` asks for it.

use std::path::Path;
use std::process::Command;

use watchkeeper_sources::mysql::Mysql;

use crate::server::{Server, run};
use crate::tap::Tap;

/// An authority, and a certificate by it for `localhost`.
fn certificates(dir: &Path) {
    let script = r#"set -e; cd "$1"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=stranger -keyout other.key -out other.crt
openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr
printf 'subjectAltName=DNS:localhost' > names
openssl x509 -req -days 2 -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile names -out server.crt"#;
    run(Command::new("sh").args(["-c", script, "sh"]).arg(dir));
}

#[tokio::test]
async fn tls_is_as_strict_as_it_is_asked_to_be() {
    let files = tempfile::tempdir().unwrap();
    certificates(files.path());
    let file = |name: &str| files.path().join(name).display().to_string();
    let server = Server::start(&[
        &format!("--ssl-cert={}", file("server.crt")),
        &format!("--ssl-key={}", file("server.key")),
    ]);
    let database = server.database();
    // Says of itself whether it is encrypted.
    database.sql(
        "CREATE SQL SECURITY INVOKER VIEW me AS SELECT 'me' AS name, CAST(variable_value <> '' AS INT) AS value \
         FROM information_schema.session_status WHERE variable_name = 'Ssl_cipher'",
    );
    let source = |host: &str, parameters: &str| {
        let url = format!("mysql://root@{host}:{}/{}?{parameters}", server.port, database.name);
        Mysql::table(&url, "me").key(["name"])
    };
    let (ours, theirs) = (format!("&ssl-ca={}", file("ca.crt")), format!("&ssl-ca={}", file("other.crt")));
    for (host, parameters, encrypted) in [
        ("localhost", "ssl-mode=disabled".to_owned(), 0),
        ("localhost", String::new(), 1),
        ("localhost", "ssl-mode=required".to_owned(), 1),
        ("127.0.0.1", format!("ssl-mode=verify_ca{ours}"), 1),
        ("localhost", format!("ssl-mode=verify_identity{ours}"), 1),
    ] {
        let tap = Tap::on(&source(host, &parameters)).await;
        assert_eq!(tap.value("me"), Some(encrypted), "{parameters}");
    }
    for (host, parameters, why) in [
        ("127.0.0.1", format!("ssl-mode=verify_identity{ours}"), "certificate"),
        ("localhost", format!("ssl-mode=verify_ca{theirs}"), "certificate"),
        ("localhost", format!("ssl-mode=required{theirs}"), "certificate"),
        ("localhost", format!("ssl-mode=verify_identity&ssl-ca={}", file("names")), "there are none"),
    ] {
        let error = Tap::refusal(&source(host, &parameters)).await.to_string();
        assert!(error.contains(why), "{parameters}: {error}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_not_talked_to_if_tls_was_asked_for() {
    let server = Server::shared();
    let url = format!("{}?ssl-mode=required", server.url("root", "mysql"));
    let error = Tap::refusal(&Mysql::table(&url, "x")).await.to_string();
    assert!(error.contains("the server has no TLS"), "{error}");
}
