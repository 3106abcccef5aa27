//! TLS, as `sslmode` asks for it.

use std::path::Path;
use std::process::Command;

use watchkeeper_sources::postgres::Postgres;

use crate::server::{Server, run};
use crate::tap::Tap;

/// An authority, and a certificate by it for `localhost`.
fn certificates(dir: &Path) {
    let script = r#"set -e; cd "$1"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=stranger -keyout other.key -out other.crt
openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr
printf 'subjectAltName=DNS:localhost' > names
openssl x509 -req -days 2 -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile names -out server.crt
chmod 644 *.crt; chmod 600 server.key; [ "$(id -u)" != 0 ] || chown postgres: server.key"#;
    run(Command::new("sh").args(["-c", script, "sh"]).arg(dir));
}

#[tokio::test]
async fn tls_is_as_strict_as_it_is_asked_to_be() {
    let files = tempfile::tempdir().unwrap();
    std::fs::set_permissions(files.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    certificates(files.path());
    let file = |name: &str| files.path().join(name).display().to_string();
    let (certificate, key) =
        (format!("ssl_cert_file={}", file("server.crt")), format!("ssl_key_file={}", file("server.key")));
    let server = Server::start(&["ssl=on", &certificate, &key]);
    let database = server.database().await;
    database
        .sql("CREATE TABLE items (name text PRIMARY KEY, value bigint); INSERT INTO items VALUES ('a', 1)")
        .await;
    // Says of itself whether it is encrypted.
    database
        .sql("CREATE VIEW me AS SELECT 'me' AS name, ssl::int::bigint AS value FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        .await;
    let source = |host: &str, parameters: &str| {
        let url = format!("postgres://postgres@{host}:{}/{}?{parameters}", server.port, database.name);
        Postgres::table(&url, "me").key(["name"])
    };
    let (ours, theirs) =
        (format!("&sslrootcert={}", file("ca.crt")), format!("&sslrootcert={}", file("other.crt")));
    for (host, parameters, encrypted) in [
        ("localhost", "sslmode=disable".to_owned(), 0),
        ("localhost", String::new(), 1),
        ("localhost", "sslmode=require".to_owned(), 1),
        ("127.0.0.1", format!("sslmode=verify-ca{ours}"), 1),
        ("localhost", format!("sslmode=verify-full{ours}"), 1),
    ] {
        let tap = Tap::on(&source(host, &parameters)).await;
        assert_eq!(tap.value("me"), Some(encrypted), "{parameters}");
    }
    for (host, parameters, why) in [
        ("127.0.0.1", format!("sslmode=verify-full{ours}"), "certificate"),
        ("localhost", format!("sslmode=verify-ca{theirs}"), "certificate"),
        ("localhost", format!("sslmode=require{theirs}"), "certificate"),
        ("localhost", format!("sslmode=verify-full&sslrootcert={}", file("names")), "there are none"),
    ] {
        let error = Tap::refusal(&source(host, &parameters)).await.to_string();
        assert!(error.contains(why), "{parameters}: {error}");
    }
    let replicated = Postgres::table(&format!("{}?sslmode=require", database.url), "items").replicate();
    replicated.install().await.unwrap();
    let mut tap = Tap::on(&replicated).await;
    database.put("a", 2).await;
    tap.until_value("a", 2).await;
}

#[tokio::test]
async fn a_server_without_tls_is_not_talked_to_if_tls_was_asked_for() {
    let server = Server::shared();
    let url = format!("{}?sslmode=require", server.url("postgres", "postgres"));
    let error = Tap::refusal(&Postgres::table(&url, "x")).await.to_string();
    assert!(error.contains("the server has no TLS"), "{error}");
}
