use watchkeeper_queue::{JobOutcome, Priority, Queue};

use super::{ManualClock, ms, queue_and_clock, run_all};

#[test]
fn equal_priorities_are_first_in_first_out() {
    let (queue, _clock) = queue_and_clock();
    (0..100).for_each(|key| queue.add(key));
    assert_eq!(run_all(&queue), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_higher_priority_goes_first() {
    let (queue, clock) = queue_and_clock();
    for (key, priority) in [(1, -100), (2, 0), (3, 5), (4, 0), (5, -100)] {
        queue.add_with(key, Priority(priority));
        clock.advance(ms(1));
    }
    assert_eq!(queue.depths(), [(Priority(5), 1), (Priority(0), 2), (Priority(-100), 2)]);
    assert_eq!(run_all(&queue), [3, 2, 4, 1, 5]);
}

#[test]
fn a_low_item_waits_ten_seconds_behind_a_stream_of_normal_ones_and_no_longer() {
    let (queue, clock) = queue_and_clock();
    queue.add_with(0, Priority::LOW);
    // More normal work than can be done: two items come for each that runs.
    for step in 0u32.. {
        queue.add(2 * step + 1);
        queue.add(2 * step + 2);
        let job = queue.try_get().unwrap();
        let (key, waited) = (*job.key(), job.queued_for());
        job.finish(JobOutcome::Done);
        if key == 0 {
            // It goes ahead of all that came 10 s after it, so what came in these 10 s is before it.
            let came_before = 2 * 1000;
            assert_eq!(step, came_before + 2);
            assert_eq!(waited, ms(10) * step);
            break;
        }
        clock.advance(ms(10));
    }
}

#[test]
fn age_makes_up_for_priority_at_the_step_that_was_set() {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).age_step(ms(1)).build();
    queue.add_with(1, Priority::LOW);
    clock.advance(ms(99));
    queue.add(2);
    clock.advance(ms(2));
    queue.add(3);
    assert_eq!(run_all(&queue), [2, 1, 3]);
}

#[test]
fn a_higher_add_promotes_a_queued_item() {
    let (queue, clock) = queue_and_clock();
    for key in 1..=3 {
        queue.add_with(key, Priority::LOW);
    }
    queue.add(9);
    clock.advance(ms(1));
    queue.add(3);
    assert_eq!(queue.depths(), [(Priority::NORMAL, 2), (Priority::LOW, 2)]);
    assert_eq!(run_all(&queue), [9, 3, 1, 2]);
}

#[test]
fn a_lower_add_changes_nothing() {
    let (queue, _clock) = queue_and_clock();
    queue.add(1);
    queue.add_with(1, Priority::LOW);
    assert_eq!(queue.depths(), [(Priority::NORMAL, 1)]);
}

#[test]
fn a_promotion_never_moves_an_item_back() {
    let (queue, clock) = queue_and_clock();
    queue.add_with(1, Priority::LOW);
    clock.advance(ms(10_500));
    queue.add(2);
    clock.advance(ms(500));
    queue.add(1);
    let job = queue.try_get().unwrap();
    assert_eq!((*job.key(), job.priority()), (1, Priority::NORMAL));
    job.finish(JobOutcome::Done);
}

#[test]
fn a_promoted_item_remembers_how_long_it_has_been_ready() {
    let (queue, clock) = queue_and_clock();
    queue.add_with(1, Priority::LOW);
    clock.advance(ms(100));
    queue.add(1);
    clock.advance(ms(50));
    let job = queue.try_get().unwrap();
    assert_eq!(job.queued_for(), ms(150));
    job.finish(JobOutcome::Done);
}

#[test]
fn a_retry_keeps_the_priority_of_the_run_unless_told_otherwise() {
    let (queue, clock) = queue_and_clock();
    queue.add_with(1, Priority::LOW);
    queue.try_get().unwrap().finish(JobOutcome::Retry);
    clock.advance(ms(5));
    let job = queue.try_get().unwrap();
    assert_eq!(job.priority(), Priority::LOW);
    job.finish_with(JobOutcome::RequeueAfter(ms(5)), Priority(3));
    clock.advance(ms(5));
    let job = queue.try_get().unwrap();
    assert_eq!(job.priority(), Priority(3));
    job.finish(JobOutcome::Done);
}

#[test]
fn a_change_promotes_a_low_item_that_waits_for_its_retry() {
    let (queue, _clock) = queue_and_clock();
    queue.add_with(1, Priority::LOW);
    queue.try_get().unwrap().finish(JobOutcome::Retry);
    queue.add(1);
    let job = queue.try_get().unwrap();
    assert_eq!((job.priority(), job.attempt()), (Priority::NORMAL, 1));
    job.finish(JobOutcome::Done);
}

#[test]
fn ten_thousand_items_of_one_tenant_do_not_delay_the_one_of_another() {
    let queue = Queue::builder().clock(ManualClock::new()).fair_by(|key: &u32| key / 100_000).build();
    (0..10_000).for_each(|key| queue.add(key));
    queue.add(100_000);
    (10_000..10_010).for_each(|key| queue.add(key));
    let order = run_all(&queue);
    assert_eq!(order[..4], [0, 100_000, 1, 2]);
    assert_eq!(order.len(), 10_011);
}

#[test]
fn tenants_take_turns_within_a_priority() {
    let queue = Queue::builder().clock(ManualClock::new()).fair_by(|key: &u32| key / 10).build();
    for key in [10, 11, 12, 20, 21, 30] {
        queue.add(key);
    }
    queue.add_with(40, Priority(1));
    queue.add_with(50, Priority(-1));
    assert_eq!(run_all(&queue), [40, 10, 20, 30, 11, 21, 12, 50]);
}

#[test]
fn a_tenant_gains_nothing_by_adding_one_item_at_a_time() {
    let queue = Queue::builder().clock(ManualClock::new()).fair_by(|key: &u32| key / 10).build();
    for key in [10, 20, 30, 31] {
        queue.add(key);
    }
    queue.try_get().unwrap().finish(JobOutcome::Done);
    queue.add(11);
    assert_eq!(run_all(&queue), [20, 30, 11, 31]);
}

#[test]
fn an_aged_band_is_served_even_if_a_new_item_has_its_turn() {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).fair_by(|key: &u32| key / 10).build();
    for key in [10, 11, 12] {
        queue.add_with(key, Priority::LOW);
    }
    clock.advance(ms(9_900));
    queue.add_with(20, Priority::LOW);
    queue.try_get().unwrap().finish(JobOutcome::Done);
    clock.advance(ms(101));
    queue.add(30);
    assert_eq!(run_all(&queue), [20, 11, 12, 30]);
}
