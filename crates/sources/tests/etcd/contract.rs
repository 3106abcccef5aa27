//! The source of etcd holds the contract of a source.

use watchkeeper_core::Source;
use watchkeeper_core::contract::{World, check};
use watchkeeper_etcd::testing::Server;
use watchkeeper_etcd::{Client, Delete, Keys, Put, Range};
use watchkeeper_sources::etcd::Etcd;

use crate::server;

struct Prefix {
    server: Server,
    client: Client,
    etcd: Etcd,
}

impl World for Prefix {
    fn source(&self) -> impl Source {
        self.etcd.clone()
    }

    async fn put(&self, name: &str, value: u64) {
        self.client.put(&Put::new(format!("/a/{name}"), format!(r#"{{"value":{value}}}"#))).await.unwrap();
        // Neighbours of the prefix are not objects.
        self.client.put(&Put::new("/a", "no")).await.unwrap();
        self.client.put(&Put::new("/a0", "no")).await.unwrap();
    }

    async fn delete(&self, name: &str) {
        self.client.delete(&Delete::of(Keys::one(format!("/a/{name}")))).await.unwrap();
    }

    async fn expire(&self) -> bool {
        let now = self.client.range(&Range::of(Keys::one("?"))).await.unwrap().header.revision;
        self.client.compact(now, true).await.unwrap();
        true
    }

    async fn cut(&self) -> bool {
        // What is read in pages is read at one revision, which is gone then.
        self.client.put(&Put::new("/elsewhere", "")).await.unwrap();
        self.expire().await
    }

    async fn corrupt(&self, name: &str) -> bool {
        self.client.put(&Put::new(format!("/a/{name}"), "{")).await.unwrap();
        true
    }

    fn has_statuses(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn the_source_of_etcd_holds_the_contract_however_it_reads() {
    for page in [500, 1, 2] {
        let server = server!();
        let client = server.builder().build().unwrap();
        let etcd = Etcd::prefix([server.endpoint()], "/a/").page_size(page).status_prefix("/status/");
        let world = Prefix { server, client, etcd };
        let kept = check(&world).await.unwrap();
        assert_eq!(kept.len(), 10, "{kept:?}");
        drop(world.server);
    }
}
