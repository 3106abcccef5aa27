use super::history::{History, commit};
use super::{Simulated, for_seeds, open, serve};
use crate::embedded::simulated::Fault;
use crate::{Durability, Error};

/// How a life of the storage ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The machine stops in the middle of a call.
    Crash,
    /// The power fails between calls.
    PowerLoss,
    /// The process is killed between calls; the operating system goes on.
    Kill,
    Close,
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_half_appears_wherever_it_crashes() {
    for_seeds(2_000, |seed| lives(seed, Durability::Sync));
}

#[test]
fn relaxed_durability_loses_only_the_end_and_only_when_the_power_fails() {
    for_seeds(1_000, |seed| lives(seed, Durability::Relaxed));
}

fn lives(seed: u64, durability: Durability) {
    let mut random = fastrand::Rng::with_seed(seed);
    let disk = Simulated::new(seed);
    let mut history = History::default();
    for _ in 0..random.usize(2..6) {
        let end = random.choice([End::Crash, End::Crash, End::PowerLoss, End::Kill, End::Close]);
        let end = end.unwrap_or(End::Crash);
        let since = history.revision();
        if end == End::Crash {
            disk.arm(random.u64(..60), Fault::Crash);
        }
        live(&disk, durability, end, &mut history, &mut random);
        disk.disarm();
        if matches!(end, End::Crash | End::PowerLoss) {
            disk.lose_power();
            if durability == Durability::Relaxed {
                history.may_lose_back_to(since);
            }
        }
        let reopened = open(&disk, durability).unwrap_or_else(|error| panic!("after {end:?}: {error}"));
        history.check(&reopened.engine.now());
        reopened.checkpointer.stop();
    }
}

/// Commits until the end comes.
fn live(
    disk: &Simulated,
    durability: Durability,
    end: End,
    history: &mut History,
    random: &mut fastrand::Rng,
) {
    let Ok(mut writer) = open(disk, durability) else {
        assert_eq!(end, End::Crash, "only a crash keeps it from opening");
        return;
    };
    history.check(&writer.engine.now());
    for _ in 0..random.usize(1..25) {
        let numbers = history.take(random.u64(1..5));
        let answers = serve(&mut writer, numbers.iter().map(|number| commit(*number)));
        if answers.iter().any(Result::is_err) {
            assert_eq!(end, End::Crash, "{:?}", answers[0]);
            // Whatever was said about these was said by a machine that was already down.
            history.interrupted(&numbers);
            return;
        }
        for (number, answer) in numbers.iter().zip(&answers) {
            history.answered(*number, answer);
        }
    }
    if end == End::Close {
        writer.finish();
    }
}

#[test]
fn a_log_that_was_cut_goes_on_and_is_cut_again() {
    for_seeds(200, |seed| {
        let disk = Simulated::new(seed);
        let mut history = History::default();
        for round in 0..20 {
            let mut writer = open(&disk, Durability::Sync).unwrap();
            history.check(&writer.engine.now());
            let numbers = history.take(3);
            // The group is written, but the sync never comes back.
            disk.arm(1 + round % 2, Fault::Crash);
            let answers = serve(&mut writer, numbers.iter().map(|number| commit(*number)));
            match answers.iter().all(Result::is_ok) {
                true => numbers
                    .iter()
                    .zip(&answers)
                    .for_each(|(number, answer)| history.answered(*number, answer)),
                false => history.interrupted(&numbers),
            }
            disk.disarm();
            disk.lose_power();
        }
        let writer = open(&disk, Durability::Sync).unwrap();
        history.check(&writer.engine.now());
    });
}

#[test]
fn after_a_failed_sync_nothing_is_pretended() {
    for_seeds(700, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let disk = Simulated::new(seed);
        let mut history = History::default();
        disk.arm(random.u64(..60), Fault::Sync);
        while let Ok(mut writer) = open(&disk, Durability::Sync) {
            history.check(&writer.engine.now());
            let before = writer.engine.now().revision();
            for _ in 0..30 {
                let numbers = history.take(random.u64(1..4));
                let answers = serve(&mut writer, numbers.iter().map(|number| commit(*number)));
                for (number, answer) in numbers.iter().zip(&answers) {
                    history.answered(*number, answer);
                }
            }
            if let Some(reason) = writer.counters.halted() {
                let answer = serve(&mut writer, [commit(0)]).remove(0);
                assert!(matches!(answer, Err(Error::Halted { .. })), "{answer:?} after {reason}");
                assert_eq!(writer.engine.now().revision(), history.revision(), "shown before it was durable");
            } else {
                assert!(writer.engine.now().revision() > before);
            }
            writer.finish();
            if disk.disarm() {
                break;
            }
        }
        // Opened again without a crash in between, it reads what the operating system still has in memory. From
        // then on that counts, so it must be on the disk.
        let seen = open(&disk, Durability::Sync).unwrap();
        history.check(&seen.engine.now());
        drop(seen);
        disk.lose_power();
        let after = open(&disk, Durability::Sync).unwrap();
        history.check(&after.engine.now());
    });
}
