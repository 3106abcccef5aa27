//! Certificates, names and passwords.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use watchkeeper_etcd::testing::Server;
use watchkeeper_etcd::{Error, Keys, Notice, Put, Range, Watch};

use crate::server;

fn openssl(directory: &Path, arguments: &str) {
    let done = Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output().unwrap();
    assert!(done.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&done.stderr));
}

/// An authority, and a certificate of it for each name.
fn certificates(directory: &Path, names: &[&str]) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(directory, &format!("req -x509 {key} -days 2 -keyout ca.key -out ca.crt -subj /CN=test"));
    std::fs::write(directory.join("ext"), "subjectAltName=IP:127.0.0.1,DNS:etcd.test\n").unwrap();
    for name in names {
        openssl(directory, &format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"));
        openssl(
            directory,
            &format!(
                "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out {name}.crt"
            ),
        );
    }
}

#[tokio::test]
async fn tls_is_spoken_with_certificates_on_both_sides() {
    let directory = tempfile::tempdir().unwrap();
    certificates(directory.path(), &["server", "client"]);
    let stranger = tempfile::tempdir().unwrap();
    certificates(stranger.path(), &["client"]);
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (cert, key, ca) = (file("server.crt"), file("server.key"), file("ca.crt"));
    let flags = ["--cert-file", &*cert, "--key-file", &*key, "--trusted-ca-file", &*ca, "--client-cert-auth"];
    let Some(server) = Server::with_tls(&flags).unwrap() else { return };
    let trusting = server.builder().ca_file(&ca).timeout(Duration::from_secs(3));
    let known = trusting.clone().identity_files(file("client.crt"), file("client.key"));
    let client = known.build().unwrap();
    server.ready(&client).await.unwrap();
    client.put(&Put::new("a", "1")).await.unwrap();
    // By another name of the certificate, too.
    known.clone().server_name("etcd.test").build().unwrap().put(&Put::new("a", "2")).await.unwrap();

    let refused = |error: Error| matches!(error, Error::Unavailable(_) | Error::Unknown(_));
    let read = Range::of(Keys::one("a"));
    for (what, builder) in [
        ("no certificate", trusting.clone()),
        ("another authority's certificate", {
            let path = stranger.path();
            trusting.clone().identity_files(path.join("client.crt"), path.join("client.key"))
        }),
        ("a server of another authority", known.clone().ca_file(stranger.path().join("ca.crt"))),
        ("a server of another name", known.clone().server_name("elsewhere.test")),
        ("no file", known.clone().ca_file(file("none.crt"))),
    ] {
        let error = builder.build().unwrap().range(&read).await.unwrap_err();
        assert!(refused(error.clone()), "{what}: {error}");
        assert!(!error.to_string().contains("PRIVATE"), "{error}");
    }
}

#[tokio::test]
async fn certificates_that_are_replaced_are_used_by_the_next_connection() {
    let directory = tempfile::tempdir().unwrap();
    certificates(directory.path(), &["server", "client", "renewed"]);
    let stranger = tempfile::tempdir().unwrap();
    certificates(stranger.path(), &["client"]);
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (cert, key, ca) = (file("server.crt"), file("server.key"), file("ca.crt"));
    let flags = ["--cert-file", &*cert, "--key-file", &*key, "--trusted-ca-file", &*ca, "--client-cert-auth"];
    let Some(server) = Server::with_tls(&flags).unwrap() else { return };
    let trusting = server.builder().ca_file(&ca).timeout(Duration::from_secs(3));
    let other = trusting.clone().identity_files(file("renewed.crt"), file("renewed.key")).build().unwrap();
    let client = trusting.identity_files(file("client.crt"), file("client.key")).build().unwrap();
    server.ready(&other).await.unwrap();
    let read = Range::of(Keys::one("a"));
    client.range(&read).await.unwrap();
    let replace = |from: &Path, name: &str| {
        for kind in ["crt", "key"] {
            std::fs::copy(from.join(format!("{name}.{kind}")), file(&format!("client.{kind}"))).unwrap();
        }
    };
    replace(stranger.path(), "client");
    client.range(&read).await.expect("a connection that is open stays");
    server.kill();
    server.launch_again();
    server.ready(&other).await.unwrap();
    let error = client.range(&read).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_) | Error::Unknown(_)), "{error}");
    replace(directory.path(), "renewed");
    client.range(&read).await.expect("what was renewed is shown");
}

/// Asks the gateway of etcd for HTTP.
fn gateway(server: &Server, path: &str, body: &str) {
    let url = format!("{}/v3/auth/{path}", server.endpoint());
    let done = Command::new("curl")
        .args(["-sS", "--fail-with-body", "-X", "POST", &url, "-d", body])
        .output()
        .unwrap();
    assert!(done.status.success(), "{path}: {}", String::from_utf8_lossy(&done.stdout));
}

/// "a" and "b" in base64 are "YQ==" and "Yg==".
fn enable_login(server: &Server) {
    for (user, password) in [("root", "r00t"), ("reader", "s3cret")] {
        gateway(server, "user/add", &format!(r#"{{"name":"{user}","password":"{password}"}}"#));
    }
    gateway(server, "role/add", r#"{"name":"root"}"#);
    gateway(server, "role/add", r#"{"name":"a"}"#);
    gateway(server, "role/grant", r#"{"name":"a","perm":{"permType":"READ","key":"YQ=="}}"#);
    gateway(server, "user/grant", r#"{"user":"root","role":"root"}"#);
    gateway(server, "user/grant", r#"{"user":"reader","role":"a"}"#);
    gateway(server, "enable", "{}");
}

#[tokio::test]
async fn a_user_logs_in_again_when_the_token_has_run_out() {
    let server = server!("--auth-token-ttl", "1");
    let before = server.builder().user("reader", "s3cret").build().unwrap();
    before.range(&Range::of(Keys::one("a"))).await.expect("nobody has to log in yet");
    enable_login(&server);
    before.range(&Range::of(Keys::one("a"))).await.expect("it logs in when it has to");

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    std::fs::write(&file, "s3cret\n").unwrap();
    let reader = server.builder().password_file("reader", &file).build().unwrap();
    reader.range(&Range::of(Keys::one("a"))).await.unwrap();
    let mut watcher = reader.watcher().await.unwrap();
    watcher.watch(&Watch::of(Keys::one("a"))).await.unwrap();
    assert!(matches!(watcher.next().await.unwrap(), Notice::Created { .. }));
    watcher.watch(&Watch::of(Keys::one("b"))).await.unwrap();
    let Notice::Cancelled { reason, .. } = watcher.next().await.unwrap() else { panic!() };
    assert!(reason.contains("permission denied"), "{reason}");

    let denied = reader.put(&Put::new("a", "1")).await.unwrap_err();
    assert!(denied.is_denied(), "{denied}");
    // Tokens that are not used for a second are forgotten by etcd.
    tokio::time::sleep(Duration::from_millis(3500)).await;
    reader.range(&Range::of(Keys::one("a"))).await.expect("it logs in again");

    let wrong = server.builder().user("reader", "wrong-word").build().unwrap();
    let error = wrong.range(&Range::of(Keys::one("a"))).await.unwrap_err();
    assert!(error.is_denied(), "{error}");
    let nobody = server.builder().build().unwrap();
    let error = nobody.range(&Range::of(Keys::one("a"))).await.unwrap_err();
    assert!(error.is_denied(), "{error}");
    for shown in [format!("{error} {error:?}"), format!("{wrong:?}"), format!("{reader:?}")] {
        assert!(!shown.contains("wrong-word") && !shown.contains("s3cret"), "{shown}");
    }
}
