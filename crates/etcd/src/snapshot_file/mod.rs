//! What is in the database file of a member, or in a snapshot of it, without an etcd that serves it.

mod bolt;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::keys::KeyValue;
use crate::message::Decode as _;
use bolt::{Bolt, Damaged};

/// The bucket that all revisions of all keys are in.
const KEYS: &[u8] = b"key";

/// How the name of a revision is made up: the revision, an underscore, and a number within the revision, in 17 bytes; one that deletes a key
/// has a letter behind it.
const REVISION: usize = 17;
const DELETED: u8 = b't';

/// A file that `etcdctl snapshot save` has written, or the database of a member that is not running (`member/snap/db`), as it was at its last
/// revision.
///
/// Everything is read once, page by page; nothing is written, and no file makes this panic, recurse without end, or take memory out of
/// proportion to its size. That the file is complete is not checked by the checksum at its end, but by what is in it.
#[derive(Clone, Debug)]
pub struct SnapshotFile {
    /// The newest revision.
    pub revision: i64,
    /// The keys that there were then, in their order.
    pub pairs: Vec<KeyValue>,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotFileError {
    /// The operating system says no.
    #[error("{}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What it says.
        error: std::io::Error,
    },
    /// It is no database of etcd, or not all of one.
    #[error("{} is no snapshot of etcd, or damaged: {reason}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What was found.
        reason: String,
    },
}

impl SnapshotFile {
    /// Reads a file. Blocks while it does.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is something else.
    pub fn read(file: &Path) -> Result<Self, SnapshotFileError> {
        let read = File::open(file).map_err(Damaged::from).and_then(|opened| gather(&Bolt::open(opened)?));
        read.map_err(|damaged| match damaged {
            Damaged::Io(error) => SnapshotFileError::Io { file: file.into(), error },
            Damaged::Content(reason) => SnapshotFileError::Damaged { file: file.into(), reason },
        })
    }
}

/// Replays all revisions, from the oldest that was not compacted on.
fn gather(bolt: &Bolt) -> Result<SnapshotFile, Damaged> {
    let Some(keys) = bolt.bucket(KEYS)? else {
        return Err(Damaged::Content("it has no bucket of keys".into()));
    };
    let mut revision = 0;
    let mut pairs: BTreeMap<Bytes, KeyValue> = BTreeMap::new();
    bolt.walk(&keys, &mut |name, value| {
        let (at, rest) = name.split_first_chunk::<8>().ok_or_else(strange)?;
        if name.len() < REVISION || rest[0] != b'_' {
            return Err(strange());
        }
        revision = i64::from_be_bytes(*at);
        // A copy of its own: the page is not kept.
        let pair = KeyValue::decode(&Bytes::copy_from_slice(value)).map_err(|_| strange())?;
        match name.get(REVISION) {
            Some(&DELETED) => pairs.remove(&pair.key),
            _ => pairs.insert(pair.key.clone(), pair),
        };
        Ok(())
    })?;
    Ok(SnapshotFile { revision, pairs: pairs.into_values().collect() })
}

fn strange() -> Damaged {
    Damaged::Content("the bucket of keys holds something else than revisions".into())
}
