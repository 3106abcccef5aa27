use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use watchkeeper_queue::{JobOutcome, Left, Queue};

use super::{Wakes, ms, no_context, queue_and_clock};

#[test]
fn nothing_starts_after_a_shutdown_and_adds_are_ignored() {
    let (queue, _clock) = queue_and_clock();
    queue.add(1);
    queue.shutdown();
    assert!(queue.try_get().is_none());
    assert!(matches!(pin!(queue.get()).poll(&mut no_context()), Poll::Ready(None)));
    queue.add(2);
    queue.add_after(3, ms(1));
    assert_eq!((queue.len(), queue.counts().delayed), (1, 0));
}

#[test]
fn a_shutdown_wakes_all_who_wait() {
    let (queue, _clock) = queue_and_clock();
    let wakes = Arc::new(Wakes::default());
    let waker = wakes.waker();
    let mut gets: Vec<_> = (0..10).map(|_| Box::pin(queue.get())).collect();
    for get in &mut gets {
        assert!(get.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    queue.shutdown();
    assert_eq!(wakes.count(), 10);
    for get in &mut gets {
        assert!(matches!(get.as_mut().poll(&mut no_context()), Poll::Ready(None)));
    }
}

#[test]
fn a_drain_waits_for_what_runs_and_says_what_it_left() {
    let (queue, _clock) = queue_and_clock();
    for key in 1..=5 {
        queue.add(key);
    }
    queue.add_after(6, ms(10));
    queue.add_after(5, ms(10));
    let jobs: Vec<_> = (0..3).map_while(|_| queue.try_get()).collect();
    queue.add(2);

    let wakes = Arc::new(Wakes::default());
    let waker = wakes.waker();
    let mut drain = pin!(queue.drain());
    let mut outcomes = [JobOutcome::Done, JobOutcome::Done, JobOutcome::Retry].into_iter();
    for (job, outcome) in jobs.into_iter().zip(&mut outcomes) {
        assert!(drain.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(wakes.count(), 0);
        job.finish(outcome);
    }
    assert_eq!(wakes.count(), 1);
    let Poll::Ready(mut left) = drain.poll(&mut no_context()) else { panic!("nothing runs") };
    left.delayed.sort_unstable();
    assert_eq!(left, Left { queued: vec![4, 5, 2], delayed: vec![3, 6], running: vec![] });
}

#[test]
fn a_drain_shuts_down_even_if_it_is_not_awaited() {
    let (queue, _clock) = queue_and_clock();
    queue.add(1);
    drop(queue.drain());
    assert!(queue.is_shut_down());
    assert!(queue.try_get().is_none());
}

#[test]
fn a_drain_ends_with_its_grace_and_says_what_still_runs() {
    let (queue, clock) = queue_and_clock();
    queue.add(1);
    let job = queue.try_get().unwrap();
    let wakes = Arc::new(Wakes::default());
    let waker = wakes.waker();
    let mut drain = pin!(queue.drain_within(ms(100)));
    assert!(drain.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    clock.advance(ms(99));
    assert_eq!(wakes.count(), 0);
    assert!(drain.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    clock.advance(ms(1));
    assert_eq!(wakes.count(), 1);
    let Poll::Ready(left) = drain.poll(&mut no_context()) else { panic!("the grace is over") };
    assert_eq!(left, Left { queued: vec![], delayed: vec![], running: vec![1] });
    job.finish(JobOutcome::Done);
}

#[test]
fn a_drain_that_was_dropped_is_not_woken() {
    let (queue, _clock) = queue_and_clock();
    queue.add(1);
    let job = queue.try_get().unwrap();
    let wakes = Arc::new(Wakes::default());
    let mut drain = Box::pin(queue.drain());
    assert!(drain.as_mut().poll(&mut Context::from_waker(&wakes.waker())).is_pending());
    drop(drain);
    job.finish(JobOutcome::Done);
    assert_eq!(wakes.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn drains_end_together_with_the_last_job_under_tokio() {
    let queue = Queue::new();
    queue.add("slow");
    let job = queue.get().await.unwrap();
    let worker = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(30)).await;
        job.finish(JobOutcome::Done);
    });
    let start = tokio::time::Instant::now();
    let cut_short = queue.drain_within(Duration::from_secs(5)).await;
    assert_eq!((cut_short.running, start.elapsed()), (vec!["slow"], Duration::from_secs(5)));
    let (one, other) = tokio::join!(queue.drain(), queue.drain_within(Duration::MAX));
    assert!(one.is_empty() && other.is_empty());
    assert_eq!(start.elapsed(), Duration::from_secs(30));
    worker.await.unwrap();
}
