use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Client;
use watchkeeper_core::Key;

use crate::manager::Manager;
use crate::manager::tasks::Task;

/// How long to wait before a definition is applied again that could not be.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// How often, and how many times, to look whether a definition is in force.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const POLLS: u32 = 200;

impl Manager {
    /// Applies the definition of a custom resource when the program starts, so that the operator brings its own kinds along.
    /// It is applied again until it succeeds; meanwhile `/readyz` says why it does not.
    ///
    /// Where somebody else installs them, such as a chart, `--install-definitions=false` turns it off.
    #[must_use]
    pub fn install<K: CustomResourceExt>(self) -> Self {
        let definition = K::crd();
        let mut this = self;
        this.about.definitions.push(described(&definition));
        if this.about.keeps_definitions {
            return this;
        }
        let name = K::crd_name().to_owned();
        let installed = Arc::new(AtomicBool::new(false));
        let reason = Arc::new(Mutex::new("not applied yet".to_owned()));
        let (done, why) = (Arc::clone(&installed), Arc::clone(&reason));
        let (tried, first) = oneshot::channel();
        let apply = move |client: Client, stop: CancellationToken| async move {
            // Dropped when the definition is in force, or could not be applied: nobody is to wait for longer.
            let mut tried = Some(tried);
            loop {
                let failed = match client.apply(&definition).await {
                    Ok(_) => {
                        in_force::<K>(&client, &stop).await;
                        done.store(true, Ordering::Release);
                        return Ok(());
                    }
                    Err(error) => error.to_string(),
                };
                drop(tried.take());
                tracing::warn!(definition = K::crd_name(), error = %failed, "CRD cannot be installed; it is retried");
                *why.lock() = failed;
                tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    () = tokio::time::sleep(RETRY_DELAY) => {}
                }
            }
        };
        let mut manager = this.ready_check(format!("definition {name}"), move || {
            if installed.load(Ordering::Acquire) { Ok(()) } else { Err(reason.lock().clone()) }
        });
        manager.before.push(Task::once(format!("definition {name}"), apply));
        manager.definitions.push(first);
        manager
    }
}

/// A definition as an object of its own.
fn described(definition: &CustomResourceDefinition) -> Value {
    let mut value = serde_json::to_value(definition).unwrap_or_default();
    value["apiVersion"] = "apiextensions.k8s.io/v1".into();
    value["kind"] = "CustomResourceDefinition".into();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("status");
    }
    value
}

/// Waits until the server serves what was defined, as far as it can be asked.
async fn in_force<K: CustomResourceExt>(client: &Client, stop: &CancellationToken) {
    let key = Key::new(None, K::crd_name());
    for _ in 0..POLLS {
        match client.live().get::<CustomResourceDefinition>(&key).await {
            Ok(Some(definition)) if !is_established(&definition) => {}
            _ => return,
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let mut conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Established" && condition.status == "True")
}
