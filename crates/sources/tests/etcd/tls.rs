//! TLS that does not match.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use watchkeeper_core::{Error, Freshness, Start};
use watchkeeper_etcd::Put;
use watchkeeper_etcd::testing::Server;
use watchkeeper_sources::etcd::Etcd;

use crate::tap::Tap;

/// An authority, and a certificate of it for `127.0.0.1`.
fn certificates(directory: &Path) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    std::fs::write(directory.join("ext"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    for arguments in [
        format!("req -x509 {key} -days 2 -keyout ca.key -out ca.crt -subj /CN=test"),
        format!("req {key} -keyout server.key -out server.csr -subj /CN=server"),
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out server.crt".into(),
    ] {
        let done = Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output().unwrap();
        assert!(done.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[tokio::test]
async fn a_member_whose_certificate_does_not_match_is_not_talked_to_and_that_is_said() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    certificates(ours.path());
    certificates(theirs.path());
    let file = |name: &str| ours.path().join(name).display().to_string();
    let flags = ["--cert-file", &*file("server.crt"), "--key-file", &*file("server.key")];
    let Some(server) = Server::with_tls(&flags).unwrap() else { return };
    let client = server.builder().ca_file(file("ca.crt")).build().unwrap();
    server.ready(&client).await.unwrap();
    client.put(&Put::new("/a/x", "1")).await.unwrap();
    let etcd = Etcd::prefix([server.endpoint()], "/a/").timeout(Duration::from_secs(5));
    assert_eq!(Tap::on(&etcd.clone().ca_file(file("ca.crt"))).await.values.len(), 1);
    for (what, etcd) in [
        ("another authority", etcd.clone().ca_file(theirs.path().join("ca.crt"))),
        ("another name", etcd.clone().ca_file(file("ca.crt")).server_name("elsewhere.test")),
    ] {
        let mut tap = Tap::open(&etcd, Start::Snapshot(Freshness::Any));
        let error = tap.failure().await;
        assert!(matches!(error, Error::Unavailable { answered: false, .. }), "{what}: {error}");
        assert!(error.to_string().contains("certificate"), "{what}: {error}");
        assert!(tap.values.is_empty(), "{what}");
    }
}
