use watchkeeper::prelude::*;

#[watchkeeper::kind(group = "demo.dev", version = "v1", kind = "Page", namespaced)]
struct PageSpec {
    text: String,
}

fn main() {
    let _ = Controller::of::<PageSpec>();
}
