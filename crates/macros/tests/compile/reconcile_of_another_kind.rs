use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use watchkeeper::prelude::*;

async fn reconcile(_: Arc<Secret>, _: Context<Secret>) -> Result<Action> {
    Ok(Action::done())
}

fn main() {
    let _ = Controller::of::<ConfigMap>().reconcile(reconcile);
}
