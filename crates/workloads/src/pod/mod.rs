//! Scheduler and kubelet: what becomes of a pod.

mod fate;
mod status;
mod step;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use watchkeeper_client::{Client, Error as Failure, key_of};
use watchkeeper_connection::RequestError;
use watchkeeper_events::Event;
use watchkeeper_runtime::{Action, Context, Controller, Reconciler, Result};
use watchkeeper_wire::{Refusal, ResourcePath, Uri};

use crate::node::NODE;
use crate::world::World;
use fate::{Fate, Image};
use status::{after, invalid_image, missing_image};
use step::{Next, Step, next};

pub(crate) fn controller(world: &Arc<World>) -> Controller {
    Controller::of::<Pod>()
        .concurrency(64)
        .reconcile_deleting()
        // A life is a handful of own writes, and a crash is written again and again.
        .hot_loop_limit(u32::MAX)
        .reconcile(Pods { world: Arc::clone(world) })
}

struct Pods {
    world: Arc<World>,
}

impl Reconciler<Pod> for Pods {
    async fn reconcile(&self, mut pod: Arc<Pod>, cx: Context<Pod>) -> Result<Action> {
        while let Some(next) = next(&pod, &self.world.timing) {
            let uid = pod.metadata.uid.as_deref().unwrap_or_default();
            let age = next.since.as_ref().map(|since| self.world.age(since)).unwrap_or_default();
            let step = (next.step.name(), crate::pods::restarts(&pod));
            let left = self.world.since.left(uid, step, next.wait, age);
            if !left.is_zero() {
                return Ok(Action::requeue_after(left));
            }
            match self.go(&pod, &next, &cx).await {
                Ok(Some(now)) => pod = now,
                // The next change says how it goes on; or it is gone.
                Ok(None) | Err(Failure::NotFound { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Action::done())
    }

    async fn deleted(&self, last: Arc<Pod>, _cx: Context<Pod>) -> Result<Action> {
        self.world.since.forget(last.metadata.uid.as_deref().unwrap_or_default());
        self.world.addresses.free(&last);
        Ok(Action::done())
    }
}

impl Pods {
    /// Takes a step, and gives the pod as it is then, if it is known.
    async fn go(&self, pod: &Pod, next: &Next, cx: &Context<Pod>) -> Result<Option<Arc<Pod>>, Failure> {
        match next.step {
            Step::Bind => {
                bind(pod, cx.client()).await?;
                say(pod, next.step, cx);
                return Ok(None);
            }
            Step::Remove => {
                say(pod, next.step, cx);
                match cx.client().delete(pod).grace_period(0).await {
                    // Another of the same name by now.
                    Ok(_) | Err(Failure::Conflict { .. }) => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
            _ => {}
        }
        let timing = &self.world.timing;
        let fate = Fate::of(pod, timing);
        let address = match next.step {
            Step::Initialize | Step::Start => self.world.addresses.of(pod, cx.client()).await?,
            _ => String::new(),
        };
        let at_once = fate.ready_after.is_some_and(|wait| wait.is_zero());
        let status = after(next.step, pod, &fate, at_once, &address, &self.world.now());
        let written = cx.status_of(pod).set(|pod| pod.status = Some(status.clone())).await?;
        say(pod, next.step, cx);
        Ok(Some(written.object))
    }
}

/// Who gives pods their nodes, as managed fields say.
const SCHEDULER: &str = "watchkeeper-workloads";

/// Gives a pod its node, as a scheduler does. Past the client's own memory: the answer does not show the pod, so that until
/// its next change is seen it would have to be asked for, and so would every list of pods.
async fn bind(pod: &Pod, client: &Client) -> Result<(), Failure> {
    let key = key_of(pod);
    let unavailable = |message: String| Failure::Unavailable { object: format!("Pod {key}"), message };
    let (namespace, name) = (key.namespace().unwrap_or_default(), key.name());
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": namespace, "name": name, "uid": pod.metadata.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
    });
    let pods = ResourcePath::new("", "v1", "pods");
    let mut uri = Uri::new(pods.subresource(Some(namespace), name, "binding"));
    uri.pair("fieldManager", SCHEDULER);
    let request = http::Request::post(uri.as_str())
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(binding.to_string().into_bytes())
        .map_err(|error| unavailable(error.to_string()))?;
    match client.connection().request(request).await {
        Ok(_) => Ok(()),
        // Somebody was faster, or it is gone: its next change tells.
        Err(RequestError::Refused(status)) if is_moot(status.refusal()) => Ok(()),
        Err(error) => Err(unavailable(error.to_string())),
    }
}

/// Whether a refusal says that the pod is gone or has a node already.
fn is_moot(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::NotFound | Refusal::Conflict | Refusal::AlreadyExists)
}

/// The events of a step, as scheduler and kubelet record them.
fn say(pod: &Pod, step: Step, cx: &Context<Pod>) {
    let spec = pod.spec.as_ref();
    let containers = || spec.into_iter().flat_map(|spec| &spec.containers);
    let inits = || spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let normal = |reason: &str, action: &str, note: String| cx.event(Event::normal(reason, action, note));
    let warning = |reason: &str, action: &str, note: String| cx.event(Event::warning(reason, action, note));
    let start = |container: &k8s_openapi::api::core::v1::Container| {
        let (name, image) = (&container.name, container.image.as_deref().unwrap_or_default());
        normal("Pulled", "Pulling", format!("Container image \"{image}\" already present on machine"));
        normal("Created", "Creating", format!("Container created: {name}"));
        normal("Started", "Starting", format!("Container started: {name}"));
    };
    match step {
        Step::Bind => {
            let key = key_of(pod);
            normal("Scheduled", "Binding", format!("Successfully assigned {key} to {NODE}"));
        }
        Step::Initialize => inits().for_each(start),
        Step::Start | Step::Restart => containers().for_each(start),
        Step::FailToPull | Step::BackOff => {
            for container in containers().chain(inits()) {
                let image = container.image.as_deref().unwrap_or_default();
                match (fate::image(image), step) {
                    (Image::Available, _) => {}
                    (Image::Invalid, _) => warning("InspectFailed", "Pulling", invalid_image(image)),
                    (Image::Missing, Step::FailToPull) => {
                        let why = missing_image(image);
                        warning("Failed", "Pulling", format!("Failed to pull image \"{image}\": {why}"));
                        warning("Failed", "Pulling", "Error: ErrImagePull".into());
                    }
                    (Image::Missing, _) => {
                        normal("BackOff", "Pulling", format!("Back-off pulling image \"{image}\""));
                        warning("Failed", "Pulling", "Error: ImagePullBackOff".into());
                    }
                }
            }
        }
        Step::Crash => {
            for container in containers() {
                let note = format!(
                    "Back-off restarting failed container {} in pod {}",
                    container.name,
                    key_of(pod).name()
                );
                warning("BackOff", "Restarting", note);
            }
        }
        Step::Remove => {
            for container in containers() {
                normal("Killing", "Killing", format!("Stopping container {}", container.name));
            }
        }
        Step::Accept | Step::BecomeReady | Step::Finish => {}
    }
}
