//! Simulates the workloads of the cluster that `$KUBECONFIG` names. It should be one without nodes and without
//! kube-controller-manager.

use watchkeeper_runtime::{Manager, Result};
use watchkeeper_workloads::{Timing, simulate};

#[tokio::main]
async fn main() -> Result<()> {
    simulate(Manager::from_environment("workloads"), Timing::default()).run().await
}
