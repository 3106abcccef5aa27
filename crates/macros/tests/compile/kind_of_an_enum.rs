#[watchkeeper::kind(group = "demo.dev", version = "v1", kind = "Page")]
enum Page {
    One,
}

fn main() {}
