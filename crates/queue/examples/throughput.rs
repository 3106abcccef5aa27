//! How long an add, a get and a done take together. Prints one row a setting.
//!
//! `cargo run --release -p watchkeeper-queue --example throughput`
#![allow(clippy::print_stdout)] // printing is what it is for

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use prometheus_client::registry::Registry;
use watchkeeper_queue::{JobOutcome, Priority, Queue, QueueMetrics};

trait Key: std::hash::Hash + Eq + Clone + Send + 'static {}
impl<K: std::hash::Hash + Eq + Clone + Send + 'static> Key for K {}

const ITEMS: u64 = 1_000_000;

fn main() {
    let only = std::env::args().nth(1);
    let run = |what: &'static str, measure: &dyn Fn(&'static str)| {
        if only.as_ref().is_none_or(|only| what.contains(only.as_str())) {
            measure(what);
        }
    };
    let metrics = QueueMetrics::register(&mut Registry::default());
    for _ in 0..2 {
        run("u64, one at a time", &|what| {
            one_by_one(what, &Queue::new(), |n| n);
        });
        run("Arc<str>, one at a time", &|what| {
            one_by_one(what, &Queue::new(), arc_keys());
        });
        run("u64, 1M queued", &|what| all_at_once(what, &Queue::new(), |n| n));
        run("Arc<str>, 1M queued", &|what| {
            all_at_once(what, &Queue::new(), arc_keys());
        });
        run("u64, 1M queued, fair, 1000 tenants", &|what| {
            all_at_once(what, &Queue::builder().fair_by(|n| n % 1000).build(), |n| n);
        });
        run("u64, 1M queued, metrics", &|what| {
            all_at_once(what, &Queue::builder().metrics(&metrics, "q").build(), |n| n);
        });
        run("u64, 4 threads, add+get+done each", &|what| threads(what, 4));
        run("u64, 1000 async workers, 4 producers", &|what| {
            workers(what, 1000, 4);
        });
    }
}

fn arc_keys() -> impl Fn(u64) -> Arc<str> {
    let keys: Vec<Arc<str>> = (0..ITEMS).map(|n| format!("namespace-{}/name-{n}", n % 100).into()).collect();
    move |n| Arc::clone(&keys[n as usize])
}

fn report(what: &str, took: Duration) {
    println!("{what:<40} {:>6.0} ns", took.as_nanos() as f64 / ITEMS as f64);
}

fn one_by_one<K: Key>(what: &str, queue: &Queue<K>, key: impl Fn(u64) -> K) {
    let start = Instant::now();
    for n in 0..ITEMS {
        queue.add(key(n));
        finish_one(queue);
    }
    report(what, start.elapsed());
}

fn all_at_once<K: Key>(what: &str, queue: &Queue<K>, key: impl Fn(u64) -> K) {
    let start = Instant::now();
    for n in 0..ITEMS {
        let priority = if n % 10 == 0 { Priority::NORMAL } else { Priority::LOW };
        queue.add_with(key(n), priority);
    }
    for _ in 0..ITEMS {
        finish_one(queue);
    }
    report(what, start.elapsed());
    assert!(queue.is_empty());
}

fn finish_one<K: Key>(queue: &Queue<K>) {
    if let Some(job) = queue.try_get() {
        job.finish(JobOutcome::Done);
    }
}

fn threads(what: &str, threads: u64) {
    let queue = Queue::new();
    let start = Instant::now();
    thread::scope(|scope| {
        for thread in 0..threads {
            let queue = &queue;
            scope.spawn(move || {
                for n in 0..ITEMS / threads {
                    queue.add(n * threads + thread);
                    finish_one(queue);
                }
            });
        }
    });
    report(what, start.elapsed());
}

fn workers(what: &str, workers: usize, producers: u64) {
    let done = Arc::new(AtomicU64::new(0));
    let queue: Queue<u64> = Queue::new();
    let start = Instant::now();
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build()
    else {
        return println!("{what:<40} no runtime");
    };
    runtime.block_on(async {
        let tasks: Vec<_> = (0..workers)
            .map(|_| {
                let (queue, done) = (queue.clone(), Arc::clone(&done));
                tokio::spawn(async move {
                    while let Some(job) = queue.get().await {
                        job.finish(JobOutcome::Done);
                        if done.fetch_add(1, Ordering::Relaxed) + 1 == ITEMS {
                            queue.shutdown();
                        }
                    }
                })
            })
            .collect();
        for producer in 0..producers {
            let queue = queue.clone();
            tokio::spawn(async move {
                for n in 0..ITEMS / producers {
                    queue.add(n * producers + producer);
                    if n % 100 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            });
        }
        for task in tasks {
            let _ = task.await;
        }
    });
    report(what, start.elapsed());
}
