//! What an entry costs beyond its key and its value.

use futures_executor::block_on;
use watchkeeper_counting::Counting;
use watchkeeper_storage::{Commit, Memory, Options, Range, Storage};

#[global_allocator]
static MEMORY: Counting = Counting::new();

#[test]
fn an_entry_costs_little_more_than_its_bytes() {
    const ENTRIES: usize = 50_000;
    let key = |number| format!("/registry/example.com/widgets/default/widget-{number:06}");
    let before = MEMORY.in_use();
    let storage = Memory::new(Options::default());
    for number in 0..ENTRIES {
        // A value cut from a large request does not keep the request alive.
        let request = bytes::Bytes::from(vec![b'x'; 10_000]);
        block_on(storage.commit(Commit::new().put(key(number), request.slice(..600)))).unwrap();
    }
    let overhead = (MEMORY.in_use() - before) / ENTRIES - key(0).len() - 600;
    println!("{overhead} bytes per entry, its event in the window included");
    assert!(overhead <= 200, "{overhead} bytes per entry");
    let full = MEMORY.in_use();
    let pages: Vec<_> = (0..8)
        .map(|_| {
            block_on(storage.commit(Commit::new().put(key(0), "y"))).unwrap();
            block_on(storage.range(Range::prefix("/").limit(1))).unwrap()
        })
        .collect();
    let snapshots = (MEMORY.in_use() - full) / pages.len();
    assert!(snapshots < 20_000, "{snapshots} bytes for a snapshot of {ENTRIES} entries");
}
