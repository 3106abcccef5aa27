//! The bytes of one file, as they are at one moment.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

use super::fingerprint::Signature;

/// What is found at the path of a file.
#[derive(Debug)]
pub(super) enum Content {
    Missing,
    /// A directory, a pipe, a device.
    NoFile,
    Unreadable(String),
    TooLarge(u64),
    /// It changes while it is read.
    Unstable,
    Bytes(Bytes),
}

#[derive(Debug)]
pub(super) struct Bytes {
    pub(super) signature: Signature,
    /// When reading began.
    pub(super) read: SystemTime,
    pub(super) bytes: Vec<u8>,
}

/// Reads a file of at most this many bytes.
pub(super) fn read(path: &Path, limit: u64) -> Content {
    match try_read(path, limit) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_symlink() => Content::Unreadable("the link leads nowhere".into()),
            _ => Content::Missing,
        },
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Content::Missing,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Content::Unreadable("permission denied".into())
        }
        Err(error) => Content::Unreadable(error.to_string()),
    }
}

fn try_read(path: &Path, limit: u64) -> io::Result<Content> {
    let read = SystemTime::now();
    // Before it is opened: to open a pipe would wait for somebody to write to it.
    if !fs::metadata(path)?.is_file() {
        return Ok(Content::NoFile);
    }
    let mut file = File::open(path)?;
    let signature = Signature::of(&file.metadata()?);
    if signature.size() > limit {
        return Ok(Content::TooLarge(signature.size()));
    }
    let mut bytes = Vec::with_capacity(signature.size() as usize + 1);
    file.by_ref().take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Ok(Content::TooLarge(bytes.len() as u64));
    }
    let after = Signature::of(&file.metadata()?);
    // Files of /proc say that they are empty.
    let complete = bytes.len() as u64 == signature.size() || signature.is_empty();
    if after != signature || !complete {
        return Ok(Content::Unstable);
    }
    Ok(Content::Bytes(Bytes { signature, read, bytes }))
}
