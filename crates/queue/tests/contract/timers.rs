use watchkeeper_queue::{Add, JobOutcome, Priority};

use super::{ms, queue_and_clock, run_all};

#[test]
fn a_delayed_add_is_ready_after_its_delay_and_not_before() {
    let (queue, clock) = queue_and_clock();
    queue.add_after(1, ms(10));
    clock.advance(ms(9));
    assert_eq!(run_all(&queue), []);
    clock.advance(ms(1));
    assert_eq!(run_all(&queue), [1]);
    assert_eq!(queue.counts().delayed, 0);
}

#[test]
fn a_plain_add_runs_at_once_and_leaves_the_timer_alone() {
    let (queue, clock) = queue_and_clock();
    queue.add_after(1, ms(10));
    queue.add(1);
    assert_eq!((queue.len(), queue.counts().delayed), (1, 1));
    clock.advance(ms(10));
    // The timer has fired into the item that was queued: one run, not two.
    assert_eq!(run_all(&queue), [1]);
}

#[test]
fn a_second_delayed_add_keeps_the_earlier_time() {
    for (first, second) in [(10, 30), (30, 10)] {
        let (queue, clock) = queue_and_clock();
        queue.add_after(1, ms(first));
        queue.add_after(1, ms(second));
        assert_eq!(queue.counts().delayed, 1);
        clock.advance(ms(10));
        assert_eq!(run_all(&queue), [1]);
        clock.advance(ms(60));
        assert_eq!(run_all(&queue), []);
    }
}

#[test]
fn a_second_delayed_add_keeps_the_higher_priority() {
    let (queue, clock) = queue_and_clock();
    queue.add_with(1, Add::from(Priority::LOW).after(ms(10)));
    queue.add_with(1, Add::from(Priority::NORMAL).after(ms(20)));
    clock.advance(ms(10));
    let job = queue.try_get().unwrap();
    assert_eq!(job.priority(), Priority::NORMAL);
    job.finish(JobOutcome::Done);
}

#[test]
fn a_run_that_is_done_cancels_the_timer_from_before_it() {
    for outcome in [JobOutcome::Done, JobOutcome::Terminal] {
        let (queue, clock) = queue_and_clock();
        queue.add_after(1, ms(10));
        queue.add(1);
        queue.try_get().unwrap().finish(outcome);
        assert_eq!(queue.counts().delayed, 0);
        clock.advance(ms(20));
        assert_eq!(run_all(&queue), []);
    }
}

#[test]
fn a_requeue_replaces_the_timer_from_before_the_run_even_by_a_later_one() {
    let (queue, clock) = queue_and_clock();
    queue.add_after(1, ms(10));
    queue.add(1);
    queue.try_get().unwrap().finish(JobOutcome::RequeueAfter(ms(30)));
    clock.advance(ms(29));
    assert_eq!(run_all(&queue), []);
    clock.advance(ms(1));
    assert_eq!(run_all(&queue), [1]);
}

#[test]
fn a_retry_replaces_the_timer_from_before_the_run_by_its_back_off() {
    let (queue, clock) = queue_and_clock();
    queue.add_after(1, ms(1));
    queue.add(1);
    queue.try_get().unwrap().finish(JobOutcome::Retry);
    clock.advance(ms(4));
    assert_eq!(run_all(&queue), []);
    clock.advance(ms(1));
    assert_eq!(run_all(&queue), [1]);
}

#[test]
fn a_timer_that_fires_while_its_key_runs_leads_to_one_more_run() {
    let (queue, clock) = queue_and_clock();
    queue.add_after(1, ms(10));
    queue.add(1);
    let job = queue.try_get().unwrap();
    clock.advance(ms(10));
    assert!(queue.try_get().is_none());
    job.finish(JobOutcome::Done);
    assert_eq!(run_all(&queue), [1]);
    assert_eq!(run_all(&queue), []);
}

#[test]
fn a_delayed_add_made_while_the_key_runs_outlives_the_result() {
    let (queue, clock) = queue_and_clock();
    queue.add(1);
    let job = queue.try_get().unwrap();
    queue.add_after(1, ms(10));
    job.finish(JobOutcome::Done);
    assert_eq!(queue.counts().delayed, 1);
    clock.advance(ms(10));
    assert_eq!(run_all(&queue), [1]);
}

#[test]
fn a_delayed_add_made_while_the_key_runs_is_merged_with_a_requeue() {
    for (asked, result) in [(10, 30), (30, 10)] {
        let (queue, clock) = queue_and_clock();
        queue.add(1);
        let job = queue.try_get().unwrap();
        queue.add_after(1, ms(asked));
        job.finish(JobOutcome::RequeueAfter(ms(result)));
        assert_eq!(queue.counts().delayed, 1);
        clock.advance(ms(10));
        assert_eq!(run_all(&queue), [1]);
        clock.advance(ms(60));
        assert_eq!(run_all(&queue), []);
    }
}

#[test]
fn delayed_adds_made_while_the_key_runs_do_not_hide_behind_one_that_has_fired() {
    let (queue, clock) = queue_and_clock();
    queue.add(1);
    let job = queue.try_get().unwrap();
    queue.add_after(1, ms(10));
    clock.advance(ms(10));
    queue.add_after(1, ms(10));
    job.finish(JobOutcome::Done);
    let job = queue.try_get().unwrap();
    assert!(queue.try_get().is_none());
    clock.advance(ms(10));
    job.finish(JobOutcome::Done);
    assert_eq!(run_all(&queue), [1]);
}

#[test]
fn a_requeue_after_no_time_is_an_add() {
    let (queue, _clock) = queue_and_clock();
    queue.add(1);
    queue.try_get().unwrap().finish(JobOutcome::RequeueAfter(ms(0)));
    assert_eq!((queue.len(), queue.counts().delayed), (1, 0));
}

#[test]
fn a_timer_that_no_one_looked_at_still_fired_at_its_time() {
    let (queue, clock) = queue_and_clock();
    queue.add_after(1, ms(10));
    clock.advance(ms(50));
    let job = queue.try_get().unwrap();
    assert_eq!(job.queued_for(), ms(40));
    job.finish(JobOutcome::Done);
}

#[test]
fn the_longest_delay_is_never_and_does_not_overflow() {
    let (queue, clock) = queue_and_clock();
    clock.advance(ms(1));
    queue.add_after(1, std::time::Duration::MAX);
    clock.advance(ms(1_000_000_000));
    assert_eq!((queue.len(), queue.counts().delayed), (0, 1));
}
