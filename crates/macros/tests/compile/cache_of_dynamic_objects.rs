use watchkeeper::prelude::*;

fn main() {
    let _ = Manager::from_environment("demo").cache(Cache::of::<DynamicObject>());
}
