//! The work queue: add, get, done, with one, four and a thousand workers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_runtime::controller::{Action, Config, applier};
use kube_runtime::reflector::{self, ObjectRef};
use kube_runtime::scheduler::{ScheduleRequest, scheduler};
use kube_runtime::watcher;
use tokio::sync::Barrier;
use watchkeeper_bench_report::Row;
use watchkeeper_queue::{JobOutcome, Queue};

use crate::measure::cpu_time;
use crate::rows::{Size, row, runtime};

const GROUP: &str = "queue";

/// All rows.
pub fn rows(size: Size) -> Vec<Row> {
    let items = size.changes * 5;
    let one = row(
        GROUP,
        "queue: add, get, done, 1 worker, CPU per item".into(),
        size,
        items,
        || ours_alone(items),
        || peer_alone(items),
        Some(1.0),
    );
    let several = [4, 1_000].map(|workers| {
        row(
            GROUP,
            format!("queue: add, get, done, {workers} workers, CPU per item"),
            size,
            items,
            || ours_shared(items, workers),
            || peer_shared(items, workers as u16),
            Some(1.0),
        )
    });
    std::iter::once(one).chain(several).collect()
}

/// Adds everything, then takes everything, so that both sides have a full queue.
pub(super) fn ours_alone(items: usize) -> Duration {
    runtime().block_on(async {
        let queue = Queue::new();
        let before = cpu_time();
        (0..items).for_each(|item| queue.add(item));
        for _ in 0..items {
            if let Some(job) = queue.get().await {
                job.finish(JobOutcome::Done);
            }
        }
        cpu_time() - before
    })
}

pub(super) fn peer_alone(items: usize) -> Duration {
    runtime().block_on(async {
        let before = cpu_time();
        let requests = stream::iter(0..items)
            .map(|message| ScheduleRequest { message, run_at: tokio::time::Instant::now() })
            .chain(stream::pending());
        scheduler(requests).take(items).for_each(|_| async {}).await;
        cpu_time() - before
    })
}

fn ours_shared(items: usize, workers: usize) -> Duration {
    runtime().block_on(async {
        let queue = Queue::new();
        let before = cpu_time();
        let (done, mut all_done) = tokio::sync::mpsc::channel(1);
        let left = Arc::new(std::sync::atomic::AtomicUsize::new(items));
        let ready = Arc::new(Barrier::new(workers + 1));
        let tasks: Vec<_> = (0..workers)
            .map(|_| {
                let (queue, done, left, ready) =
                    (queue.clone(), done.clone(), Arc::clone(&left), Arc::clone(&ready));
                tokio::spawn(async move {
                    ready.wait().await;
                    while let Some(job) = queue.get().await {
                        // As the peer does for every item, let the work be a future that yields once.
                        tokio::task::yield_now().await;
                        job.finish(JobOutcome::Done);
                        if left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) == 1 {
                            let _ = done.send(()).await;
                        }
                    }
                })
            })
            .collect();
        ready.wait().await;
        (0..items).for_each(|item| queue.add(item));
        let _ = all_done.recv().await;
        let _ = queue.drain().await;
        for task in tasks {
            let _ = task.await;
        }
        cpu_time() - before
    })
}

fn peer_shared(items: usize, workers: u16) -> Duration {
    runtime().block_on(async {
        // The applier looks objects up in a store, so they have to be there; not part of what is measured.
        let (store, mut writer) = reflector::store::<ConfigMap>();
        let name = |item: usize| format!("n{item}");
        writer.apply_watcher_event(&watcher::Event::Init);
        for item in 0..items {
            let mut map = ConfigMap::default();
            map.metadata.name = Some(name(item));
            writer.apply_watcher_event(&watcher::Event::InitApply(map));
        }
        writer.apply_watcher_event(&watcher::Event::InitDone);
        let requests: Vec<_> = (0..items).map(|item| ObjectRef::<ConfigMap>::new(&name(item))).collect();
        let before = cpu_time();
        let queue = stream::iter(requests.into_iter().map(Ok::<_, std::convert::Infallible>));
        let reconcile = |_, _| {
            Box::pin(async {
                tokio::task::yield_now().await;
                Ok::<_, std::convert::Infallible>(Action::await_change())
            })
        };
        let policy = |_, _: &std::convert::Infallible, _| Action::await_change();
        let config = Config::default().concurrency(workers);
        applier(reconcile, policy, Arc::new(()), store, queue, config)
            .take(items)
            .for_each(|_| async {})
            .await;
        cpu_time() - before
    })
}
