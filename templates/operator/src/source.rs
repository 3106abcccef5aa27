//! A second controller, over something that is no kind of Kubernetes: each YAML file of a folder declares a Gadget.

use std::path::Path;

use watchkeeper::prelude::*;
use watchkeeper::sources::files::Files;

use crate::kind::Gadget;

/// Keeps a Gadget for every one that a file below `path` declares: `manager.controller(folder(path))`.
#[must_use]
pub fn folder(path: &Path) -> Controller {
    let files = Files::directory(path).of::<Gadget>();
    Controller::over::<Gadget>("folder", files)
        .writes::<Gadget>(Verbs::APPLY | Verbs::DELETE)
        .deleted(deleted)
        .reconcile(declared)
}

/// Called when a file has changed.
async fn declared(object: Arc<Gadget>, cx: Context<Gadget>) -> Result<Action> {
    cx.client().apply(&*object).await?;
    Ok(Action::done())
}

/// Called when a file is gone.
async fn deleted(object: Arc<Gadget>, cx: Context<Gadget>) -> Result<Action> {
    cx.client().delete(&*object).await?;
    Ok(Action::done())
}
