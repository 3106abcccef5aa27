use serde_json::Value;
use watchkeeper_go::Time;
use watchkeeper_table::layout::{AGE, Completion, Fields, Layout, NAME, View, age, text, wide};

pub(super) const TABLE: Layout = Layout::new(
    &[
        NAME,
        text("Ready", "How many of the containers are ready."),
        text("Status", "What the pod is doing, or why it does not."),
        text("Restarts", "How often containers were restarted, and how long ago the last time was."),
        AGE,
        wide("IP", "The first address of the pod."),
        wide("Node", "The node that the pod is bound to."),
        wide("Nominated Node", "The node where room is being made for the pod."),
        wide("Readiness Gates", "How many of the conditions that gate readiness are true."),
    ],
    pod,
)
.completed_when(completion);

fn pod(view: &View<'_>) -> Vec<Value> {
    let pod = view.object;
    let summary = Summary::of(pod);
    let total = pod.len("spec.containers") + sidecars(pod).count();
    let restarts = match summary.last_restart {
        Some(time) if summary.restarts != 0 => format!("{} ({} ago)", summary.restarts, age(time, view.now)),
        _ => summary.restarts.to_string(),
    };
    let first_ip = pod.list("status.podIPs").first().map_or("", |ip| ip.text("ip"));
    let ip = if first_ip.is_empty() { pod.text_or("status.podIP", "<none>") } else { first_ip };
    vec![
        view.name(),
        format!("{}/{total}", summary.ready).into(),
        summary.reason.into(),
        restarts.into(),
        view.age(),
        ip.into(),
        pod.text_or("spec.nodeName", "<none>").into(),
        pod.text_or("status.nominatedNodeName", "<none>").into(),
        readiness_gates(pod).into(),
    ]
}

fn readiness_gates(pod: &Value) -> String {
    let gates = pod.list("spec.readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let open = gates.iter().filter(|gate| pod.condition("status.conditions", gate.text("conditionType")));
    format!("{}/{}", open.count(), gates.len())
}

/// The names of the init containers that keep running beside the others.
fn sidecars(pod: &Value) -> impl Iterator<Item = &str> {
    let init = pod.list("spec.initContainers").iter();
    init.filter(|container| container.text("restartPolicy") == "Always")
        .map(|container| container.text("name"))
}

/// What the containers of a pod say about it.
struct Summary {
    reason: String,
    ready: usize,
    restarts: i64,
    last_restart: Option<Time>,
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let mut summary = Self { reason: phase(pod), ready: 0, restarts: 0, last_restart: None };
        let initializing = summary.read_init_containers(pod);
        if !initializing || pod.condition("status.conditions", "Initialized") {
            summary.read_containers(pod);
        }
        if pod.has("metadata.deletionTimestamp") {
            if pod.text("status.reason") == "NodeLost" {
                summary.reason = "Unknown".into();
            } else if !matches!(pod.text("status.phase"), "Failed" | "Succeeded") {
                summary.reason = "Terminating".into();
            }
        }
        summary
    }

    /// Reads init containers up to the first that has yet to finish; says whether there is one.
    fn read_init_containers(&mut self, pod: &Value) -> bool {
        // Restarts of init containers count while they run; afterwards only those of sidecars do.
        let mut sidecar_restarts = (0, None);
        for (index, status) in pod.list("status.initContainerStatuses").iter().enumerate() {
            let sidecar = sidecars(pod).any(|name| name == status.text("name"));
            self.count_restarts(status);
            if sidecar {
                sidecar_restarts.0 += status.int("restartCount");
                sidecar_restarts.1 = sidecar_restarts.1.max(last_end(status));
            }
            let terminated = status.at("state.terminated");
            let waiting = status.text("state.waiting.reason");
            if !terminated.is_null() && terminated.int("exitCode") == 0 {
                continue;
            } else if sidecar && status.flag("started") {
                self.ready += usize::from(status.flag("ready"));
                continue;
            } else if !terminated.is_null() {
                self.reason = format!("Init:{}", end_reason(terminated));
            } else if !matches!(waiting, "" | "PodInitializing") {
                self.reason = format!("Init:{waiting}");
            } else {
                self.reason = format!("Init:{index}/{}", pod.len("spec.initContainers"));
            }
            if pod.condition("status.conditions", "Initialized") {
                (self.restarts, self.last_restart) = sidecar_restarts;
            }
            return true;
        }
        (self.restarts, self.last_restart) = sidecar_restarts;
        false
    }

    fn read_containers(&mut self, pod: &Value) {
        let mut running = false;
        let mut error = None;
        // From the last to the first, so that the first has the last word.
        for status in pod.list("status.containerStatuses").iter().rev() {
            self.count_restarts(status);
            let terminated = status.at("state.terminated");
            let waiting = status.text("state.waiting.reason");
            if !waiting.is_empty() {
                self.reason = waiting.into();
            } else if !terminated.is_null() {
                self.reason = end_reason(terminated);
                if terminated.int("exitCode") != 0 {
                    error = Some(self.reason.clone());
                }
            } else if status.flag("ready") && status.has("state.running") {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if running && any_condition(pod, "Ready", "True") {
                self.reason = "Running".into();
            } else if let Some(error) = error {
                self.reason = error;
            } else if running {
                self.reason = "NotReady".into();
            }
        }
    }

    fn count_restarts(&mut self, status: &Value) {
        self.restarts += status.int("restartCount");
        self.last_restart = self.last_restart.max(last_end(status));
    }
}

/// What is said of the pod as a whole.
fn phase(pod: &Value) -> String {
    let gated = |condition: &Value| {
        condition.text("type") == "PodScheduled" && condition.text("reason") == "SchedulingGated"
    };
    if pod.list("status.conditions").iter().any(gated) {
        return "SchedulingGated".into();
    }
    pod.text_or("status.reason", pod.text("status.phase")).into()
}

fn any_condition(pod: &Value, kind: &str, status: &str) -> bool {
    let conditions = pod.list("status.conditions").iter();
    conditions
        .into_iter()
        .any(|condition| condition.text("type") == kind && condition.text("status") == status)
}

/// When the run before the current one ended.
fn last_end(status: &Value) -> Option<Time> {
    status.time("lastState.terminated.finishedAt")
}

fn end_reason(terminated: &Value) -> String {
    let reason = terminated.text("reason");
    let signal = terminated.int("signal");
    match () {
        () if !reason.is_empty() => reason.into(),
        () if signal != 0 => format!("Signal:{signal}"),
        () => format!("ExitCode:{}", terminated.int("exitCode")),
    }
}

/// Pods that are over are greyed out or hidden by some clients.
fn completion(pod: &Value) -> Option<Completion> {
    match pod.text("status.phase") {
        "Succeeded" => Some(Completion { reason: "Succeeded", message: "The pod is done." }),
        "Failed" => Some(Completion { reason: "Failed", message: "The pod has failed." }),
        _ => None,
    }
}
