//! The source of PostgreSQL holds the contract of a source, however it learns of changes.

use watchkeeper_core::Source;
use watchkeeper_core::contract::{World, check};
use watchkeeper_sources::postgres::Postgres;

use crate::server::{Database, Server};

struct Table {
    database: Database,
    source: Postgres,
    slot: Option<String>,
}

impl World for Table {
    fn source(&self) -> impl Source {
        self.source.clone()
    }

    async fn put(&self, name: &str, value: u64) {
        self.database
            .sql(&format!(
                "INSERT INTO items (name, value) VALUES ('{name}', {value}) \
                 ON CONFLICT (name) DO UPDATE SET value = {value}, note = NULL"
            ))
            .await;
    }

    async fn delete(&self, name: &str) {
        self.database.sql(&format!("DELETE FROM items WHERE name = '{name}'")).await;
    }

    async fn expire(&self) -> bool {
        let Some(slot) = &self.slot else { return false };
        self.database.cut().await;
        self.database.sql(&format!("SELECT pg_drop_replication_slot('{slot}')")).await;
        true
    }

    async fn corrupt(&self, name: &str) -> bool {
        self.database.sql(&format!("UPDATE items SET note = repeat('x', 2000) WHERE name = '{name}'")).await;
        true
    }

    async fn cut(&self) -> bool {
        self.database.cut().await;
        true
    }

    fn has_statuses(&self) -> bool {
        true
    }
}

async fn kept(mode: impl FnOnce(&Database, Postgres) -> (Postgres, Option<String>)) -> usize {
    let database = Server::shared().database().await;
    let source = database.items().await.max_row_bytes(1000).status_column("status");
    database.sql("ALTER TABLE items ADD note text, ADD status jsonb").await;
    let (source, slot) = mode(&database, source);
    source.install().await.unwrap();
    let table = Table { database, source, slot };
    let kept = check(&table).await.unwrap().len();
    let _ = table.source.uninstall().await;
    kept
}

#[tokio::test]
async fn a_table_that_is_polled_holds_the_contract() {
    assert_eq!(kept(|_, source| (source, None)).await, 7);
}

#[tokio::test]
async fn a_table_that_notifies_holds_the_contract() {
    assert_eq!(kept(|_, source| (source.notify(), None)).await, 7);
}

#[tokio::test]
async fn a_table_that_is_replicated_holds_the_contract() {
    assert_eq!(kept(|_, source| (source.replicate(), None)).await, 7);
}

#[tokio::test]
async fn a_table_that_is_replicated_durably_holds_the_contract() {
    let durably = |database: &Database, source: Postgres| {
        let slot = format!("contract_{}", database.name);
        (source.replicate_durably(&slot), Some(slot))
    };
    assert_eq!(kept(durably).await, 9);
}
