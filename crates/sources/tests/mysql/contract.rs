//! The source of MySQL holds the contract of a source.

use watchkeeper_core::Source;
use watchkeeper_core::contract::{World, check};
use watchkeeper_sources::mysql::Mysql;

use crate::server::{Database, Server};

struct Table {
    database: Database,
    source: Mysql,
}

impl World for Table {
    fn source(&self) -> impl Source {
        self.source.clone()
    }

    async fn put(&self, name: &str, value: u64) {
        self.database.sql(&format!(
            "INSERT INTO items (name, value) VALUES ('{name}', {value}) ON DUPLICATE KEY UPDATE value = {value}, note = NULL"
        ));
    }

    async fn delete(&self, name: &str) {
        self.database.sql(&format!("DELETE FROM items WHERE name = '{name}'"));
    }

    async fn expire(&self) -> bool {
        false
    }

    async fn corrupt(&self, name: &str) -> bool {
        self.database.sql(&format!("UPDATE items SET note = REPEAT('x', 2000) WHERE name = '{name}'"));
        true
    }

    async fn cut(&self) -> bool {
        self.database.cut();
        true
    }

    fn has_statuses(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_table_holds_the_contract() {
    let database = Server::shared().database();
    let source = database.items().max_row_bytes(1000).status_column("status");
    database.sql("ALTER TABLE items ADD note longtext, ADD status json");
    assert_eq!(check(&Table { database, source }).await.unwrap().len(), 7);
}
