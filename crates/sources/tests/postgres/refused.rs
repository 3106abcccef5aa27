//! What cannot be watched: what is said about it, and what is not.

use watchkeeper_core::Error;
use watchkeeper_sources::postgres::Postgres;

use crate::server::{Server, connect};
use crate::tap::Tap;

#[tokio::test]
async fn passwords_are_asked_for_and_never_told() {
    let server = Server::shared();
    let database = server.database().await;
    database.items().await;
    let admin = connect(&server.url("postgres", "postgres")).await;
    // Other tests do not have these.
    admin
        .batch_execute(
            "CREATE ROLE locked LOGIN PASSWORD 'open sesame'; SET password_encryption = 'md5'; CREATE ROLE old LOGIN PASSWORD 'open sesame'",
        )
        .await
        .unwrap();
    database.sql("GRANT SELECT ON items TO locked, old").await;
    database.put("a", 1).await;
    for user in ["locked", "old"] {
        let url = |password: &str| server.url(&format!("{user}:{password}"), &database.name);
        let tap = Tap::on(&Postgres::table(&url("open%20sesame"), "items")).await;
        assert_eq!(tap.value("a"), Some(1));
        let wrong = Postgres::table(&url("closed"), "items");
        let error = Tap::refusal(&wrong).await;
        assert!(matches!(error, Error::Denied(_)), "{error}");
        assert!(
            !format!("{error:?} {wrong:?} {}", watchkeeper_core::Source::name(&wrong)).contains("closed")
        );
        let none = Tap::refusal(&Postgres::table(&server.url(user, &database.name), "items")).await;
        assert!(none.to_string().contains("asks for a password, and there is none"), "{none}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "wrong\n").unwrap();
    let source = Postgres::table(&server.url("locked", &database.name), "items").password_file(file.path());
    assert!(matches!(Tap::refusal(&source).await, Error::Denied(_)));
    std::fs::write(file.path(), "open sesame\n").unwrap();
    assert_eq!(Tap::on(&source).await.value("a"), Some(1));
    let source = source.password_file("nowhere");
    assert!(Tap::refusal(&source).await.to_string().contains("the password in nowhere"));
}

/// The error of a source, which has to be of this class and say this.
async fn refused(source: &Postgres, class: &str, text: &str) {
    let error = Tap::refusal(source).await;
    assert_eq!(error.class(), class, "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

#[tokio::test]
async fn what_is_not_there_is_missing_and_says_what_to_do() {
    let server = Server::shared();
    let database = server.database().await;
    let items = database.items().await;
    refused(&database.source("nowhere"), "missing", "there is no such table").await;
    refused(&Postgres::table(&server.url("postgres", "nowhere"), "x"), "missing", "nowhere").await;
    refused(&items.clone().key(["nowhere"]), "fatal", "items has no column nowhere").await;
    refused(&items.clone().namespace("name"), "fatal", "not one of several columns of the key").await;
    refused(&items.clone().without(["name"]), "fatal", "a column of the key (name) is left out").await;
    refused(
        &items.clone().replicate(),
        "missing",
        "CREATE PUBLICATION \"watchkeeper_public_items\" FOR TABLE ONLY \"public\".\"items\"",
    )
    .await;
    refused(&items.clone().replicate_durably("No-Name"), "fatal", "lower-case letters").await;
    refused(&Postgres::from_url(&database.url), "fatal", "it names no table").await;
    refused(&Postgres::table("postgres://postgres@127.0.0.1:1/x", "x"), "unavailable", "refused").await;
    refused(&Postgres::table("mysql://x", "x"), "fatal", "expected postgres://").await;
    drop(Tap::on(&Postgres::from_url(&format!("{}?table=items", database.url))).await);
}

#[tokio::test]
async fn rights_that_are_missing_are_named() {
    let server = Server::shared();
    let database = server.database().await;
    database.items().await.replicate().install().await.unwrap();
    let user = format!("guest_{}", database.name);
    database.sql(&format!("CREATE ROLE {user} LOGIN")).await;
    let source = Postgres::table(&server.url(&user, &database.name), "items");
    refused(&source, "denied", "permission denied for table items").await;
    database.sql(&format!("GRANT SELECT ON items TO {user}")).await;
    drop(Tap::on(&source).await);
    refused(&source.clone().replicate(), "denied", "ALTER ROLE ... REPLICATION").await;
    assert!(matches!(source.clone().notify().install().await, Err(Error::Denied(_) | Error::Fatal(_))));
    // A table that hides rows from us is not one that has fewer.
    database.sql("ALTER TABLE items ENABLE ROW LEVEL SECURITY").await;
    refused(&source, "denied", "row-level security").await;
    database
        .sql(&format!("ALTER ROLE {user} REPLICATION; ALTER TABLE items DISABLE ROW LEVEL SECURITY"))
        .await;
    drop(Tap::on(&source.replicate()).await);
}

#[tokio::test]
async fn a_key_that_the_log_does_not_have_is_refused() {
    let database = Server::shared().database().await;
    database.sql("CREATE TABLE keyless (name text, value bigint)").await;
    refused(&database.source("keyless"), "fatal", "keyless has no primary key: name the columns").await;
    drop(Tap::on(&database.source("keyless").key(["name"])).await);
    let source = database.source("keyless").key(["name"]).replicate();
    // To publish it would make updates fail.
    let error = source.install().await.unwrap_err().to_string();
    assert!(error.contains("REPLICA IDENTITY FULL"), "{error}");
    database.sql("ALTER TABLE keyless REPLICA IDENTITY FULL").await;
    let error = source.install().await.unwrap_err().to_string();
    assert!(error.contains("no unique index"), "{error}");
    database.sql("CREATE UNIQUE INDEX ON keyless (name)").await;
    source.install().await.unwrap();
    drop(Tap::on(&source).await);
    let items = database.items().await;
    refused(&items.key(["value"]).replicate(), "fatal", "the log does not say the value of rows").await;
}

#[tokio::test]
async fn publications_that_leave_something_out_are_refused() {
    let database = Server::shared().database().await;
    let source = database.items().await.replicate();
    database
        .sql(
            "CREATE TABLE others (); CREATE PUBLICATION other FOR TABLE others;
             CREATE PUBLICATION inserts FOR TABLE items WITH (publish = 'insert');
             CREATE TABLE parts (name text PRIMARY KEY) PARTITION BY LIST (name); CREATE PUBLICATION leaves FOR TABLE parts",
        )
        .await;
    refused(&source.clone().publication("other"), "fatal", "ALTER PUBLICATION \"other\" ADD TABLE").await;
    refused(&source.publication("inserts"), "fatal", "leaves out some changes").await;
    let parts = database.source("parts").replicate().publication("leaves");
    refused(&parts, "fatal", "publish_via_partition_root = true").await;
    database.sql("CREATE VIEW view AS SELECT * FROM items").await;
    refused(&database.source("view").key(["name"]).replicate(), "fatal", "only tables are replicated").await;
}

#[tokio::test]
async fn a_server_without_logical_decoding_says_what_to_set() {
    let server = Server::start(&["wal_level=replica"]);
    let database = server.database().await;
    let source = database.items().await;
    refused(
        &source.clone().replicate(),
        "fatal",
        "wal_level is replica, and replication needs logical: ALTER SYSTEM SET wal_level = logical",
    )
    .await;
    drop(Tap::on(&source).await);
}

#[tokio::test]
async fn a_server_without_free_slots_says_so() {
    let server = Server::start(&["max_replication_slots=1"]);
    let database = server.database().await;
    let source = database.items().await.replicate();
    source.install().await.unwrap();
    let tap = Tap::on(&source).await;
    refused(&source, "throttled", "raise max_replication_slots").await;
    drop(tap);
}
