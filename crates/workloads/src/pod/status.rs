//! What a pod says of itself after each step.

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodSpec, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::node::NODE_ADDRESS;
use crate::pod::fate::{Fate, Image};
use crate::pod::step::{Step, worst_image};

/// The status of a pod after a step. `address` is the pod's own, `ready` whether it is ready as soon as it runs.
pub(crate) fn after(step: Step, pod: &Pod, fate: &Fate, ready: bool, address: &str, now: &Time) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    let Some(spec) = &pod.spec else { return status };
    let mut draft = Draft { status: &mut status, spec, generation: pod.metadata.generation, now };
    match step {
        Step::Bind | Step::Remove => {}
        Step::Accept => draft.accept(),
        Step::FailToPull => draft.fail_to_pull(),
        Step::BackOff => draft.back_off(),
        Step::Initialize => draft.initialize(address),
        Step::Start => draft.start(ready, address),
        Step::BecomeReady => draft.become_ready(),
        Step::Finish => draft.finish(fate.fails),
        Step::Crash => draft.crash(fate.fails),
        Step::Restart => draft.restart(ready),
    }
    status
}

struct Draft<'a> {
    status: &'a mut PodStatus,
    spec: &'a PodSpec,
    generation: Option<i64>,
    now: &'a Time,
}

impl Draft<'_> {
    fn accept(&mut self) {
        let has_inits = self.spec.init_containers.as_ref().is_some_and(|all| !all.is_empty());
        self.status.phase = Some("Pending".into());
        self.status.host_ip = Some(NODE_ADDRESS.into());
        self.status.host_ips = Some(vec![HostIP { ip: NODE_ADDRESS.into() }]);
        self.status.start_time = Some(self.now.clone());
        self.status.observed_generation = self.generation;
        self.condition("PodScheduled", true, None);
        self.condition("PodReadyToStartContainers", false, None);
        match has_inits {
            true => {
                let names = names(self.spec.init_containers.iter().flatten());
                let message = format!("containers with incomplete status: {names}");
                self.condition("Initialized", false, Some(("ContainersNotInitialized", message)));
            }
            false => self.condition("Initialized", true, None),
        }
        self.unready("ContainersNotReady");
        let reason = if has_inits { "PodInitializing" } else { "ContainerCreating" };
        let of = |container: &Container| status_of(container, waiting(reason, None));
        self.status.container_statuses = Some(self.spec.containers.iter().map(of).collect());
        let inits: Vec<_> = self.spec.init_containers.iter().flatten().map(of).collect();
        self.status.init_container_statuses = (!inits.is_empty()).then_some(inits);
    }

    fn fail_to_pull(&mut self) {
        let invalid = worst_image(self.spec) == Image::Invalid;
        self.each_unavailable(|image| match invalid {
            true => waiting("InvalidImageName", Some(invalid_image(image))),
            false => waiting("ErrImagePull", Some(missing_image(image))),
        });
    }

    fn back_off(&mut self) {
        self.each_unavailable(|image| {
            waiting("ImagePullBackOff", Some(format!("Back-off pulling image \"{image}\"")))
        });
    }

    /// Those containers wait whose image is not to be had.
    fn each_unavailable(&mut self, state: impl Fn(&str) -> ContainerState) {
        let status = &mut self.status;
        let all = status.container_statuses.iter_mut().chain(&mut status.init_container_statuses).flatten();
        for container in all {
            if super::fate::image(&container.image) != Image::Available {
                container.state = Some(state(&container.image));
            }
        }
    }

    fn initialize(&mut self, address: &str) {
        self.address(address);
        self.condition("PodReadyToStartContainers", true, None);
        for init in self.status.init_container_statuses.iter_mut().flatten() {
            run(init, self.now, false);
        }
    }

    fn start(&mut self, ready: bool, address: &str) {
        self.address(address);
        self.status.phase = Some("Running".into());
        self.condition("PodReadyToStartContainers", true, None);
        self.condition("Initialized", true, None);
        let inits = self.spec.init_containers.iter().flatten();
        for (init, container) in self.status.init_container_statuses.iter_mut().flatten().zip(inits) {
            if container.restart_policy.as_deref() == Some("Always") {
                run(init, self.now, true);
            } else {
                exit(init, 0, self.now);
                init.ready = true;
            }
        }
        self.run_all(ready);
    }

    fn run_all(&mut self, ready: bool) {
        for container in self.status.container_statuses.iter_mut().flatten() {
            run(container, self.now, ready);
        }
        match ready {
            true => self.ready(),
            false => self.unready("ContainersNotReady"),
        }
    }

    fn become_ready(&mut self) {
        for container in self.status.container_statuses.iter_mut().flatten() {
            container.ready = true;
        }
        self.ready();
    }

    fn finish(&mut self, failed: bool) {
        let (phase, code) = if failed { ("Failed", 1) } else { ("Succeeded", 0) };
        self.status.phase = Some(phase.into());
        for container in self.status.container_statuses.iter_mut().flatten() {
            exit(container, code, self.now);
        }
        self.condition("PodReadyToStartContainers", false, None);
        if failed {
            self.condition("Ready", false, Some(("PodFailed", String::new())));
            self.condition("ContainersReady", false, Some(("PodFailed", String::new())));
        } else {
            self.condition("Initialized", true, Some(("PodCompleted", String::new())));
            self.condition("Ready", false, Some(("PodCompleted", String::new())));
            self.condition("ContainersReady", false, Some(("PodCompleted", String::new())));
        }
    }

    fn crash(&mut self, failed: bool) {
        for container in self.status.container_statuses.iter_mut().flatten() {
            exit(container, i32::from(failed), self.now);
            container.last_state = container.state.take();
            let message = format!("back-off restarting failed container={}", container.name);
            container.state = Some(waiting("CrashLoopBackOff", Some(message)));
        }
        self.unready("ContainersNotReady");
    }

    fn restart(&mut self, ready: bool) {
        for container in self.status.container_statuses.iter_mut().flatten() {
            container.restart_count += 1;
        }
        self.run_all(ready);
    }

    fn address(&mut self, address: &str) {
        let own = if self.spec.host_network == Some(true) { NODE_ADDRESS } else { address };
        self.status.pod_ip = Some(own.into());
        self.status.pod_ips = Some(vec![PodIP { ip: own.into() }]);
    }

    fn ready(&mut self) {
        self.condition("Ready", true, None);
        self.condition("ContainersReady", true, None);
    }

    fn unready(&mut self, reason: &str) {
        let message = format!("containers with unready status: {}", names(&self.spec.containers));
        self.condition("Ready", false, Some((reason, message.clone())));
        self.condition("ContainersReady", false, Some((reason, message)));
    }

    /// Sets a condition; its time moves only if its status does.
    fn condition(&mut self, kind: &str, is_true: bool, why: Option<(&str, String)>) {
        let conditions = self.status.conditions.get_or_insert_default();
        let value = if is_true { "True" } else { "False" };
        let known = conditions.iter_mut().position(|condition| condition.type_ == kind);
        let same = known.is_some_and(|at| conditions[at].status == value);
        let since = known.filter(|_| same).and_then(|at| conditions[at].last_transition_time.clone());
        let condition = PodCondition {
            type_: kind.into(),
            status: value.into(),
            reason: why.as_ref().map(|(reason, _)| (*reason).into()),
            message: why.map(|(_, message)| message).filter(|message| !message.is_empty()),
            last_transition_time: Some(since.unwrap_or_else(|| self.now.clone())),
            observed_generation: self.generation,
            last_probe_time: None,
        };
        match known {
            Some(at) => conditions[at] = condition,
            None => conditions.push(condition),
        }
    }
}

/// What is said about an image that is not there.
pub(crate) fn missing_image(image: &str) -> String {
    format!("failed to pull and unpack image \"{image}\": not found")
}

/// What is said about an image that cannot be named so.
pub(crate) fn invalid_image(image: &str) -> String {
    format!(
        "Failed to apply default image tag \"{image}\": couldn't parse image name \"{image}\": invalid reference format"
    )
}

fn names<'a>(containers: impl IntoIterator<Item = &'a Container>) -> String {
    let names: Vec<_> = containers.into_iter().map(|container| container.name.as_str()).collect();
    format!("[{}]", names.join(" "))
}

fn waiting(reason: &str, message: Option<String>) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.into()), message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn status_of(container: &Container, state: ContainerState) -> ContainerStatus {
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        started: Some(false),
        state: Some(state),
        ..ContainerStatus::default()
    }
}

fn run(container: &mut ContainerStatus, now: &Time, ready: bool) {
    let running = ContainerStateRunning { started_at: Some(now.clone()) };
    container.state = Some(ContainerState { running: Some(running), ..ContainerState::default() });
    container.started = Some(true);
    container.ready = ready;
    container.container_id = Some(format!("simulated://{}-{}", container.name, container.restart_count));
    container.image_id = format!("simulated://{}", container.image);
}

fn exit(container: &mut ContainerStatus, code: i32, now: &Time) {
    let running = container.state.take().and_then(|state| state.running);
    let terminated = ContainerStateTerminated {
        exit_code: code,
        reason: Some(if code == 0 { "Completed" } else { "Error" }.into()),
        started_at: running.and_then(|running| running.started_at),
        finished_at: Some(now.clone()),
        container_id: container.container_id.clone(),
        ..ContainerStateTerminated::default()
    };
    container.state = Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() });
    container.started = Some(false);
    container.ready = false;
}
