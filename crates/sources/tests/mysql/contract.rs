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
        self.database.put(name, value as i64);
    }

    async fn delete(&self, name: &str) {
        self.database.sql(&format!("DELETE FROM items WHERE name = '{name}'"));
    }

    async fn expire(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_table_holds_the_contract() {
    let database = Server::shared().database();
    let source = database.items();
    assert_eq!(check(&Table { database, source }).await.unwrap().len(), 4);
}
