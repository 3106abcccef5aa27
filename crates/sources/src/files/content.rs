//! The content of one file, read at one moment.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

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
    /// How long nobody had written to it when it was read; `None` if that cannot be said.
    pub(super) age: Option<Duration>,
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
    let mut file = open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(Content::NoFile);
    }
    let signature = Signature::of(&metadata);
    if signature.size() > limit {
        return Ok(Content::TooLarge(signature.size()));
    }
    let bytes = read_bytes(&mut file, signature.size(), limit)?;
    if bytes.len() as u64 > limit {
        return Ok(Content::TooLarge(bytes.len() as u64));
    }
    let age = signature.age(SystemTime::now());
    let after = Signature::of(&file.metadata()?);
    // Files of /proc say that they are empty.
    let complete = bytes.len() as u64 == signature.size() || signature.is_empty();
    if after != signature || !complete {
        return Ok(Content::Unstable);
    }
    Ok(Content::Bytes(Bytes { signature, read, age, bytes }))
}

/// Opens a file. To open a pipe does not wait for somebody to write to it.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().read(true).custom_flags(NONBLOCK).open(path)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const NONBLOCK: i32 = if cfg!(any(target_arch = "mips", target_arch = "mips64")) { 0o200 } else { 0o4000 };
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
const NONBLOCK: i32 = 0x4;

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    match fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::ErrorKind::NotADirectory.into()),
    }
}

/// The bytes of a file that is said to have so many, in one read if that is so. A file that grows meanwhile does not look as before when all is read.
/// Those of /proc say that they are empty, and are read to their end; at most one byte more than the limit.
fn read_bytes(file: &mut File, size: u64, limit: u64) -> io::Result<Vec<u8>> {
    if size == 0 {
        let mut bytes = Vec::new();
        file.by_ref().take(limit + 1).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    let mut bytes = vec![0; size as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
