use std::rc::Rc;

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper::prelude::*;

async fn reconcile(_: Arc<ConfigMap>, cx: Context<ConfigMap>) -> Result<Action> {
    let counted = Rc::new(1);
    cx.children().await?;
    drop(counted);
    Ok(Action::done())
}

fn main() {
    let _ = Controller::of::<ConfigMap>().reconcile(reconcile);
}
