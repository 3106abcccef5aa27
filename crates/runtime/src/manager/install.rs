use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube_core::CustomResourceExt;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Client;

use crate::manager::Manager;
use crate::manager::tasks::Task;

/// How long to wait before a definition is applied again that could not be.
const AGAIN: Duration = Duration::from_secs(2);

impl Manager {
    /// Applies the definition of a custom resource when the program starts, so that the operator brings its own kinds along.
    /// It is applied again until it succeeds; meanwhile `/readyz` says why it does not.
    ///
    /// Needs the right to patch CustomResourceDefinitions. Where somebody else installs them, leave this out.
    #[must_use]
    pub fn install<K: CustomResourceExt>(self) -> Self {
        let definition = K::crd();
        let name = K::crd_name().to_owned();
        let installed = Arc::new(AtomicBool::new(false));
        let reason = Arc::new(Mutex::new("not applied yet".to_owned()));
        let (done, why) = (Arc::clone(&installed), Arc::clone(&reason));
        let apply = move |client: Client, stop: CancellationToken| async move {
            loop {
                let failed = match client.apply(&definition).await {
                    Ok(_) => {
                        done.store(true, Ordering::Release);
                        return Ok(());
                    }
                    Err(error) => error.to_string(),
                };
                tracing::warn!(definition = K::crd_name(), error = %failed, "cannot be installed; trying again");
                *why.lock() = failed;
                tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    () = tokio::time::sleep(AGAIN) => {}
                }
            }
        };
        let mut manager = self.ready_check(format!("definition {name}"), move || {
            if installed.load(Ordering::Acquire) { Ok(()) } else { Err(reason.lock().clone()) }
        });
        manager.before.push(Task::once(format!("definition {name}"), apply));
        manager
    }
}
