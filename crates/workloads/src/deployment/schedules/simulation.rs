//! The controllers and the world around them, one step at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;

use super::cluster::{Cached, Table};
use super::objects::{self, BROKEN};
use crate::deployment::annotations;
use crate::deployment::bounds::Bounds;
use crate::deployment::plan::{self, Resize};
use crate::deployment::sets::{Sets, available, size};
use crate::replicaset::{self, Plan};
use crate::world::World;
use crate::{pods, template};

/// The one Deployment there is.
const WEB: u32 = 0;

/// What one process knows.
struct Process {
    deployments: Cached<Deployment>,
    sets: Cached<ReplicaSet>,
    pods: Cached<Pod>,
}

/// A reconcile of the Deployment that is under way: what it has seen, and what it still has to write.
struct Rollout {
    deployment: Arc<Deployment>,
    sets: Sets,
    todo: Vec<Write>,
}

/// The last one is next.
enum Write {
    Mark,
    Create,
    Resize(Resize),
}

/// A reconcile of a ReplicaSet that is under way.
struct Look {
    set: Arc<ReplicaSet>,
    active: Vec<Arc<Pod>>,
    terminating: usize,
    create: usize,
    delete: Vec<Arc<Pod>>,
    failure: Option<String>,
}

/// What the server must never be seen below or above. What nobody could have known of at the time of a decision (a pod
/// that has failed, another size) moves it, until all have come to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Promise {
    fewest_available: i32,
    most_pods: i32,
}

pub(super) struct Simulation {
    pub(super) rng: fastrand::Rng,
    clock: Arc<AtomicU64>,
    world: World,
    deployments: Table<Deployment>,
    sets: Table<ReplicaSet>,
    pods: Table<Pod>,
    next: u32,
    /// One for both controllers, or one for each.
    processes: Vec<Process>,
    rollout: Option<Rollout>,
    looks: BTreeMap<u32, Look>,
    promise: Promise,
    /// Whether pods cannot be made or deleted now and then.
    pub(super) faulty: bool,
    pub(super) trace: Option<Vec<String>>,
}

impl Simulation {
    pub(super) fn new(seed: u64, trace: bool) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (clock, world) = objects::clock();
        let (surge, unavailable) = match (rng.i32(0..=3), rng.i32(0..=3)) {
            (0, 0) => (1, 0),
            bounds => bounds,
        };
        let min_ready = if rng.u8(0..4) == 0 { 3 } else { 0 };
        let web = objects::deployment(rng.i32(1..=10), surge, unavailable, min_ready);
        let mut simulation = Self {
            clock,
            world,
            deployments: Table::default(),
            sets: Table::default(),
            pods: Table::default(),
            next: WEB + 1,
            processes: Vec::new(),
            rollout: None,
            looks: BTreeMap::new(),
            promise: Promise { fewest_available: 0, most_pods: Bounds::of(&web).most() },
            faulty: false,
            trace: trace.then(Vec::new),
            rng,
        };
        simulation.deployments.put(WEB, Some(Arc::new(web)));
        let processes = simulation.rng.usize(1..=2);
        simulation.processes = (0..processes).map(|_| simulation.process()).collect();
        simulation
    }

    fn process(&self) -> Process {
        Process {
            deployments: Cached::of(&self.deployments),
            sets: Cached::of(&self.sets),
            pods: Cached::of(&self.pods),
        }
    }

    pub(super) fn say(&mut self, what: impl FnOnce() -> String) {
        if self.trace.is_none() {
            return;
        }
        let (available, there, time) = (self.available(), self.there(), self.clock.load(Ordering::Relaxed));
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{time} {available:2} of {there:2}  {}", what()));
        }
    }

    // What the server has.

    pub(super) fn web(&self) -> Arc<Deployment> {
        self.deployments.get(WEB).cloned().unwrap_or_default()
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds::of(&self.web())
    }

    /// The pods that count: neither at their end nor asked to end.
    fn there(&self) -> i32 {
        replicaset::number(self.pods.all().filter(|(_, pod)| pods::is_active(pod)).count())
    }

    pub(super) fn available(&self) -> i32 {
        let min_ready = self.web().spec.min_ready_seconds.unwrap_or(0);
        let is = |pod: &Pod| pods::is_active(pod) && pods::is_available(pod, min_ready, &self.world);
        replicaset::number(self.pods.all().filter(|(_, pod)| is(pod)).count())
    }

    fn total_size(&self) -> i32 {
        self.sets.all().map(|(_, set)| size(set)).sum()
    }

    pub(super) fn versions(&self) -> usize {
        self.deployments.version() + self.sets.version() + self.pods.version()
    }

    /// Whether the bounds are kept.
    pub(super) fn check(&self) -> Result<(), String> {
        let Promise { fewest_available, most_pods } = self.promise;
        let (available, there, total) = (self.available(), self.there(), self.total_size());
        if available < fewest_available {
            return Err(format!("{available} available, {fewest_available} promised"));
        }
        if there > most_pods || total > most_pods {
            return Err(format!("{there} pods, sets for {total}, {most_pods} promised"));
        }
        Ok(())
    }

    /// The bounds are what the Deployment says, as far as it has come.
    pub(super) fn renew_promise(&mut self) {
        let bounds = self.bounds();
        self.promise =
            Promise { fewest_available: bounds.fewest().min(self.available()), most_pods: bounds.most() };
    }

    /// Whether the rollout is where it should end.
    pub(super) fn is_complete(&self) -> Result<(), String> {
        let (web, wanted) = (self.web(), self.bounds().replicas);
        let sets = Sets::of(&web, self.sets.all().map(|(_, set)| Arc::clone(set)).collect());
        let sizes: Vec<_> = sets.old.iter().map(|set| size(set)).collect();
        let new = sets.new.as_ref().map(|set| size(set));
        if new == Some(wanted) && sizes.iter().all(|size| *size == 0) && self.available() == wanted {
            return Ok(());
        }
        Err(format!("it ends with {new:?} new, {sizes:?} old, {} available", self.available()))
    }

    // What the controllers do.

    /// Lets a process hear of a change.
    pub(super) fn deliver(&mut self) -> bool {
        let kind = self.rng.u8(0..3);
        let at = self.rng.usize(0..self.processes.len());
        self.deliver_to(at, kind)
    }

    fn deliver_to(&mut self, at: usize, kind: u8) -> bool {
        let process = &mut self.processes[at];
        let heard = match kind {
            0 => process.deployments.deliver(&self.deployments),
            1 => process.sets.deliver(&self.sets),
            _ => process.pods.deliver(&self.pods),
        };
        if heard {
            let what = ["the Deployment", "ReplicaSets", "pods"][usize::from(kind)];
            self.say(|| format!("process {at} hears of {what}"));
        }
        heard
    }

    pub(super) fn deliver_all(&mut self) {
        for at in 0..self.processes.len() {
            for kind in 0..3 {
                while self.deliver_to(at, kind) {}
            }
        }
    }

    /// All processes are stopped, and started again: what they have not written is not written.
    pub(super) fn restart(&mut self) {
        self.rollout = None;
        self.looks.clear();
        self.processes = (0..self.processes.len()).map(|_| self.process()).collect();
        self.say(|| "restart".into());
    }

    /// The Deployment controller begins a reconcile, or writes the next of what it has decided to write.
    pub(super) fn step_deployment(&mut self) {
        let Some(mut rollout) = self.rollout.take() else {
            self.rollout = self.begin_rollout();
            return;
        };
        match rollout.todo.pop() {
            Some(Write::Mark) => {
                let Some(new) = rollout.sets.new.take() else { return };
                let revision = rollout.sets.next_revision();
                let web = Arc::clone(&rollout.deployment);
                let marked = self.write_set(0, objects::id(&new.metadata), |set| {
                    annotations::set_newest(set, &web, revision);
                });
                rollout.sets.new = marked;
                self.decide(&mut rollout);
            }
            Some(Write::Create) => {
                let Some(made) = self.create_set(&rollout) else { return };
                rollout.sets.new = Some(made);
                rollout.todo = plan::rolling(&rollout.deployment, &rollout.sets)
                    .into_iter()
                    .rev()
                    .map(Write::Resize)
                    .collect();
            }
            Some(Write::Resize(resize)) => {
                let bounds = Bounds::of(&rollout.deployment);
                let (id, before, after) = (objects::id(&resize.set.metadata), size(&resize.set), resize.size);
                self.write_set(0, id, |set| resize.apply(set, bounds));
                self.say(|| format!("set {id} is sized from {before} to {after}"));
            }
            None => return,
        }
        if !rollout.todo.is_empty() {
            self.rollout = Some(rollout);
        }
    }

    fn begin_rollout(&mut self) -> Option<Rollout> {
        let process = &self.processes[0];
        let deployment = process.deployments.get(WEB)?;
        let sets = Sets::of(&deployment, process.sets.all().into_values().collect());
        let mut rollout = Rollout { deployment, sets, todo: Vec::new() };
        let unmarked = rollout.sets.new.as_ref().is_some_and(|new| {
            let mut marked = (**new).clone();
            annotations::set_newest(&mut marked, &rollout.deployment, rollout.sets.next_revision());
            marked != **new
        });
        if unmarked {
            rollout.todo.push(Write::Mark);
        } else {
            self.decide(&mut rollout);
        }
        (!rollout.todo.is_empty()).then_some(rollout)
    }

    /// As [`super::super::Sync::run`] does.
    fn decide(&mut self, rollout: &mut Rollout) {
        let (web, sets) = (&rollout.deployment, &rollout.sets);
        let steps = if web.spec.paused == Some(true) || plan::was_scaled(web, sets) {
            let steps = plan::scaling(web, sets);
            let proportional = steps.len() > 1 && steps.iter().map(|step| step.size).sum::<i32>() > 0;
            if proportional || web.spec.replicas == Some(0) {
                // Proportions do not ask who is available: neither here nor in Kubernetes.
                let left = steps.iter().map(|step| available(&step.set).min(step.size)).sum();
                self.promise.fewest_available = self.promise.fewest_available.min(left);
            }
            steps
        } else if sets.new.is_none() {
            rollout.todo = vec![Write::Create];
            return;
        } else {
            plan::rolling(web, sets)
        };
        rollout.todo = steps.into_iter().rev().map(Write::Resize).collect();
        if !rollout.todo.is_empty() {
            let seen = |set: &ReplicaSet| {
                let status = set.status.clone().unwrap_or_default();
                let available = status.available_replicas.unwrap_or(0);
                format!(
                    "{}: size {}, {} pods, {available} available",
                    objects::id(&set.metadata),
                    size(set),
                    status.replicas
                )
            };
            let all: Vec<_> = rollout.sets.all().map(|set| seen(set)).collect();
            self.say(|| format!("the Deployment decides on [{}]", all.join("; ")));
        }
    }

    fn create_set(&mut self, rollout: &Rollout) -> Option<Arc<ReplicaSet>> {
        let mut set = plan::new_set(&rollout.deployment, &rollout.sets).ok()?;
        if self.sets.all().any(|(_, known)| known.metadata.name == set.metadata.name) {
            return None;
        }
        let id = self.next_id();
        set.metadata.uid = Some(id.to_string());
        set.metadata.generation = Some(1);
        set.metadata.creation_timestamp = Some(self.world.now());
        let set = Arc::new(set);
        self.sets.put(id, Some(Arc::clone(&set)));
        self.processes[0].sets.note(&self.sets);
        self.say(|| format!("set {id} is made with size {}", size(&set)));
        Some(set)
    }

    /// The ReplicaSet controller begins to look at a set, or does the next of what it has decided to do.
    pub(super) fn step_set(&mut self) {
        let ids: Vec<u32> = self.sets.all().map(|(id, _)| id).collect();
        if let Some(id) = self.rng.choice(ids) {
            self.step_set_of(id);
        }
    }

    /// Whether there is more to do in this look.
    fn step_set_of(&mut self, id: u32) -> bool {
        let last = self.processes.len() - 1;
        let Some(mut look) = self.looks.remove(&id) else {
            let Some(look) = self.begin_look(id) else { return false };
            self.looks.insert(id, look);
            return true;
        };
        let refused = self.faulty && self.rng.u8(0..8) == 0;
        if refused && (look.create > 0 || !look.delete.is_empty()) {
            look.create = 0;
            look.delete.clear();
            look.failure = Some("refused".into());
        } else if look.create > 0 {
            look.create -= 1;
            self.create_pod(&look.set);
        } else if !look.delete.is_empty() {
            let any = self.rng.usize(0..look.delete.len());
            let pod = objects::id(&look.delete.swap_remove(any).metadata);
            if self.delete_pod(pod) {
                self.processes[last].pods.note(&self.pods);
            }
            self.say(|| format!("set {id} deletes pod {pod}"));
        } else {
            let Look { set, active, terminating, failure, .. } = look;
            let status = replicaset::status(&set, &active, terminating, failure, &self.world);
            self.write_set(last, id, |set| set.status = Some(status));
            self.say(|| format!("set {id} writes its status"));
            return false;
        }
        self.looks.insert(id, look);
        true
    }

    fn begin_look(&self, id: u32) -> Option<Look> {
        let process = self.processes.last()?;
        let set = process.sets.get(id)?;
        let all = process.pods.all().into_values().filter(|pod| objects::owner(pod) == id);
        let (active, rest): (Vec<_>, Vec<_>) = all.partition(|pod| pods::is_active(pod));
        let terminating = rest.iter().filter(|pod| pods::is_terminating(pod)).count();
        let (create, delete) = match replicaset::plan(&set, &active) {
            Plan::Create(count) => (count, Vec::new()),
            Plan::Delete(pods) => (0, pods),
        };
        Some(Look { set, active, terminating, create, delete, failure: None })
    }

    fn create_pod(&mut self, set: &ReplicaSet) {
        let Some(of) = &set.spec.template else { return };
        let Ok(mut pod) = template::generated_pod_of(set, of) else { return };
        let id = self.next_id();
        pod.metadata.uid = Some(id.to_string());
        pod.metadata.name = Some(format!("web-{id}"));
        pod.metadata.creation_timestamp = Some(self.world.now());
        self.pods.put(id, Some(Arc::new(pod)));
        let last = self.processes.len() - 1;
        self.processes[last].pods.note(&self.pods);
        self.say(|| format!("set {} makes pod {id}", objects::id(&set.metadata)));
    }

    fn next_id(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// Changes a set, whatever it is by now, and has the writer see it.
    fn write_set(
        &mut self,
        writer: usize,
        id: u32,
        change: impl FnOnce(&mut ReplicaSet),
    ) -> Option<Arc<ReplicaSet>> {
        let known = Arc::clone(self.sets.get(id)?);
        let mut set = (*known).clone();
        change(&mut set);
        if set == *known {
            return Some(known);
        }
        if set.spec != known.spec {
            set.metadata.generation = set.metadata.generation.map(|generation| generation + 1);
        }
        let set = Arc::new(set);
        self.sets.put(id, Some(Arc::clone(&set)));
        self.processes[writer].sets.note(&self.sets);
        Some(set)
    }

    fn delete_pod(&mut self, id: u32) -> bool {
        let Some(pod) = self.pods.get(id).filter(|pod| !pods::is_terminating(pod)) else { return false };
        let mut pod = (**pod).clone();
        pod.metadata.deletion_timestamp = Some(self.world.now());
        self.pods.put(id, Some(Arc::new(pod)));
        true
    }

    /// Everything that is under way comes to its end.
    pub(super) fn finish_all(&mut self) -> Result<(), String> {
        loop {
            self.step_deployment();
            self.check()?;
            if self.rollout.is_none() {
                break;
            }
        }
        let ids: Vec<u32> = self.sets.all().map(|(id, _)| id).collect();
        for id in ids {
            loop {
                let more = self.step_set_of(id);
                self.check()?;
                if !more {
                    break;
                }
            }
        }
        Ok(())
    }

    // What the world does.

    fn any_pod(&mut self, is: impl Fn(&Pod) -> bool) -> Option<(u32, Arc<Pod>)> {
        let all: Vec<_> = self.pods.all().filter(|(_, pod)| is(pod)).collect();
        self.rng.choice(all).map(|(id, pod)| (id, Arc::clone(pod)))
    }

    /// A pod becomes ready, if there is one that can.
    pub(super) fn become_ready(&mut self) -> bool {
        let can = |pod: &Pod| {
            pods::is_active(pod) && !pods::is_ready(pod) && objects::number(pod.spec.as_ref()) != BROKEN
        };
        let Some((id, pod)) = self.any_pod(can) else { return false };
        self.pods.put(id, Some(Arc::new(objects::with_state(&pod, "Running", true, &self.world))));
        self.say(|| format!("pod {id} is ready"));
        true
    }

    /// A pod that was asked to end has ended, if there is one.
    pub(super) fn end(&mut self) -> bool {
        let Some((id, _)) = self.any_pod(pods::is_terminating) else { return false };
        self.pods.put(id, None);
        true
    }

    /// A pod fails for good, or is not ready any more, or is deleted by hand.
    pub(super) fn lose(&mut self) {
        let Some((id, pod)) = self.any_pod(pods::is_active) else { return };
        // One that is ready may count as available before anybody has heard of its loss.
        self.promise.fewest_available -= i32::from(pods::is_ready(&pod));
        match self.rng.u8(0..3) {
            0 => self.pods.put(id, Some(Arc::new(objects::with_state(&pod, "Failed", false, &self.world)))),
            1 => self.pods.put(id, Some(Arc::new(objects::with_state(&pod, "Running", false, &self.world)))),
            _ => {
                self.delete_pod(id);
            }
        }
        self.say(|| format!("pod {id} is lost"));
    }

    pub(super) fn tick(&mut self) {
        self.clock.fetch_add(1, Ordering::Relaxed);
    }

    /// A user changes the Deployment.
    fn change(&mut self, change: impl FnOnce(&mut Deployment)) {
        let mut web = (*self.web()).clone();
        change(&mut web);
        web.metadata.generation = web.metadata.generation.map(|generation| generation + 1);
        self.deployments.put(WEB, Some(Arc::new(web)));
    }

    pub(super) fn set_template(&mut self, number: u32) {
        self.change(|web| web.spec.template = objects::template(number));
        self.say(|| format!("template {number}"));
    }

    pub(super) fn set_paused(&mut self, paused: bool) {
        self.change(|web| web.spec.paused = paused.then_some(true));
        self.say(|| format!("paused: {paused}"));
    }

    pub(super) fn scale(&mut self, replicas: i32) {
        self.change(|web| web.spec.replicas = Some(replicas));
        let bounds = self.bounds();
        self.promise.fewest_available = self.promise.fewest_available.min(bounds.fewest());
        self.promise.most_pods = self.promise.most_pods.max(bounds.most());
        self.say(|| format!("scaled to {replicas}"));
    }
}
