//! Files of a snapshot, read and parsed before their turn.

use std::collections::HashMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use super::content::{self, Content};
use super::documents::{self, Parsed};
use super::settings::Settings;

/// So many files are read at once; for fewer than the second number nobody else has to be asked.
const FILES: (usize, usize) = (256, 32);
/// How much a thread reads before it leaves the rest to be read in its turn.
const BYTES: usize = 2 << 20;
/// More threads would wait for each other.
const MOST_THREADS: usize = 4;

/// What was found at paths a moment ago. What changes after that, the system tells of.
#[derive(Default)]
pub(super) struct Ahead(HashMap<PathBuf, (Content, Option<Parsed>)>);

impl Ahead {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What was found at a path; once.
    pub(super) fn take(&mut self, path: &Path) -> Option<(Content, Option<Parsed>)> {
        self.0.remove(path)
    }

    /// Reads the first of these files, on all cores.
    pub(super) fn read<'a>(&mut self, settings: &Settings, paths: impl Iterator<Item = &'a PathBuf>) {
        let paths: Vec<&PathBuf> = paths.take(FILES.0).collect();
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
        if paths.len() < FILES.1 || threads < 2 {
            return;
        }
        let shares: Vec<&[&PathBuf]> = paths.chunks(paths.len().div_ceil(threads)).collect();
        let found = thread::scope(|scope| {
            let running: Vec<_> =
                shares.iter().map(|share| scope.spawn(move || read_all(settings, share))).collect();
            // What a thread did not come to is read in its turn.
            running.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect::<Vec<_>>()
        });
        self.0.extend(found);
    }
}

fn read_all(settings: &Settings, paths: &[&PathBuf]) -> Vec<(PathBuf, (Content, Option<Parsed>))> {
    let (mut found, mut bytes) = (Vec::with_capacity(paths.len()), 0_usize);
    for &path in paths {
        if bytes > BYTES {
            break;
        }
        let content = content::read(&settings.root().join(path), settings.max_file_bytes);
        let parsed = match &content {
            Content::Bytes(read) => {
                bytes = bytes.saturating_add(read.bytes.len());
                Some(documents::parse(settings, path, &read.bytes))
            }
            _ => None,
        };
        found.push((path.clone(), (content, parsed)));
    }
    found
}
