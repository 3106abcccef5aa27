use std::sync::Arc;
use std::time::SystemTime;

use k8s_openapi::api::core::v1::Pod;
use watchkeeper_client::{Cache, Policy};
use watchkeeper_runtime::Manager;

use crate::timing::Timing;
use crate::world::World;
use crate::{daemonset, deployment, endpoints, job, node, pod, replicaset, statefulset};

/// Adds all simulated controllers to a manager. The same as `Simulation::new(timing).run_in(manager)`.
pub fn simulate(manager: Manager, timing: Timing) -> Manager {
    Simulation::new(timing).run_in(manager)
}

/// What is simulated, and how.
#[derive(Clone)]
#[must_use = "nothing happens before run_in"]
pub struct Simulation {
    timing: Timing,
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Simulation {
    /// With these times, by the machine's clock.
    pub fn new(timing: Timing) -> Self {
        Self { timing, clock: Arc::new(SystemTime::now) }
    }

    /// Tells the time that objects carry. It should be that of the API server.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Adds the controllers to a manager, and the node that all pods are on. They stand for those of a cluster, which may do everything:
    /// the manager [need not declare](Manager::allow_undeclared) what it sends.
    pub fn run_in(self, manager: Manager) -> Manager {
        let world = Arc::new(World::new(self.timing, self.clock));
        let for_node = Arc::clone(&world);
        manager
            .allow_undeclared()
            // Each change of a pod has its owner look at all its pods: they are held decoded.
            .cache(Cache::of::<Pod>().policy(Policy::Typed))
            .task("node", move |client, stopped| node::exist(client, stopped, for_node))
            .controller(pod::controller(&world))
            .controller(replicaset::controller(&world))
            .controller(deployment::controller(&world))
            .controller(statefulset::controller(&world))
            .controller(daemonset::controller(&world))
            .controller(job::controller(&world))
            .controller(endpoints::controller())
    }
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation").field("timing", &self.timing).finish_non_exhaustive()
    }
}
