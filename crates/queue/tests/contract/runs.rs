use std::panic::{AssertUnwindSafe, catch_unwind};

use watchkeeper_queue::{Backoff, JobOutcome, Queue};

use super::{ManualClock, ms, queue_and_clock, run_all};

#[test]
fn adds_of_a_queued_key_are_one() {
    let (queue, _clock) = queue_and_clock();
    (0..5).for_each(|_| queue.add(1));
    assert_eq!(run_all(&queue), [1]);
}

#[test]
fn adds_of_a_running_key_lead_to_exactly_one_more_run_after_it() {
    let (queue, _clock) = queue_and_clock();
    queue.add(1);
    let job = queue.try_get().unwrap();
    (0..5).for_each(|_| queue.add(1));
    assert!(queue.try_get().is_none());
    job.finish(JobOutcome::Done);
    assert_eq!(run_all(&queue), [1]);
}

#[test]
fn a_dropped_job_counts_as_a_retry() {
    let (queue, clock) = queue_and_clock();
    queue.add(1);
    drop(queue.try_get().unwrap());
    assert_eq!((queue.counts().running, queue.counts().delayed), (0, 1));
    clock.advance(ms(5));
    let job = queue.try_get().unwrap();
    assert_eq!(job.attempt(), 1);
    job.finish(JobOutcome::Done);
}

#[test]
fn a_worker_that_panics_does_not_keep_its_key() {
    let (queue, clock) = queue_and_clock();
    queue.add(1);
    let job = queue.try_get().unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _job = job;
        std::panic::resume_unwind(Box::new("the reconciler panicked"));
    }));
    assert!(panicked.is_err());
    clock.advance(ms(5));
    assert_eq!(run_all(&queue), [1]);
}

#[test]
fn retries_wait_twice_as_long_each_time_and_count_attempts() {
    let (queue, clock) = queue_and_clock();
    queue.add(1);
    for attempt in 0..10 {
        let job = queue.try_get().unwrap();
        assert_eq!(job.attempt(), attempt);
        job.finish(JobOutcome::Retry);
        clock.advance(ms(5 << attempt) - ms(1));
        assert!(queue.try_get().is_none());
        clock.advance(ms(1));
    }
}

#[test]
fn attempts_are_forgotten_by_every_outcome_but_retry() {
    for outcome in [JobOutcome::Done, JobOutcome::Terminal, JobOutcome::RequeueAfter(ms(1))] {
        let (queue, clock) = queue_and_clock();
        queue.add(1);
        queue.try_get().unwrap().finish(JobOutcome::Retry);
        clock.advance(ms(5));
        queue.try_get().unwrap().finish(outcome);
        queue.add(1);
        let job = queue.try_get().unwrap();
        assert_eq!(job.attempt(), 0, "{outcome:?}");
        job.finish(JobOutcome::Done);
    }
}

#[test]
fn forget_clears_attempts_and_timer_but_not_what_is_queued() {
    let (queue, clock) = queue_and_clock();
    queue.add(1);
    queue.try_get().unwrap().finish(JobOutcome::Retry);
    queue.forget(&1);
    assert_eq!(queue.counts().delayed, 0);
    clock.advance(ms(10));
    assert_eq!(run_all(&queue), []);

    queue.add(1);
    queue.try_get().unwrap().finish(JobOutcome::Retry);
    queue.add(1);
    queue.forget(&1);
    let job = queue.try_get().unwrap();
    assert_eq!(job.attempt(), 0);
    job.finish(JobOutcome::Done);
    queue.forget(&42);
}

#[test]
fn an_add_does_not_wait_for_the_back_off() {
    let (queue, _clock) = queue_and_clock();
    queue.add(1);
    queue.try_get().unwrap().finish(JobOutcome::Retry);
    queue.add(1);
    assert_eq!(run_all(&queue), [1]);
}

#[test]
fn a_seed_repeats_the_jitter() {
    let first_ready = |seed| {
        let clock = ManualClock::new();
        let backoff = Backoff::new(ms(1000), ms(1_000_000));
        let queue = Queue::builder().clock(clock.clone()).backoff(backoff).seed(seed).build();
        queue.add(1);
        queue.try_get().unwrap().finish(JobOutcome::Retry);
        (0..=1000).find(|_| {
            clock.advance(ms(1));
            !queue.is_empty()
        })
    };
    assert_eq!(first_ready(1), first_ready(1));
    assert_ne!(first_ready(1), first_ready(2));
    assert!(first_ready(1) >= Some(499));
}
