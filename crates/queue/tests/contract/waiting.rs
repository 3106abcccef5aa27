use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use watchkeeper_queue::{Get, JobOutcome, Queue};

use super::{Wakes, ms, no_context, queue_and_clock};

/// Workers that wait, each with its own count of wake-ups.
struct Waiting<'a> {
    gets: Vec<(Get<'a, u32>, Arc<Wakes>)>,
}

impl<'a> Waiting<'a> {
    fn new(queue: &'a Queue<u32>, workers: usize) -> Self {
        let mut waiting = Waiting { gets: Vec::new() };
        for _ in 0..workers {
            waiting.gets.push((queue.get(), Arc::default()));
            assert!(waiting.poll(waiting.gets.len() - 1).is_none());
        }
        waiting
    }

    /// Polls one worker; the key it got, which it finishes at once.
    fn poll(&mut self, worker: usize) -> Option<u32> {
        let (get, wakes) = &mut self.gets[worker];
        match Pin::new(get).poll(&mut Context::from_waker(&wakes.waker())) {
            Poll::Ready(job) => {
                let job = job.unwrap();
                let key = *job.key();
                job.finish(JobOutcome::Done);
                Some(key)
            }
            Poll::Pending => None,
        }
    }

    fn woken(&self) -> Vec<usize> {
        (0..self.gets.len()).filter(|&worker| self.gets[worker].1.count() > 0).collect()
    }

    fn cancel(&mut self, worker: usize) {
        drop(self.gets.remove(worker));
    }
}

#[test]
fn one_add_wakes_one_of_a_thousand_workers() {
    let (queue, _clock) = queue_and_clock();
    let mut waiting = Waiting::new(&queue, 1000);
    queue.add(7);
    let woken = waiting.woken();
    assert_eq!(woken.len(), 1);
    assert_eq!(waiting.poll(woken[0]), Some(7));
    assert_eq!(waiting.woken(), woken);
}

#[test]
fn as_many_workers_are_woken_as_items_are_added() {
    let (queue, _clock) = queue_and_clock();
    let waiting = Waiting::new(&queue, 100);
    (0..10).for_each(|key| queue.add(key));
    (0..10).for_each(|key| queue.add(key));
    assert_eq!(waiting.woken().len(), 10);
}

#[test]
fn a_thousand_workers_have_one_timer_between_them() {
    let (queue, clock) = queue_and_clock();
    queue.add_after(7, ms(10));
    let mut waiting = Waiting::new(&queue, 1000);
    assert_eq!(clock.sleepers(), 1);
    clock.advance(ms(10));
    let woken = waiting.woken();
    assert_eq!(woken.len(), 1);
    assert_eq!(waiting.poll(woken[0]), Some(7));
    assert_eq!(clock.sleepers(), 0);
}

#[test]
fn a_delayed_add_makes_a_waiting_worker_keep_the_time() {
    let (queue, clock) = queue_and_clock();
    let mut waiting = Waiting::new(&queue, 3);
    assert_eq!(clock.sleepers(), 0);
    queue.add_after(7, ms(10));
    let woken = waiting.woken();
    assert_eq!(woken.len(), 1);
    assert_eq!(waiting.poll(woken[0]), None);
    assert_eq!(clock.sleepers(), 1);
}

#[test]
fn an_earlier_timer_is_kept_too() {
    let (queue, clock) = queue_and_clock();
    queue.add_after(1, ms(100));
    let mut waiting = Waiting::new(&queue, 2);
    queue.add_after(2, ms(10));
    assert_eq!(waiting.woken(), [0]);
    assert_eq!(waiting.poll(0), None);
    clock.advance(ms(10));
    assert_eq!(waiting.poll(0), Some(2));
    // The keeper has left with an item; the other one has been woken to take over.
    assert_eq!(waiting.woken(), [0, 1]);
    assert_eq!(waiting.poll(1), None);
    clock.advance(ms(90));
    assert_eq!(waiting.poll(1), Some(1));
}

#[test]
fn a_keeper_that_gives_up_hands_over() {
    let (queue, clock) = queue_and_clock();
    queue.add_after(7, ms(10));
    let mut waiting = Waiting::new(&queue, 3);
    waiting.cancel(0);
    assert_eq!(waiting.woken(), [0]);
    assert_eq!(waiting.poll(0), None);
    assert_eq!(clock.sleepers(), 1);
    clock.advance(ms(10));
    assert_eq!(waiting.poll(0), Some(7));
}

#[test]
fn timers_that_fire_together_wake_as_many_workers_one_after_the_other() {
    let (queue, clock) = queue_and_clock();
    (0..3).for_each(|key| queue.add_after(key, ms(10)));
    let mut waiting = Waiting::new(&queue, 5);
    clock.advance(ms(10));
    assert_eq!(waiting.woken().len(), 1);
    let mut polled = Vec::new();
    let mut ran = Vec::new();
    while let Some(&worker) = waiting.woken().iter().find(|worker| !polled.contains(*worker)) {
        polled.push(worker);
        ran.extend(waiting.poll(worker));
    }
    assert_eq!(ran, [0, 1, 2]);
    assert_eq!(polled.len(), 3);
}

#[test]
fn a_worker_that_takes_an_item_sees_to_the_others_before_it_works() {
    let (queue, clock) = queue_and_clock();
    queue.add_after(1, ms(10));
    queue.add_after(2, ms(10));
    queue.add_after(3, ms(20));
    let mut keeper = queue.get();
    assert!(Pin::new(&mut keeper).poll(&mut no_context()).is_pending());
    let mut waiting = Waiting::new(&queue, 2);
    clock.advance(ms(10));
    let Poll::Ready(Some(held)) = Pin::new(&mut keeper).poll(&mut no_context()) else { panic!("1 is due") };
    assert_eq!(waiting.woken(), [0]);
    assert_eq!(waiting.poll(0), Some(2));
    assert_eq!(waiting.woken(), [0, 1]);
    assert_eq!(waiting.poll(1), None);
    clock.advance(ms(10));
    assert_eq!(waiting.poll(1), Some(3));
    held.finish(JobOutcome::Done);
}

#[test]
fn a_woken_worker_that_gives_up_passes_the_wake_up_on() {
    let (queue, _clock) = queue_and_clock();
    let mut waiting = Waiting::new(&queue, 3);
    queue.add(7);
    let woken = waiting.woken();
    waiting.cancel(woken[0]);
    let woken = waiting.woken();
    assert_eq!(woken.len(), 1);
    assert_eq!(waiting.poll(woken[0]), Some(7));
}

#[test]
fn a_get_that_is_dropped_before_it_was_woken_loses_nothing() {
    let (queue, _clock) = queue_and_clock();
    let mut waiting = Waiting::new(&queue, 2);
    waiting.cancel(0);
    queue.add(7);
    assert_eq!(waiting.poll(0), Some(7));
    drop(queue.get());
}

#[test]
fn a_worker_that_came_later_may_take_the_item_and_the_woken_one_waits_on() {
    let (queue, _clock) = queue_and_clock();
    let mut waiting = Waiting::new(&queue, 1);
    queue.add(7);
    queue.try_get().unwrap().finish(JobOutcome::Done);
    assert_eq!(waiting.poll(0), None);
    queue.add(8);
    assert_eq!(waiting.poll(0), Some(8));
}

#[test]
fn a_woken_sleeper_that_finds_nothing_sees_to_it_that_a_new_timer_is_kept() {
    let (queue, clock) = queue_and_clock();
    queue.add_after(1, ms(100));
    let mut waiting = Waiting::new(&queue, 2);
    queue.add(2);
    assert_eq!(waiting.woken(), [1]);
    queue.try_get().unwrap().finish(JobOutcome::Done);
    queue.add_after(3, ms(10));
    assert_eq!(waiting.poll(1), None);
    assert_eq!(waiting.woken(), [0, 1]);
    assert_eq!(waiting.poll(0), None);
    clock.advance(ms(10));
    assert_eq!(waiting.poll(0), Some(3));
}

#[test]
fn a_get_moved_to_another_task_wakes_that_one() {
    let (queue, _clock) = queue_and_clock();
    let (first, second) = (Arc::new(Wakes::default()), Arc::new(Wakes::default()));
    let mut get = pin!(queue.get());
    assert!(get.as_mut().poll(&mut Context::from_waker(&first.waker())).is_pending());
    assert!(get.as_mut().poll(&mut Context::from_waker(&second.waker())).is_pending());
    queue.add(7);
    assert_eq!((first.count(), second.count()), (0, 1));
    assert!(get.poll(&mut no_context()).is_ready());
}

#[tokio::test(start_paused = true)]
async fn the_time_of_tokio_drives_delayed_adds() {
    let queue = Queue::new();
    queue.add_after("later", Duration::from_secs(3600));
    let start = tokio::time::Instant::now();
    let job = queue.get().await.unwrap();
    assert_eq!(*job.key(), "later");
    assert_eq!(start.elapsed().as_secs(), 3600);
    job.finish(JobOutcome::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_workers_on_four_threads_run_every_key_and_none_twice_at_once() {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    const KEYS: usize = 500;
    let queue = Queue::new();
    let running: Arc<Vec<AtomicU32>> = Arc::new((0..KEYS).map(|_| AtomicU32::new(0)).collect());
    let ran: Arc<Vec<AtomicU32>> = Arc::new((0..KEYS).map(|_| AtomicU32::new(0)).collect());
    let workers: Vec<_> = (0..1000)
        .map(|_| {
            let (queue, running, ran) = (queue.clone(), Arc::clone(&running), Arc::clone(&ran));
            tokio::spawn(async move {
                while let Some(job) = queue.get().await {
                    let key: usize = *job.key();
                    assert_eq!(running[key].fetch_add(1, SeqCst), 0);
                    tokio::task::yield_now().await;
                    running[key].fetch_sub(1, SeqCst);
                    let outcome =
                        if ran[key].fetch_add(1, SeqCst) < 2 { JobOutcome::Retry } else { JobOutcome::Done };
                    job.finish(outcome);
                }
            })
        })
        .collect();
    for round in 0..20 {
        for key in 0..KEYS {
            queue.add((key * 7 + round) % KEYS);
        }
        tokio::task::yield_now().await;
    }
    while !queue.counts().is_idle() {
        tokio::task::yield_now().await;
    }
    assert!(queue.drain().await.is_empty());
    for worker in workers {
        worker.await.unwrap();
    }
    assert!(ran.iter().all(|ran| ran.load(SeqCst) >= 3));
}
