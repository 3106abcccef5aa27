use super::history::{History, commit};
use super::{Simulated, for_seeds, open, serve};
use crate::embedded::simulated::Fault;
use crate::{Durability, Error};

#[test]
fn a_full_disk_fails_the_commit_and_the_storage_goes_on_when_there_is_space() {
    for_seeds(500, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let disk = Simulated::new(seed);
        let mut history = History::default();
        let mut writer = open(&disk, Durability::Sync).unwrap();
        let mut refused = 0;
        disk.arm(random.u64(..80), Fault::Full(random.u64(1..20)));
        // Few enough afterwards that no checkpoint covers what was left behind.
        let mut after = random.u32(1..25);
        while after > 0 {
            after -= u32::from(disk.has_struck());
            let numbers = history.take(random.u64(1..4));
            let answers = serve(&mut writer, numbers.iter().map(|number| commit(*number)));
            for (number, answer) in numbers.iter().zip(&answers) {
                history.answered(*number, answer);
                if let Err(error) = answer {
                    refused += 1;
                    assert!(matches!(error, Error::Full { .. }), "{error}");
                    assert!(error.to_string().contains("no space"), "{error}");
                }
            }
            assert_eq!(writer.engine.now().revision(), history.revision());
        }
        disk.disarm();
        let answer = serve(&mut writer, [commit(1_000)]).remove(0);
        assert!(answer.is_ok(), "{answer:?} after {refused} refusals");
        history.answered(1_000, &answer);
        assert_eq!(writer.counters.halted(), None);
        if random.bool() {
            disk.lose_power();
        }
        history.check(&open(&disk, Durability::Sync).unwrap().engine.now());
    });
}

#[test]
fn a_failed_write_is_reported_as_failed_and_never_appears() {
    for_seeds(500, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let disk = Simulated::new(seed);
        let mut history = History::default();
        let mut writer = open(&disk, Durability::Sync).unwrap();
        disk.arm(random.u64(..80), Fault::Write);
        let mut after = random.u32(1..5);
        while after > 0 {
            after -= u32::from(disk.has_struck());
            let numbers = history.take(random.u64(1..4));
            let answers = serve(&mut writer, numbers.iter().map(|number| commit(*number)));
            for (number, answer) in numbers.iter().zip(&answers) {
                history.answered(*number, answer);
            }
        }
        disk.disarm();
        assert_eq!(writer.engine.now().revision(), history.revision());
        if random.bool() {
            disk.lose_power();
        }
        history.check(&open(&disk, Durability::Sync).unwrap().engine.now());
    });
}

#[test]
fn disk_use_is_bounded_by_checkpoints() {
    let disk = Simulated::new(1);
    let mut writer = open(&disk, Durability::Sync).unwrap();
    let mut history = History::default();
    for _ in 0..2_000 {
        for number in history.take(1) {
            // The same few keys again and again.
            let answer = serve(&mut writer, [commit(number % 20)]).remove(0);
            assert!(answer.is_ok());
        }
        let used: usize = disk.contents().values().map(Vec::len).sum();
        assert!(used < 6_000, "{used} bytes for 30 keys");
    }
    assert!(writer.counters.checkpoints.load(std::sync::atomic::Ordering::Relaxed) > 50);
}
