//! A process that writes is killed at random points. What it had acknowledged is there, and nothing is there by half.
//!
//! `STORAGE_KILLS=2000` kills more often than the 200 times of a usual run.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_executor::block_on;
use watchkeeper_storage::{Commit, Embedded, Limits, Options, Range, Revision, Storage};

const DIRECTORY: &str = "STORAGE_KILL_DIRECTORY";
const WRITERS: u64 = 4;

fn options() -> Options {
    // Small, so that the kill also hits checkpoints and new segments.
    let limits = Limits { segment_bytes: 8_000, log_bytes: 16_000, ..Limits::default() };
    Options { limits, ..Options::default() }
}

/// Not a test: what the test runs as another process, to kill it.
#[test]
#[ignore = "run by the test below"]
fn writer() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let storage = Arc::new(Embedded::open(directory, options()).unwrap());
    let start = storage.stats().revision;
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let storage = &storage;
            scope.spawn(move || write(storage, writer, start));
        }
    });
}

/// Each commit writes its number under three keys and removes an older one.
fn write(storage: &Embedded, writer: u64, start: Revision) {
    for round in 0_i64.. {
        let number = format!("{start}.{writer}.{round}");
        let commit = Commit::new()
            .put(format!("/left/{writer}/{}", round % 20), number.clone())
            .put(format!("/right/{writer}/{}", round % 20), number.clone())
            .put(format!("/once/{number}"), "x".repeat(round as usize % 100))
            .delete(format!("/once/{start}.{writer}.{}", round - 5));
        let revision = block_on(storage.commit(commit)).unwrap().revision;
        // One write call for a line: a line is there as a whole or not at all.
        let line = format!("\nack {revision} {number}\n");
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
        std::io::stdout().flush().unwrap();
    }
}

/// Kills the child when it goes out of scope, whatever happens.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets a process write and kills it; gives what it acknowledged.
fn write_and_kill(directory: &Path, random: &mut fastrand::Rng) -> Vec<(Revision, String)> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["writer", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(DIRECTORY, directory).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Killed(command.spawn().unwrap());
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let patience = random.usize(1..80);
    let delay = Duration::from_micros(random.u64(..3_000));
    let mut acknowledged = Vec::new();
    for line in lines.map_while(Result::ok) {
        let mut words = line.split(' ');
        if words.next() == Some("ack")
            && let (Some(revision), Some(number)) = (words.next(), words.next())
        {
            acknowledged.push((revision.parse().unwrap(), number.to_owned()));
        }
        if acknowledged.len() == patience {
            thread::sleep(delay);
            // What it still says until it is dead counts too.
            let _ = child.0.kill();
        }
    }
    acknowledged
}

/// What is there after the kill: revision and number of every commit that left a trace.
fn survivors(directory: &Path) -> (Revision, BTreeMap<Revision, Vec<String>>) {
    let storage = Embedded::open(directory, options()).unwrap();
    let page = block_on(storage.range(Range::prefix("/"))).unwrap();
    let mut traces: BTreeMap<Revision, Vec<String>> = BTreeMap::new();
    for entry in &page.entries {
        let number = match entry.key.strip_prefix("/once/") {
            Some(number) => number.to_owned(),
            None => String::from_utf8(entry.value.to_vec()).unwrap(),
        };
        traces.entry(entry.modified).or_default().push(number);
    }
    (page.revision, traces)
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_half_appears_when_the_process_is_killed() {
    let kills = std::env::var("STORAGE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut directory = tempfile::tempdir().unwrap();
    let (mut before, mut total) = (0, 0);
    for kill in 0..kills {
        if kill % 50 == 0 {
            directory = tempfile::tempdir().unwrap();
            before = 0;
        }
        let acknowledged = write_and_kill(directory.path(), &mut random);
        assert!(!acknowledged.is_empty(), "kill {kill}: nothing was written");
        let (revision, traces) = survivors(directory.path());
        let newest = acknowledged.iter().map(|(revision, _)| *revision).max().unwrap_or_default();
        assert!(newest <= revision, "kill {kill}: {newest} was acknowledged, {revision} is there");
        // At most one commit for each writer was under way.
        assert!(revision <= newest + WRITERS, "kill {kill}: {revision} after {newest}");
        for (revision, number) in &acknowledged {
            assert!(*revision > before, "kill {kill}: revision {revision} was given twice");
            if let Some(seen) = traces.get(revision) {
                assert!(seen.iter().all(|seen| seen == number), "kill {kill}: {revision} {number}: {seen:?}");
            }
        }
        let whole = |revision: &Revision| traces.get(revision).map_or(0, Vec::len) == 3;
        let recent = before.max(revision.saturating_sub(5)) + 1..=revision;
        for recent in recent {
            assert!(whole(&recent), "kill {kill}: {recent} of {revision} by half: {:?}", traces.get(&recent));
        }
        total += acknowledged.len();
        before = revision;
    }
    println!("{kills} kills, {total} commits acknowledged");
}
