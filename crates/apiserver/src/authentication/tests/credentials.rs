use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use watchkeeper_front::{AUTHORITY_LIFE, Authority, Key};

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_restart_keeps_what_clients_know() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().join("new");
    let first = Credentials::load_or_create(Some(&directory)).unwrap();
    let issued = first.issue_client("jane", &[]).unwrap();
    let server = Server::with(Credentials::load_or_create(Some(&directory)).unwrap()).await;
    assert_eq!(first.authority_certificate(), server.credentials.authority_certificate());
    let stream = handshake(server.https, &first, "h2", Some(&issued)).await.unwrap();
    let mut client = Client::over(stream, "h2").await;
    assert!(text(client.get("/whoami", None).await).await.starts_with("jane "));
    assert_eq!(first.admin_token(), server.credentials.admin_token());

    assert_eq!(mode(&directory), 0o700);
    let mut files: Vec<_> = fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["admin.token", "ca.crt", "ca.key", "server.key"]);
    assert!(files.iter().all(|file| mode(file) == 0o600));
}

#[test]
fn tokens_and_keys_differ_from_one_directory_to_the_next() {
    let (first, second) =
        (Credentials::load_or_create(None).unwrap(), Credentials::load_or_create(None).unwrap());
    assert_ne!(first.admin_token(), second.admin_token());
    assert_ne!(first.authority_certificate(), second.authority_certificate());
    assert_eq!(first.admin_token().len(), 64);
}

#[test]
fn damaged_files_are_named_and_left_as_they_are() {
    let other = tempfile::tempdir().unwrap();
    Credentials::load_or_create(Some(other.path())).unwrap();
    let foreign = fs::read_to_string(other.path().join("ca.crt")).unwrap();
    for (name, content, complaint) in [
        ("ca.crt", "rubbish", "holds no certificate in PEM"),
        ("ca.crt", foreign.as_str(), "is not the certificate of the key beside it"),
        ("ca.key", "rubbish", "holds no PKCS #8 key in PEM"),
        (
            "server.key",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "not an ECDSA P-256 key",
        ),
        ("admin.token", "short", "at least 16 characters"),
        ("admin.token", "with a space in the middle", "all of them visible ASCII"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        Credentials::load_or_create(Some(directory.path())).unwrap();
        let file = directory.path().join(name);
        fs::write(&file, content).unwrap();
        let error = Credentials::load_or_create(Some(directory.path())).unwrap_err().to_string();
        assert!(error.starts_with(file.to_str().unwrap()) && error.contains(complaint), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
    }
}

#[test]
fn a_lost_key_of_the_authority_is_an_error_and_a_lost_certificate_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    let before = Credentials::load_or_create(Some(directory.path())).unwrap();
    fs::remove_file(directory.path().join("ca.crt")).unwrap();
    let after = Credentials::load_or_create(Some(directory.path())).unwrap();
    assert_ne!(before.authority_certificate(), after.authority_certificate());
    fs::remove_file(directory.path().join("ca.key")).unwrap();
    let error = Credentials::load_or_create(Some(directory.path())).unwrap_err().to_string();
    assert!(error.ends_with("ca.key: is missing, but ca.crt is there"), "{error}");
    assert!(!directory.path().join("ca.key").exists());
}

#[tokio::test]
async fn an_authority_near_its_end_is_renewed_for_the_same_key() {
    let directory = tempfile::tempdir().unwrap();
    let before = Credentials::load_or_create(Some(directory.path())).unwrap();
    let stored = fs::read(directory.path().join("ca.key")).unwrap();
    let key = || Key::from_pkcs8(PrivatePkcs8KeyDer::from_pem_slice(&stored).unwrap()).unwrap();
    for (left, renewed) in [(29, true), (31, false)] {
        let long_ago = SystemTime::now() - AUTHORITY_LIFE + Duration::from_secs(left * 24 * 3600);
        let old =
            pem::certificate(Authority::with_key("watchkeeper-ca", key(), long_ago).unwrap().certificate());
        fs::write(directory.path().join("ca.crt"), &old).unwrap();
        let after = Credentials::load_or_create(Some(directory.path())).unwrap();
        assert_eq!(after.authority_certificate() != old, renewed, "{left} days left");
        // Whoever trusted the authority before still does.
        let server = Server::with(after).await;
        handshake(server.https, &before, "h2", None).await.unwrap();
    }
}

#[test]
fn secrets_that_others_can_read_or_change_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let load = || {
        let credentials = Credentials::load_or_create(Some(path)).map_err(|error| error.to_string())?;
        crate::AccountTokens::load_or_create(Some(path)).map_err(|error| error.to_string())?;
        Ok::<_, String>(credentials)
    };
    load().unwrap();
    let set = |file: &Path, mode| fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    for (name, lax, can) in [
        ("ca.key", 0o640, "read"),
        ("server.key", 0o604, "read"),
        ("admin.token", 0o666, "change"),
        ("service-accounts.key", 0o644, "read"),
        ("ca.crt", 0o664, "change"),
    ] {
        let file = path.join(name);
        set(&file, lax);
        let shown = file.display();
        let wanted = format!("{shown}: others can {can} it (mode {lax:04o}): run chmod 600 {shown}");
        assert_eq!(load().unwrap_err(), wanted);
        set(&file, 0o600);
    }
    set(&path.join("ca.crt"), 0o644); // it is no secret
    load().unwrap();
    for lax in [0o777, 0o1777, 0o770] {
        set(path, lax);
        let wanted = format!("others can change it (mode {lax:04o}): run chmod 700 {}", path.display());
        assert!(load().unwrap_err().ends_with(&wanted));
    }
    set(path, 0o755); // the files are closed
    load().unwrap();
    // Only the superuser can give something away.
    if std::os::unix::fs::chown(path, Some(12345), None).is_ok() {
        assert!(load().unwrap_err().contains("belongs to another user (uid 12345)"));
    }
}
