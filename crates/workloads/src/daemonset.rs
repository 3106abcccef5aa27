//! DaemonSets: one pod on each simulated node, of which there is one.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, DaemonSetStatus};
use k8s_openapi::api::core::v1::Pod;
use watchkeeper_client::Error as Failure;
use watchkeeper_events::Event;
use watchkeeper_runtime::{Action, Context, Controller, Predicate, Reconciler, Result, Watch};

use crate::node::NODE;
use crate::pods;
use crate::replicaset::{claim, number, until_available};
use crate::revisions::{self, REVISION, Revisions};
use crate::template::generated_pod_of;
use crate::world::World;

pub(crate) fn controller(world: &Arc<World>) -> Controller {
    let pods = Watch::<Pod>::owned_by::<DaemonSet>().filter(Predicate::when(pods::concerns_owner));
    Controller::of::<DaemonSet>()
        .watch(pods)
        .reads::<ControllerRevision>()
        .hot_loop_limit(u32::MAX)
        .reconcile(DaemonSets { world: Arc::clone(world) })
}

struct DaemonSets {
    world: Arc<World>,
}

impl Reconciler<DaemonSet> for DaemonSets {
    async fn reconcile(&self, set: Arc<DaemonSet>, cx: Context<DaemonSet>) -> Result<Action> {
        let collisions = set.status.as_ref().and_then(|status| status.collision_count);
        let revisions = Revisions::of(&*set, &set.spec.template, collisions, cx.client()).await?;
        let hash = revisions::hash(&revisions.newest);
        let all = claim(&*set, &set.spec.selector, cx.client()).await?;
        let (alive, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|pod| pods::is_active(pod));
        let on_delete = set.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref())
            == Some("OnDelete");
        let outdated = |pod: &&Arc<Pod>| !on_delete && revision(pod) != hash;
        // What has ended makes room, what is outdated too, and of two on one node the younger goes.
        let ended = rest.iter().filter(|pod| !pods::is_terminating(pod));
        let surplus = alive.iter().skip(1).chain(alive.first().filter(outdated));
        for pod in ended.chain(surplus) {
            delete(pod, &cx).await?;
        }
        if alive.is_empty() && rest.is_empty() {
            create(&set, hash, &cx).await?;
        }
        let status = status(&set, &alive, hash, &self.world);
        cx.status().set(|set| set.status = Some(status.clone())).await?;
        let needed = [revisions::name(&revisions.newest)];
        revisions.truncate(set.spec.revision_history_limit.unwrap_or(10), &needed, cx.client()).await?;
        let min_ready = set.spec.min_ready_seconds.unwrap_or(0);
        let next = until_available(alive.iter().map(|pod| &**pod), min_ready, &self.world);
        Ok(next.map_or_else(Action::done, Action::requeue_after))
    }
}

fn revision(pod: &Pod) -> &str {
    let labels = pod.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(REVISION)).map(String::as_str).unwrap_or_default()
}

async fn create(set: &DaemonSet, hash: &str, cx: &Context<DaemonSet>) -> Result<(), Failure> {
    let mut pod = generated_pod_of(set, &set.spec.template)?;
    pod.metadata.labels.get_or_insert_default().insert(REVISION.into(), hash.into());
    // A daemon goes where nothing else may, and it is known which node is meant.
    pod.spec.get_or_insert_default().node_name = Some(NODE.into());
    let made = cx.client().create(&pod).await?;
    let note = format!("Created pod: {}", made.metadata.name.as_deref().unwrap_or_default());
    cx.event(Event::normal("SuccessfulCreate", "Create", note));
    Ok(())
}

async fn delete(pod: &Pod, cx: &Context<DaemonSet>) -> Result<(), Failure> {
    match cx.client().delete(pod).await {
        Ok(_) => {
            let note = format!("Deleted pod: {}", pod.metadata.name.as_deref().unwrap_or_default());
            cx.event(Event::normal("SuccessfulDelete", "Delete", note));
            Ok(())
        }
        Err(Failure::NotFound { .. } | Failure::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn status(set: &DaemonSet, alive: &[Arc<Pod>], hash: &str, world: &World) -> DaemonSetStatus {
    let min_ready = set.spec.min_ready_seconds.unwrap_or(0);
    let count = |is: &dyn Fn(&Pod) -> bool| number(alive.iter().take(1).filter(|pod| is(pod)).count());
    let some = |count: i32| (count != 0).then_some(count);
    let available = count(&|pod| pods::is_available(pod, min_ready, world));
    DaemonSetStatus {
        desired_number_scheduled: 1,
        current_number_scheduled: count(&|_| true),
        updated_number_scheduled: some(count(&|pod| revision(pod) == hash)),
        number_ready: count(&pods::is_ready),
        number_available: some(available),
        number_unavailable: some(1 - available),
        observed_generation: set.metadata.generation,
        ..set.status.clone().unwrap_or_default()
    }
}
