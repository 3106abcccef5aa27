use bytes::Bytes;

use super::encoding::{Reader, put_counted};
use super::header::checksum;
use crate::commit::Operation;
use crate::{Commit, Revision};

const MAGIC: [u8; 4] = *b"\xf7wkf";
const PREFIX: usize = 28;
const DELETE: u8 = 0;
const PUT: u8 = 1;

/// What is written to the log at once: the commits of one group.
///
/// `magic, length of the commits, first revision, durable revision, checksum, commits`. The durable revision is what was
/// known to be on the disk when the frame was written. It tells damage from an interrupted write when the log is
/// read: a frame that is broken although a later one vouches for it was damaged.
#[derive(Default)]
pub(crate) struct Frame {
    bytes: Vec<u8>,
}

impl Frame {
    pub(crate) fn clear(&mut self) {
        // One large commit is no reason to keep its size in memory.
        self.bytes.truncate(PREFIX);
        self.bytes.shrink_to(1 << 20);
        self.bytes.resize(PREFIX, 0);
    }

    pub(crate) fn push(&mut self, commit: &Commit) {
        let buffer = &mut self.bytes;
        buffer.extend_from_slice(&(commit.operations.len() as u32).to_le_bytes());
        for operation in &commit.operations {
            match operation {
                Operation::Put { key, value, .. } => {
                    buffer.push(PUT);
                    put_counted(buffer, key.as_bytes());
                    put_counted(buffer, value);
                }
                Operation::Delete { key } => {
                    buffer.push(DELETE);
                    put_counted(buffer, key.as_bytes());
                }
            }
        }
    }

    /// The frame as it is written.
    pub(crate) fn seal(&mut self, salt: u64, first: Revision, durable: Revision) -> &[u8] {
        let (prefix, commits) = self.bytes.split_at_mut(PREFIX);
        prefix[..4].copy_from_slice(&MAGIC);
        prefix[4..8].copy_from_slice(&(commits.len() as u32).to_le_bytes());
        prefix[8..16].copy_from_slice(&first.to_le_bytes());
        prefix[16..24].copy_from_slice(&durable.to_le_bytes());
        let sum = checksum(salt, &[&prefix[..24], commits]);
        prefix[24..].copy_from_slice(&sum.to_le_bytes());
        &self.bytes
    }
}

/// A frame that was read and whose checksum is right.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) first: Revision,
    pub(crate) durable: Revision,
    /// The bytes that it takes in the file.
    pub(crate) length: usize,
    commits: Bytes,
}

impl Sealed {
    /// The frame at an offset of a file, if there is a valid one.
    pub(crate) fn read(file: &Bytes, offset: usize, salt: u64) -> Option<Self> {
        let mut reader = Reader(file.get(offset..)?);
        let prefix = reader.array::<PREFIX>()?;
        let mut fields = Reader(&prefix);
        if fields.array()? != MAGIC {
            return None;
        }
        let length = fields.u32()? as usize;
        let (first, durable, sum) = (fields.u64()?, fields.u64()?, fields.u32()?);
        let commits = reader.bytes(length)?;
        if checksum(salt, &[&prefix[..24], commits]) != sum {
            return None;
        }
        Some(Self { first, durable, length: PREFIX + length, commits: file.slice_ref(commits) })
    }

    /// The first valid frame at or after an offset, with its offset.
    pub(crate) fn find(file: &Bytes, from: usize, salt: u64) -> Option<(usize, Self)> {
        let places = file.get(from..)?.windows(MAGIC.len()).enumerate();
        places
            .filter(|(_, window)| **window == MAGIC)
            .find_map(|(place, _)| Some((from + place, Self::read(file, from + place, salt)?)))
    }

    /// The commits, or `None` if they are not what a frame holds.
    pub(crate) fn commits(&self) -> Option<Vec<Commit>> {
        let mut reader = Reader(&self.commits);
        let mut commits = Vec::new();
        while !reader.is_empty() {
            let mut commit = Commit::new();
            for _ in 0..reader.u32()? {
                let [tag] = reader.array()?;
                let key = reader.text()?;
                commit = match tag {
                    PUT => commit.put(key, self.commits.slice_ref(reader.counted()?)),
                    DELETE => commit.delete(key),
                    _ => return None,
                };
            }
            commits.push(commit);
        }
        Some(commits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> Bytes {
        let mut frame = Frame::default();
        frame.clear();
        frame.push(&Commit::new().put("/a", "1").delete("/b"));
        frame.push(&Commit::new().put("/c", ""));
        Bytes::copy_from_slice(frame.seal(99, 5, 4))
    }

    #[test]
    fn a_frame_is_read_back() {
        let bytes = sealed();
        let frame = Sealed::read(&bytes, 0, 99).unwrap();
        assert_eq!((frame.first, frame.durable, frame.length), (5, 4, bytes.len()));
        let commits = frame.commits().unwrap();
        let keys: Vec<Vec<_>> =
            commits.iter().map(|commit| commit.operations.iter().map(Operation::key).collect()).collect();
        assert_eq!(keys, [vec!["/a", "/b"], vec!["/c"]]);
    }

    #[test]
    fn a_frame_with_any_bit_flipped_or_byte_missing_is_no_frame() {
        let bytes = sealed();
        for position in 0..bytes.len() {
            assert!(Sealed::read(&bytes.slice(..position), 0, 99).is_none());
            for bit in 0..8 {
                let mut damaged = bytes.to_vec();
                damaged[position] ^= 1 << bit;
                assert!(Sealed::read(&damaged.into(), 0, 99).is_none(), "{position}.{bit}");
            }
        }
        assert!(Sealed::read(&bytes, 0, 98).is_none(), "the salt of another file");
    }

    #[test]
    fn a_frame_is_found_behind_rubbish() {
        let bytes: Bytes = [b"\xf7wk\xf7wkf\xf7wkf", &sealed()[..]].concat().into();
        assert_eq!(Sealed::find(&bytes, 0, 99).unwrap().0, 11);
        assert!(Sealed::find(&bytes, 12, 99).is_none());
    }
}
