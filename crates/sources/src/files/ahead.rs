//! Files of a snapshot, read and parsed before their turn.

use std::collections::{HashMap, VecDeque};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use super::content::{self, Content};
use super::documents::{self, Parsed};
use super::settings::Settings;
use crate::print::Print;

/// So many files are read at once; for fewer than the second number nobody else has to be asked.
const FILES: (usize, usize) = (256, 32);
/// How much a thread reads before it leaves the rest to be read in its turn.
const BYTES: usize = 2 << 20;
/// More threads would wait for each other.
const MOST_THREADS: usize = 4;

/// What was found at a path, and what that says if it could be read.
pub(super) type Found = (Content, Option<(Print, Parsed)>);

/// What was found at paths a moment ago. What changes after that, the system tells of.
pub(super) struct Ahead {
    found: HashMap<PathBuf, Found>,
    threads: usize,
}

impl Ahead {
    pub(super) fn new() -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
        Self { found: HashMap::new(), threads }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.found.clear();
    }

    /// What was found at a path; once.
    pub(super) fn take(&mut self, path: &Path) -> Option<Found> {
        self.found.remove(path)
    }

    /// Reads the first of these files, on all cores.
    pub(super) fn read(&mut self, settings: &Settings, paths: &VecDeque<PathBuf>) {
        if paths.len() < FILES.1 || self.threads < 2 {
            return;
        }
        let paths: Vec<&PathBuf> = paths.iter().take(FILES.0).collect();
        let shares: Vec<&[&PathBuf]> = paths.chunks(paths.len().div_ceil(self.threads)).collect();
        let found = thread::scope(|scope| {
            let running: Vec<_> =
                shares.iter().map(|share| scope.spawn(move || read_all(settings, share))).collect();
            // What a thread did not come to is read in its turn.
            running.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect::<Vec<_>>()
        });
        self.found.extend(found);
    }
}

fn read_all(settings: &Settings, paths: &[&PathBuf]) -> Vec<(PathBuf, Found)> {
    let (mut found, mut bytes) = (Vec::with_capacity(paths.len()), 0_usize);
    for &path in paths {
        if bytes > BYTES {
            break;
        }
        let content = content::read(&settings.root().join(path), settings.max_file_bytes);
        let parsed = match &content {
            Content::Bytes(read) => {
                bytes = bytes.saturating_add(read.bytes.len());
                Some((Print::of(&read.bytes), documents::parse(settings, path, &read.bytes)))
            }
            _ => None,
        };
        found.push((path.clone(), (content, parsed)));
    }
    found
}
