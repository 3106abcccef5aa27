use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper::prelude::*;

async fn reconcile(_: Arc<ConfigMap>, cx: Context<ConfigMap>) -> Result<Action> {
    let page: ConfigMap = cx.named_after("page");
    cx.children().apply(page).await?;
    Ok(Action::done())
}

fn main() {
    let _ = Controller::of::<ConfigMap>().reconcile(reconcile);
}
