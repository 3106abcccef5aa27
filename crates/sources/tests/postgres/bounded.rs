//! A large table does not take memory.

use futures_util::StreamExt as _;
use watchkeeper_core::{Event, Freshness, Source as _, Start};

use crate::server::Server;

/// What this process has, in bytes.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[tokio::test]
async fn the_first_snapshot_of_a_hundred_thousand_rows_is_bounded_in_memory() {
    let database = Server::shared().database().await;
    let source = database.items().await;
    // 200 MB, which compress to little on the disk of the server.
    database.sql("ALTER TABLE items ADD COLUMN more text").await;
    database.sql("INSERT INTO items SELECT 'n' || n, n, repeat(n::text, 2000 / length(n::text)) FROM generate_series(1, 100000) n").await;
    source.clone().replicate().install().await.unwrap();
    for source in [source.clone(), source.replicate()] {
        let before = resident();
        let mut feed = source.open(Start::Snapshot(Freshness::Any));
        let (mut items, mut peak) = (0, before);
        loop {
            match feed.next().await.unwrap().unwrap() {
                Event::Item(_) => items += 1,
                Event::Complete(_) => break,
                _ => {}
            }
            if items % 1000 == 0 {
                peak = peak.max(resident());
            }
        }
        assert_eq!(items, 100_000);
        let taken = (peak - before) >> 20;
        assert!(taken < 64, "{taken} MiB");
    }
}
