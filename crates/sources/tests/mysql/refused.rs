//! What cannot be watched, and what is said then.

use watchkeeper_core::Error;
use watchkeeper_sources::mysql::Mysql;

use crate::server::Server;
use crate::tap::Tap;

/// The error of a source, which has to be of this class and say this.
async fn refused(source: &Mysql, class: &str, text: &str) {
    let error = Tap::refusal(source).await;
    assert_eq!(error.class(), class, "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

#[tokio::test]
async fn passwords_are_proved_and_never_shown() {
    let server = Server::shared();
    let database = server.database();
    database.items();
    database.put("a", 1);
    let user = format!("locked_{}", database.name);
    database.sql(&format!(
        "CREATE USER {user} IDENTIFIED BY 'open sesame'; GRANT SELECT ON {}.* TO {user}",
        database.name
    ));
    let url = |password: &str| server.url(&format!("{user}:{password}"), &database.name);
    let tap = Tap::on(&Mysql::table(&url("open%20sesame"), "items")).await;
    assert_eq!(tap.value("a"), Some(1));
    for password in ["closed", ""] {
        let wrong = Mysql::table(&url(password), "items");
        let error = Tap::refusal(&wrong).await;
        assert!(matches!(error, Error::Denied(_)), "{error}");
        assert!(
            !format!("{error:?} {wrong:?} {}", watchkeeper_core::Source::name(&wrong)).contains("closed")
        );
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "wrong\n").unwrap();
    let source = Mysql::table(&server.url(&user, &database.name), "items").password_file(file.path());
    assert!(matches!(Tap::refusal(&source).await, Error::Denied(_)));
    std::fs::write(file.path(), "open sesame\n").unwrap();
    assert_eq!(Tap::on(&source).await.value("a"), Some(1));
    // Over the socket of this machine, too; as whoever asks, if the account is like that.
    let socket =
        format!("mysql://{user}:open%20sesame@/{}?socket={}", database.name, server.path("socket").display());
    assert_eq!(Tap::on(&Mysql::table(&socket, "items")).await.value("a"), Some(1));
    let me = String::from_utf8(std::process::Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let socket =
        format!("mariadb://{}@/{}?socket={}", me.trim(), database.name, server.path("socket").display());
    if me.trim() != "root" {
        database.sql(&format!("CREATE USER {} IDENTIFIED VIA unix_socket", me.trim()));
        database.sql(&format!("GRANT SELECT ON {}.* TO {}", database.name, me.trim()));
    }
    assert_eq!(Tap::on(&Mysql::table(&socket, "items")).await.value("a"), Some(1));
}

#[tokio::test]
async fn what_is_not_there_is_missing_and_says_what_to_do() {
    let server = Server::shared();
    let database = server.database();
    let items = database.items();
    refused(&database.source("nowhere"), "missing", "there is no such table").await;
    refused(&Mysql::table(&server.url("root", "nowhere"), "x"), "missing", "nowhere").await;
    refused(&items.clone().key(["nowhere"]), "fatal", "items has no column nowhere").await;
    refused(&items.clone().namespace("name"), "fatal", "not one of several columns of the key").await;
    refused(&items.clone().without(["name"]), "fatal", "a column of the key (name) is left out").await;
    refused(&Mysql::from_url(&database.url), "fatal", "it names no table").await;
    refused(&Mysql::table("mysql://root@127.0.0.1:1/x", "x"), "unavailable", "refused").await;
    refused(&Mysql::table("postgres://x", "x"), "fatal", "expected mysql://").await;
    database.sql("CREATE TABLE keyless (name varchar(9), value bigint)");
    refused(&database.source("keyless"), "fatal", "keyless has no primary key: name the columns").await;
    drop(Tap::on(&database.source("keyless").key(["name"])).await);
    drop(Tap::on(&Mysql::from_url(&format!("{}?table=items", database.url))).await);
    // A table that goes while it is watched is missing, and nothing is deleted.
    let mut tap = Tap::on(&items).await;
    database.sql("DROP TABLE items");
    assert_eq!(tap.failure().await.class(), "missing");
}

#[tokio::test]
async fn rights_that_are_missing_are_named() {
    let server = Server::shared();
    let database = server.database();
    database.items();
    let user = format!("guest_{}", database.name);
    database.sql(&format!("CREATE USER {user}; CREATE TABLE other (name varchar(9) PRIMARY KEY)"));
    let source = Mysql::table(&server.url(&user, &database.name), "items");
    refused(&source, "denied", "Access denied").await;
    database.sql(&format!("GRANT SELECT ON {}.other TO {user}", database.name));
    refused(&source, "missing", "no right to read it").await;
    database.sql(&format!("GRANT SELECT ON {}.items TO {user}", database.name));
    drop(Tap::on(&source).await);
}

#[tokio::test]
async fn what_is_no_database_is_said_to_be_none() {
    use tokio::io::AsyncWriteExt as _;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("mysql://me:word@127.0.0.1:{}/db", listener.local_addr().unwrap().port());
    let answering = tokio::spawn(async move {
        for answer in [&b"\x0a\0\0\0HTTP/1.1 4"[..], b"\xff\xff\xff\x07abc", b"\0\0\0\0", b""] {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(answer).await.unwrap();
        }
    });
    for _ in 0..4 {
        let error = Tap::refusal(&Mysql::table(&url, "items")).await;
        assert_eq!(error.class(), "unavailable", "{error}");
        assert!(!error.to_string().contains("word"));
    }
    answering.await.unwrap();
}

/// A server that asks for a password in the newer way of MySQL, and what it is sent.
async fn asked(answers: &'static [&'static [u8]]) -> (Error, Vec<u8>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("mysql://me:open%20sesame@127.0.0.1:{}/db", listener.local_addr().unwrap().port());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut greeting = b"\x0a8.4.0\0\x01\0\0\0abcdefgh\0".to_vec();
        // Everything but TLS.
        greeting.extend_from_slice(&[0xff, 0xf7, 45, 2, 0, 0xff, 0xff, 21]);
        greeting.extend_from_slice(&[0; 10]);
        greeting.extend_from_slice(b"ijklmnopqrst\0caching_sha2_password\0");
        let mut sent = Vec::new();
        let mut packet = vec![greeting.len() as u8, 0, 0, 0];
        packet.extend(greeting);
        stream.write_all(&packet).await.unwrap();
        for answer in answers {
            let mut bytes = [0; 1024];
            let length = stream.read(&mut bytes).await.unwrap();
            sent.extend_from_slice(&bytes[..length]);
            let _ = stream.write_all(answer).await;
        }
        let _ = stream.read_to_end(&mut sent).await;
        sent
    });
    let error = Tap::refusal(&Mysql::table(&url, "items")).await;
    (error, server.await.unwrap())
}

#[tokio::test]
async fn a_password_is_not_sent_over_a_connection_that_others_can_read() {
    // The server does not remember the password, and wants to see it.
    let (error, sent) = asked(&[b"\x02\0\0\x02\x01\x04"]).await;
    assert!(error.to_string().contains("ssl-mode=required"), "{error}");
    let shown = String::from_utf8_lossy(&sent).into_owned();
    assert!(shown.contains("me") && shown.contains("caching_sha2_password"), "{shown:?}");
    assert!(!shown.contains("open sesame"), "{shown:?}");
    // It remembers it: the proof is enough, and the first statement comes.
    const REFUSED: &[u8] = b"\x0f\0\0\x01\xff\xcb\x04#42000denied";
    let (error, sent) = asked(&[b"\x02\0\0\x02\x01\x03\x07\0\0\x03\0\0\0\x02\0\0\0", REFUSED]).await;
    assert!(matches!(&error, Error::Denied(said) if said.contains("error 1227")), "{error}");
    let shown = String::from_utf8_lossy(&sent).into_owned();
    assert!(shown.contains("SET NAMES utf8mb4") && !shown.contains("open sesame"), "{shown:?}");
    // A way that is not known is named.
    let (error, _) = asked(&[b"\x14\0\0\x02\xfeclient_ed25519\0abcd"]).await;
    assert!(error.to_string().contains("logs in by client_ed25519"), "{error}");
}
