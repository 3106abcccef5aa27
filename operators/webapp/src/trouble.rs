//! What keeps a WebApp from becoming what is declared.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use watchkeeper::client;

use crate::outlook::find;

/// How many letters of somebody else's message are repeated.
const ENOUGH: usize = 500;

/// Something that does not mend itself, in one word for programs and one sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Trouble {
    fn new(reason: &str, message: &str) -> Self {
        Self { reason: reason.into(), message: message.chars().take(ENOUGH).collect() }
    }

    /// What an error of a write means for the WebApp; none if it will pass by itself.
    pub(crate) fn of_write(error: &client::Error) -> Option<Self> {
        let reason = match error {
            client::Error::Invalid { .. } => "Refused",
            client::Error::Denied { message, .. } if message.contains("exceeded quota") => "QuotaExceeded",
            client::Error::Denied { .. } => "Denied",
            client::Error::Controlled { .. } => "NameTaken",
            client::Error::Refused { .. } => "Refused",
            _ => return None,
        };
        Some(Self::new(reason, &error.to_string()))
    }

    /// What the Deployment says about its pods being refused, or about its rollout being stuck.
    pub(crate) fn of_deployment(deployment: &Deployment) -> Option<Self> {
        let status = deployment.status.as_ref()?;
        let failed = find(status, "ReplicaFailure", "True");
        let stuck = find(status, "Progressing", "False");
        let stuck = stuck.filter(|stuck| stuck.reason.as_deref() != Some("DeploymentPaused"));
        let found = failed.or(stuck)?;
        let reason = found.reason.as_deref().unwrap_or("RolloutFailed");
        Some(Self::new(reason, found.message.as_deref().unwrap_or_default()))
    }

    /// What a container of a pod waits for, if it is something that waiting does not bring.
    pub(crate) fn of_pod(pod: &Pod) -> Option<Self> {
        let status = pod.status.as_ref()?;
        status.container_statuses.iter().flatten().find_map(|container| Self::of_container(pod, container))
    }

    fn of_container(pod: &Pod, container: &ContainerStatus) -> Option<Self> {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let reason = match waiting.reason.as_deref()? {
            // Both alternate while an image is tried again and again; the condition should not.
            "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => "BadImage",
            "CrashLoopBackOff" => "Crashing",
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => "CannotStart",
            _ => return None,
        };
        let what = match reason {
            "BadImage" => format!("image {:?} cannot be pulled", container.image),
            "Crashing" => "the container ends as soon as it is started".to_owned(),
            _ => "the container cannot be started".to_owned(),
        };
        let pod = pod.metadata.name.as_deref().unwrap_or_default();
        Some(Self::new(reason, &format!("{what} (pod {pod} and its events say more)")))
    }
}
