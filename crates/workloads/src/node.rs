use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use tokio_util::sync::CancellationToken;
use watchkeeper_client::{Client, Error};
use watchkeeper_core::Key;
use watchkeeper_runtime::Result;

use crate::world::World;

/// The name of the node that all simulated pods are on. Pods that are bound to another one are left alone.
pub const NODE: &str = "simulated";

/// The address of the node.
pub(crate) const NODE_ADDRESS: &str = "10.243.0.1";

/// Makes sure, once, that the node is there and ready.
pub(crate) async fn exist(client: Client, stopped: CancellationToken, world: Arc<World>) -> Result<()> {
    loop {
        match written(&client, &world).await {
            Ok(()) => return Ok(()),
            Err(error) => tracing::warn!(%error, "simulated node could not be written; it is retried"),
        }
        tokio::select! {
            () = stopped.cancelled() => return Ok(()),
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
}

async fn written(client: &Client, world: &World) -> Result<(), Error> {
    let key = Key::new(None, NODE);
    let node = match client.live().get::<Node>(&key).await? {
        Some(node) => Node::clone(&node),
        None => match client.create(&empty()).await {
            Err(Error::AlreadyExists { .. }) => return Box::pin(written(client, world)).await,
            created => created?.into_object(),
        },
    };
    let is_ready = |node: &Node| {
        let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    if !is_ready(&node) {
        let now = world.now();
        client.status(&node).set(|node| node.status = Some(ready(&now))).await?;
    }
    // The server marks new nodes as not ready, until a controller that is not here takes the mark off.
    let tainted = node.spec.as_ref().is_some_and(|spec| spec.taints.is_some());
    if tainted {
        client.modify::<Node>(&key, |node| node.spec.get_or_insert_default().taints = None).await?;
    }
    Ok(())
}

fn empty() -> Node {
    let labels = [
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", NODE),
        ("kubernetes.io/os", "linux"),
        ("simulate.watchkeeper.dev/node", "true"),
    ];
    Node {
        metadata: ObjectMeta {
            name: Some(NODE.into()),
            labels: Some(labels.map(|(key, value)| (key.into(), value.into())).into()),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec { pod_cidr: Some("10.244.0.0/16".into()), ..NodeSpec::default() }),
        status: None,
    }
}

fn ready(now: &Time) -> NodeStatus {
    let room = |pods: &str| -> BTreeMap<String, Quantity> {
        [("cpu", "1024"), ("memory", "4Ti"), ("ephemeral-storage", "64Ti"), ("pods", pods)]
            .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
            .into()
    };
    let address = |kind: &str, address: &str| NodeAddress { type_: kind.into(), address: address.into() };
    let condition = |kind: &str, status: &str, reason: &str, message: &str| NodeCondition {
        type_: kind.into(),
        status: status.into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_heartbeat_time: Some(now.clone()),
        last_transition_time: Some(now.clone()),
    };
    NodeStatus {
        addresses: Some(vec![address("InternalIP", NODE_ADDRESS), address("Hostname", NODE)]),
        capacity: Some(room("65000")),
        allocatable: Some(room("65000")),
        conditions: Some(vec![
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "nothing runs here"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "nothing runs here"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "nothing runs here"),
            condition("Ready", "True", "KubeletReady", "this node is simulated"),
        ]),
        node_info: Some(NodeSystemInfo {
            architecture: "amd64".into(),
            operating_system: "linux".into(),
            os_image: "simulated".into(),
            kernel_version: "simulated".into(),
            container_runtime_version: "simulated://1.0.0".into(),
            kubelet_version: "v1.36.0-simulated".into(),
            ..NodeSystemInfo::default()
        }),
        ..NodeStatus::default()
    }
}
