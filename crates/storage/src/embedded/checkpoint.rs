use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::disk::{Disk, DiskFile};
use super::encoding::{Reader, put_counted};
use super::header::{HEADER, Header, Kind, checksum};
use crate::tree::Tree;
use crate::{Entry, Error, Revision};

/// Entries are written in blocks of about this size.
const BLOCK: usize = 1 << 20;
/// No block is larger than the largest entry that can be committed, with room for its numbers.
const MAX_BLOCK: usize = BLOCK + crate::MAX_COMMIT_BYTES + 64;
const PREFIX: usize = 8;

/// Writes a state to a file of its own, under its name only once all of it is durable. `go_on` is asked now and then, with the number of
/// entries that are written.
///
/// The file is a header, then blocks (`length, checksum, entries`), then a block that holds the number of entries.
/// Gives the size of the file.
pub(crate) fn write(
    disk: &dyn Disk,
    name: &str,
    tree: &Tree,
    go_on: &dyn Fn(usize) -> bool,
) -> io::Result<u64> {
    let temporary = format!("{name}.tmp");
    let written = write_file(disk, &temporary, tree, go_on).and_then(|size| {
        disk.rename(&temporary, name)?;
        disk.sync_directory()?;
        Ok(size)
    });
    if written.is_err() {
        // Best effort: what is left is removed at the next opening.
        let _ = disk.remove(&temporary);
    }
    written
}

fn write_file(disk: &dyn Disk, name: &str, tree: &Tree, go_on: &dyn Fn(usize) -> bool) -> io::Result<u64> {
    let header = Header::new(tree.revision());
    let mut output = Output { file: disk.create(name)?, length: 0, salt: header.salt };
    output.put(&header.encode(Kind::Checkpoint))?;
    let mut block = vec![0; PREFIX];
    for (number, entry) in tree.iter().enumerate() {
        block.extend_from_slice(&entry.created.to_le_bytes());
        block.extend_from_slice(&entry.modified.to_le_bytes());
        put_counted(&mut block, entry.key.as_bytes());
        put_counted(&mut block, &entry.value);
        if block.len() >= BLOCK {
            output.put_block(&mut block)?;
            if !go_on(number + 1) {
                return Err(ErrorKind::Interrupted.into());
            }
        }
    }
    if block.len() > PREFIX {
        output.put_block(&mut block)?;
    }
    block.extend_from_slice(&(tree.len() as u64).to_le_bytes());
    output.put_block(&mut block)?;
    output.file.sync()?;
    Ok(output.length)
}

struct Output {
    file: Box<dyn DiskFile>,
    length: u64,
    salt: u64,
}

impl Output {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(self.length, bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Writes the block and leaves it empty, its prefix still in place. Where it is in the file enters its
    /// checksum, so that blocks cannot trade places.
    fn put_block(&mut self, block: &mut Vec<u8>) -> io::Result<()> {
        let (prefix, content) = block.split_at_mut(PREFIX);
        prefix[..4].copy_from_slice(&(content.len() as u32).to_le_bytes());
        let sum = checksum(self.salt, &[&self.length.to_le_bytes(), &prefix[..4], content]);
        prefix[4..].copy_from_slice(&sum.to_le_bytes());
        self.put(block)?;
        block.truncate(PREFIX);
        Ok(())
    }
}

/// Reads a checkpoint, of this revision if one is given, and its size. Anything wrong with it is damage: it had its name only when it was
/// complete.
pub(crate) fn read(disk: &dyn Disk, name: &str, revision: Option<Revision>) -> Result<(Tree, u64), Error> {
    let mut input = Input::open(disk, name, revision)?;
    let mut entries: Vec<Arc<Entry>> = Vec::new();
    loop {
        let offset = input.offset;
        let block = input.block()?;
        if block.len() == size_of::<u64>() {
            let count = entries.len() as u64;
            return match Reader(&block).u64() == Some(count) {
                true => Ok((Tree::restore(input.revision, entries), input.offset)),
                false => Err(input.corrupt(offset, "entries are missing")),
            };
        }
        if read_block(&block, &mut entries).is_none() {
            return Err(input.corrupt(offset, "a block holds something else than entries in order"));
        }
    }
}

struct Input {
    path: PathBuf,
    file: Box<dyn Read>,
    offset: u64,
    salt: u64,
    revision: Revision,
}

impl Input {
    fn open(disk: &dyn Disk, name: &str, revision: Option<Revision>) -> Result<Self, Error> {
        let path = disk.path(name);
        let file = disk.read(name).map_err(|error| unreadable(&path, &error))?;
        let mut input = Self { path, file, offset: 0, salt: 0, revision: 0 };
        let header = input.up_to(HEADER)?;
        let header = Header::decode(Kind::Checkpoint, input.path.clone(), revision, &header)?;
        (input.salt, input.revision) = (header.salt, header.revision);
        Ok(input)
    }

    fn block(&mut self) -> Result<Vec<u8>, Error> {
        let start = self.offset;
        let prefix = self.up_to(PREFIX)?;
        let mut fields = Reader(&prefix);
        let (Some(length), Some(sum)) = (fields.u32(), fields.u32()) else {
            return Err(self.corrupt(start, "the file is cut off"));
        };
        let length = length as usize;
        if length > MAX_BLOCK {
            return Err(self.corrupt(start, "a block has an impossible length"));
        }
        let block = self.up_to(length)?;
        if block.len() < length {
            return Err(self.corrupt(start, "the file is cut off"));
        }
        if checksum(self.salt, &[&start.to_le_bytes(), &prefix[..4], &block]) != sum {
            return Err(self.corrupt(start, "the checksum of a block is wrong"));
        }
        Ok(block)
    }

    /// So many bytes, or fewer if the file ends before.
    fn up_to(&mut self, length: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::with_capacity(length);
        let read = self.file.by_ref().take(length as u64).read_to_end(&mut bytes);
        read.map_err(|error| unreadable(&self.path, &error))?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    fn corrupt(&self, offset: u64, reason: &str) -> Error {
        Error::Corrupt { file: self.path.clone(), offset, reason: reason.into() }
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::Io { doing: format!("reading {}", path.display()), reason: error.to_string() }
}

fn read_block(block: &[u8], entries: &mut Vec<Arc<Entry>>) -> Option<()> {
    let mut reader = Reader(block);
    while !reader.is_empty() {
        let (created, modified) = (reader.u64()?, reader.u64()?);
        let key = reader.text()?;
        if entries.last().is_some_and(|last| *last.key >= *key) {
            return None;
        }
        entries.push(Arc::new(Entry {
            key: key.into(),
            value: Bytes::copy_from_slice(reader.counted()?),
            created,
            modified,
        }));
    }
    Some(())
}
