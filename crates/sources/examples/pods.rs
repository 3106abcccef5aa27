//! Follows the Pods of a cluster: `cargo run -p watchkeeper-sources --example pods -- [LABEL-SELECTOR]`.
//!
//! Takes the cluster of the current kubeconfig. Ends with Ctrl-C.
#![allow(clippy::print_stdout, reason = "that is what it is for")]

use k8s_openapi::api::core::v1::Pod;
use watchkeeper_informer::{Informer, Object};
use watchkeeper_sources::kubernetes::{Connection, Kubernetes};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut source = Kubernetes::of::<Pod>(Connection::infer().await?);
    if let Some(selector) = std::env::args().nth(1) {
        source = source.labels(&selector);
    }
    let pods = Informer::<Pod>::builder().start(source);
    let by_node = pods.store().index("node", |pod: &Object<Pod>| {
        Ok(pod.get()?.spec.as_ref().and_then(|spec| spec.node_name.clone()))
    });

    pods.synced().await?;
    println!("{} pods on {} nodes", pods.store().len(), by_node.values().len());
    let mut changes = pods.subscribe("example");
    while let Some(change) = changes.next().await {
        println!("{} {}", change.kind(), change.key);
    }
    Ok(())
}
