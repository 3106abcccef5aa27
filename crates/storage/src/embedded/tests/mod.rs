//! The embedded storage on a disk that fails: everything in one thread, everything from a seed.
//!
//! `STORAGE_SEED=17` replays one case, `STORAGE_CASES=100000` tries more than usual.

mod corruption;
mod crash;
mod failure;
mod group_commit;
mod history;

use std::sync::Arc;

use super::simulated::Simulated;
use super::writer::Writer;
use crate::{Commit, Committed, Durability, Error, Limits, Options};

/// Runs a case for many seeds, and says which one failed.
fn for_seeds(cases: u64, case: impl Fn(u64) + std::panic::RefUnwindSafe) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("STORAGE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("STORAGE_CASES").unwrap_or(cases),
    };
    for seed in seeds {
        if let Err(panic) = std::panic::catch_unwind(|| case(seed)) {
            eprintln!("failed with STORAGE_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Segments and checkpoints after a few commits.
fn options(durability: Durability) -> Options {
    Options {
        durability,
        limits: Limits { segment_bytes: 400, log_bytes: 900, reserved_bytes: 300, ..Limits::default() },
        ..Options::default()
    }
}

fn open(disk: &Simulated, durability: Durability) -> Result<Writer, Error> {
    Writer::open(Arc::new(disk.clone()), options(durability))
}

/// Has a group of commits served, and whatever follows from it done.
fn serve(writer: &mut Writer, commits: impl IntoIterator<Item = Commit>) -> Vec<Result<Committed, Error>> {
    let group: Vec<Commit> = commits.into_iter().collect();
    let answers = writer.serve(&group);
    writer.tidy();
    writer.checkpointer.wait();
    answers
}
