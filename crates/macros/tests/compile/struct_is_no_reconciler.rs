use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper::prelude::*;

struct Pages;

fn main() {
    let _ = Controller::of::<ConfigMap>().reconcile(Pages);
}
