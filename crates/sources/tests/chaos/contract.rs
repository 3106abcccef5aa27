//! The Kubernetes source holds the contract of a source.

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_core::Source;
use watchkeeper_core::contract::{World, check};
use watchkeeper_sources::kubernetes::Kubernetes;

use crate::server::Server;
use crate::truth::Truth;

struct Cluster {
    truth: Truth,
    server: Server,
    streaming: bool,
}

impl World for Cluster {
    fn source(&self) -> impl Source {
        Kubernetes::of::<ConfigMap>(self.server.connection()).streaming(self.streaming)
    }

    async fn put(&self, name: &str, value: u64) {
        self.truth.put(name, &format!(r#"{{"value":"{value}"}}"#));
    }

    async fn delete(&self, name: &str) {
        self.truth.delete(name);
    }

    async fn expire(&self) -> bool {
        self.truth.compact();
        true
    }
}

#[tokio::test]
async fn the_kubernetes_source_holds_the_contract_whether_it_streams_lists_or_pages_them() {
    for streaming in [true, false] {
        let truth = Truth::new();
        let server = truth.serve().await;
        let kept = check(&Cluster { truth, server, streaming }).await.unwrap();
        assert_eq!(kept.len(), 7, "{kept:?}");
    }
}
