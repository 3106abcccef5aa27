use super::history::{History, commit};
use super::{Simulated, for_seeds, open, serve};
use crate::embedded::disk::Disk;
use crate::{Durability, Error};

/// A storage that has lived for a while: a checkpoint, some segments. Gives the size of the last group.
fn grown(seed: u64, closed: bool) -> (Simulated, History, u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let disk = Simulated::new(seed);
    let mut history = History::default();
    let mut writer = open(&disk, Durability::Sync).unwrap();
    let mut last = 0;
    for _ in 0..random.usize(1..40) {
        last = random.u64(1..4);
        let numbers = history.take(last);
        let answers = serve(&mut writer, numbers.iter().map(|number| commit(*number)));
        for (number, answer) in numbers.iter().zip(&answers) {
            history.answered(*number, answer);
        }
    }
    if closed {
        writer.finish();
        last = 0;
    }
    (disk, history, last)
}

/// Flips bits in some bytes, and opens. Either that is refused, with the place and nothing changed, or what is there is
/// exactly a beginning of what happened, of at least so many revisions.
fn damaged(seed: u64, bytes: usize, disk: &Simulated, history: &History, at_least: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let files: Vec<_> = disk.contents().into_iter().filter(|(_, content)| !content.is_empty()).collect();
    for _ in 0..bytes {
        let (name, content) = &files[random.usize(..files.len())];
        disk.damage(name, random.usize(..content.len()), random.u8(1..));
    }
    let damaged = disk.contents();
    match open(disk, Durability::Sync) {
        Ok(writer) => history.check_beginning(&writer.engine.now(), at_least),
        Err(error @ (Error::Corrupt { .. } | Error::Format { .. })) => {
            assert!(error.to_string().contains("/simulated/"), "{error} does not say which file");
            assert_eq!(disk.contents(), damaged, "something was changed");
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_damaged_byte_is_refused_or_costs_no_more_than_the_last_group() {
    for_seeds(2_000, |seed| {
        let (disk, history, last) = grown(seed, false);
        damaged(seed, 1, &disk, &history, history.revision() - last);
    });
}

#[test]
fn after_a_clean_close_no_damaged_byte_costs_anything_unnoticed() {
    for_seeds(2_000, |seed| {
        let (disk, history, _) = grown(seed, true);
        damaged(seed, 1, &disk, &history, history.revision());
    });
}

#[test]
fn however_much_is_damaged_what_can_be_read_is_right() {
    for_seeds(1_000, |seed| {
        let (disk, history, _) = grown(seed, seed % 2 == 0);
        damaged(seed, 2 + seed as usize % 9, &disk, &history, 0);
    });
}

#[test]
fn a_file_that_is_missing_is_noticed() {
    for_seeds(300, |seed| {
        let (disk, history, last) = grown(seed, true);
        let mut random = fastrand::Rng::with_seed(seed);
        let names: Vec<_> = disk.contents().into_keys().collect();
        let checkpoints = names.iter().filter(|name| name.starts_with("checkpoint")).count();
        let victim = &names[random.usize(..names.len())];
        // The end of the log may be missing without a trace if the file before it is whole.
        if names.last() == Some(victim) && names.len() - checkpoints > 1 || names.len() == 1 {
            return;
        }
        Disk::remove(&disk, victim).unwrap();
        match open(&disk, Durability::Sync) {
            Err(Error::Corrupt { .. }) => {}
            Err(error) => panic!("{error}"),
            Ok(writer) => history.check_beginning(&writer.engine.now(), history.revision() - last),
        }
    });
}

#[test]
fn space_that_was_reserved_and_not_given_back_is_no_damage_in_any_file() {
    for_seeds(100, |seed| {
        let (disk, history, _) = grown(seed, seed % 2 == 0);
        for (name, content) in disk.contents() {
            if name.starts_with("log") {
                Disk::open(&disk, &name).unwrap().write_at(content.len() as u64, &[0; 777]).unwrap();
            }
        }
        let writer = open(&disk, Durability::Sync).unwrap();
        history.check_beginning(&writer.engine.now(), history.revision());
    });
}
