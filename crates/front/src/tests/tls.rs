//! Certificates that change while a server runs.

use std::fs;
use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

fn write(directory: &Path, (certificate, key): &(String, String), authorities: &str) {
    for (name, text) in [("tls.crt", certificate), ("tls.key", key), ("ca.crt", &authorities.to_owned())] {
        fs::write(directory.join(name), text).unwrap();
    }
}

fn files(directory: &Path) -> TlsFiles {
    TlsFiles {
        certificate: directory.join("tls.crt"),
        key: directory.join("tls.key"),
        client_authorities: Some(directory.join("ca.crt")),
    }
}

fn serve(tls: &Tls) -> (Front, SocketAddr) {
    let listener = any();
    let address = listener.address();
    (Front::builder(Shared(Arc::default())).https(listener, tls.clone()).start().unwrap(), address)
}

/// Whether the server lets a client in that trusts one site and has the certificate of another.
async fn lets_in(address: SocketAddr, trusted: &Site, client: Option<&Site>) -> bool {
    let issued = client.map(|site| site.client("jane"));
    let issued = issued.as_ref().map(|(certificate, key)| (certificate.as_str(), key.as_str()));
    let Ok(mut stream) = handshake(address, &trusted.authority(), "http/1.1", issued).await else {
        return false;
    };
    // In TLS 1.3 the client learns with its first read that its certificate was not good enough.
    let _ = stream.write_all(b"GET /whoami HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    stream.read_to_end(&mut Vec::new()).await.is_ok_and(|length| length > 0)
}

#[tokio::test]
async fn what_is_replaced_counts_for_whoever_connects_next() {
    let (old, new) = (Site::new(), Site::new());
    let tls = old.tls();
    let (_front, address) = serve(&tls);
    let mut before =
        Client::over(handshake(address, &old.authority(), "h2", None).await.unwrap(), "h2").await;
    assert!(lets_in(address, &old, Some(&old)).await && !lets_in(address, &new, None).await);

    let (certificate, key) = new.server();
    let certificate = ServerCertificate::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    tls.replace(certificate, &ClientAuth::Optional(vec![new.0.certificate().clone()])).unwrap();
    assert!(lets_in(address, &new, Some(&new)).await && lets_in(address, &new, None).await);
    assert!(!lets_in(address, &old, None).await, "the old certificate is shown no more");
    assert!(!lets_in(address, &new, Some(&old)).await, "the old authority is believed no more");
    assert_eq!(before.get("/whoami", None).await.status(), 200, "connections that are open stay");
}

#[tokio::test]
async fn clients_can_be_required_to_have_a_certificate() {
    let site = Site::new();
    let (certificate, key) = site.server();
    let certificate = ServerCertificate::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    let authorities = vec![site.0.certificate().clone()];
    let (_front, address) =
        serve(&Tls::new(certificate.clone(), &ClientAuth::Required(authorities)).unwrap());
    assert!(!lets_in(address, &site, None).await);
    assert!(lets_in(address, &site, Some(&site)).await);
    let (_front, address) = serve(&Tls::new(certificate, &ClientAuth::Off).unwrap());
    assert!(lets_in(address, &site, None).await);
}

#[tokio::test]
async fn the_service_sees_the_certificate_of_a_client() {
    let server = Server::start().await;
    let (certificate, key) = server.site.client("jane");
    for alpn in BOTH {
        let shown = Some((certificate.as_str(), key.as_str()));
        let stream = handshake(server.https, &server.site.authority(), alpn, shown).await.unwrap();
        let answer = text(Client::over(stream, alpn).await.get("/whoami", None).await).await;
        assert_eq!(answer, "stranger with 1 certificates");
    }
}

/// Shows one certificate to those who ask for `localhost`, and none to others.
struct ByName(ServerCertificate);

impl CertificateSource for ByName {
    fn certificate(&self, host: Option<&str>) -> Option<ServerCertificate> {
        (host == Some("localhost")).then(|| self.0.clone())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_chooses_the_certificate_by_name() {
    let site = Site::new();
    let (certificate, key) = site.server();
    let certificate = ServerCertificate::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    let (_front, address) = serve(&Tls::new(ByName(certificate), &ClientAuth::Off).unwrap());
    assert!(lets_in(address, &site, None).await);
    // By its address, no name is sent.
    let url = format!("https://{address}/whoami");
    let curl = move || std::process::Command::new("curl").args(["-sk", "--noproxy", "*", &url]).output();
    // Not every machine has curl.
    let Ok(output) = tokio::task::spawn_blocking(curl).await.unwrap() else { return };
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[tokio::test(start_paused = true)]
async fn files_are_read_again_while_the_server_runs() {
    let (old, new) = (Site::new(), Site::new());
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &old.server(), &old.authority());
    let tls = Tls::files(files(directory.path())).unwrap();
    let (_front, address) = serve(&tls);
    assert!(lets_in(address, &old, Some(&old)).await);
    write(directory.path(), &new.server(), &new.authority());
    let followed = async {
        while !lets_in(address, &new, Some(&new)).await {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(15), followed).await.expect("the files are not followed");
    assert!(!lets_in(address, &old, None).await);
}

#[tokio::test(start_paused = true)]
async fn files_are_read_again_after_a_panic() {
    let (old, new) = (Site::new(), Site::new());
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &old.server(), &old.authority());
    let tls = Tls::files(files(directory.path())).unwrap();
    let (listener, supervisor) = (any(), Supervisor::default());
    let address = listener.address();
    let front = Front::builder(Shared(Arc::default())).https(listener, tls).supervisor(supervisor.clone());
    let _front = front.start().unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    supervisor.inject("certificates");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(supervisor.panics("certificates"), 1);
    assert!(lets_in(address, &old, Some(&old)).await, "what is in use stays");
    write(directory.path(), &new.server(), &new.authority());
    let followed = async {
        while !lets_in(address, &new, Some(&new)).await {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(15), followed).await.expect("the files are not followed");
}

#[test]
fn files_that_cannot_be_used_are_named_once_and_change_nothing() {
    let site = Site::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    write(path, &site.server(), &site.authority());
    let tls = Tls::files(files(path)).unwrap();
    assert!(!tls.refresh().unwrap(), "nothing has changed");
    // As if somebody had written the one and not yet the other.
    fs::write(path.join("tls.crt"), site.server().0).unwrap();
    let error = tls.refresh().unwrap_err().to_string();
    assert!(error.starts_with("the certificate and the key of the server: "), "{error}");
    assert!(!tls.refresh().unwrap(), "it is said once");
    write(path, &site.server(), &site.authority());
    assert!(tls.refresh().unwrap());
    fs::write(path.join("ca.crt"), "x").unwrap();
    assert!(tls.refresh().unwrap_err().to_string().ends_with("ca.crt: holds no certificate in PEM"));
}

#[test]
fn files_that_are_not_what_they_should_be_are_named() {
    let site = Site::new();
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &site.server(), &site.authority());
    let good = files(directory.path());
    let error = |files: TlsFiles| Tls::files(files).unwrap_err().to_string();
    let (certificate, key) = (good.certificate.clone(), good.key.clone());
    let wrong = error(TlsFiles { certificate: key.clone(), ..good.clone() });
    assert!(wrong.ends_with("tls.key: holds no certificate in PEM"), "{wrong}");
    let wrong = error(TlsFiles { key: certificate.clone(), ..good.clone() });
    assert!(wrong.ends_with("tls.crt: holds no key in PEM"), "{wrong}");
    let wrong = error(TlsFiles { client_authorities: Some(key), ..good.clone() });
    assert!(wrong.ends_with("tls.key: holds no certificate in PEM"), "{wrong}");
    let wrong = error(TlsFiles { certificate: certificate.with_file_name("none"), ..good });
    assert!(wrong.contains("none: "), "{wrong}");
}
