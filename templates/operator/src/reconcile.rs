//! What the operator does.

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper::prelude::*;

use crate::kind::Gadget;

/// Adds the operator to a manager: the definition of its kind, what wakes it, and what it does then.
#[must_use]
pub fn operator(manager: Manager) -> Manager {
    let controller = Controller::of::<Gadget>().owns::<ConfigMap>();
    // <finalizer>
    let controller = controller.cleanup("gadgets.example.com/cleanup", cleanup);
    // </finalizer>
    manager
        .install::<Gadget>()
        .controller(controller.reconcile(reconcile))
}

/// Called when a Gadget or its ConfigMap has changed. It says what should be there; where that is so already, nothing is sent.
async fn reconcile(object: Arc<Gadget>, cx: Context<Gadget>) -> Result<Action> {
    // <!cluster>
    let map: ConfigMap = cx.named();
    // </!cluster>
    // <cluster>
    //= let mut map: ConfigMap = cx.named();
    //= map.metadata.namespace = Some(object.spec.namespace.clone());
    // </cluster>
    let data = [("message".to_owned(), object.spec.message.clone())].into();
    // Creates it, puts it back when somebody edits or deletes it, and has it go with its Gadget.
    cx.children()
        .apply([ConfigMap {
            data: Some(data),
            ..map
        }])
        .await?;
    cx.status().condition(ready("Kept")).await?;
    Ok(Action::done())
}
// <finalizer>

/// Called before a Gadget goes. The ConfigMap goes by itself; this is for what is not in the cluster. As long as it fails, the
/// Gadget stays, and it is tried again.
async fn cleanup(_: Arc<Gadget>, cx: Context<Gadget>) -> Result<Action> {
    cx.event(Event::normal(
        "CleanedUp",
        "Delete",
        "Nothing is left of it outside the cluster",
    ));
    Ok(Action::done())
}
// </finalizer>
