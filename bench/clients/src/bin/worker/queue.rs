//! Adds keys, takes them and is done with them. A line `run` does all of it, once more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use watchkeeper_core::Key;
use watchkeeper_queue::{JobOutcome, Queue, QueueMetrics};
use watchkeeper_runtime::Request;

use crate::Result;
use crate::flags::Flags;
use crate::lines::{Answer, Stopwatch, each, unknown};

/// After so many adds the others have a turn. Go has its turns by the clock.
const TURN: usize = 64;

/// Runs it.
pub(crate) fn run(flags: &Flags, runtime: &Runtime) -> Result<()> {
    let (keys, items) = (flags.get("keys", 1_000_usize)?, flags.get("items", 1_000_000_usize)?);
    let workers = flags.get("workers", 1_usize)?;
    let after = Duration::from_millis(flags.text("after", "0ms").trim_end_matches("ms").parse()?);
    let key = |number| {
        Request::new(Key::new(Some(&format!("team-{}", number % 50)), &format!("object-{number:07}")))
    };
    let keys: Arc<[Request]> = (0..keys).map(key).collect();
    // As a controller has it.
    let metrics = QueueMetrics::register(&mut Registry::default());
    let queue = Queue::builder().metrics(&metrics, "bench").build();
    Answer::default().print()?;
    each(|word, _| {
        if word != "run" {
            return unknown(word);
        }
        let watch = Stopwatch::start();
        for _ in 0..items.div_ceil(keys.len()) {
            runtime.block_on(async {
                if workers == 1 {
                    alone(&queue, &keys, after).await;
                } else {
                    together(&queue, &keys, workers, after).await;
                }
            });
        }
        watch.stop(items as u64).print()
    })
}

/// Now or, if there are delays, at one of a hundred moments.
fn add(queue: &Queue<Request>, key: &Request, number: usize, after: Duration) {
    if after.is_zero() {
        queue.add(key.clone());
    } else {
        queue.add_after(key.clone(), after * (number as u32 % 100 + 1) / 100);
    }
}

async fn alone(queue: &Queue<Request>, keys: &[Request], after: Duration) {
    for (number, key) in keys.iter().enumerate() {
        add(queue, key, number, after);
    }
    for _ in keys {
        work(queue).await;
    }
}

async fn work(queue: &Queue<Request>) {
    if let Some(job) = queue.get().await {
        job.finish(JobOutcome::Done);
    }
}

async fn together(queue: &Queue<Request>, keys: &Arc<[Request]>, workers: usize, after: Duration) {
    let mut tasks = JoinSet::new();
    let taken = Arc::new(AtomicUsize::new(0));
    for worker in 0..workers {
        let (adding, all) = (queue.clone(), Arc::clone(keys));
        tasks.spawn(async move {
            for (turn, number) in (worker..all.len()).step_by(workers).enumerate() {
                add(&adding, &all[number], number, after);
                if turn % TURN == TURN - 1 {
                    tokio::task::yield_now().await;
                }
            }
        });
        let (queue, taken, count) = (queue.clone(), Arc::clone(&taken), keys.len());
        tasks.spawn(async move {
            while taken.fetch_add(1, Relaxed) < count {
                work(&queue).await;
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}
