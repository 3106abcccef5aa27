use std::path::PathBuf;

use super::encoding::Reader;
use crate::{Error, Revision};

/// The format of all files, written and read.
pub(crate) const FORMAT: u32 = 1;

/// The length of a header.
pub(crate) const HEADER: usize = 32;

/// How a file begins: which kind it is, in which format, and at which revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// A checkpoint: the revision that it holds. A segment of the log: its first revision.
    pub(crate) revision: Revision,
    /// A random number that enters all checksums of the file, so that nothing in a value can pass for a part of the file.
    pub(crate) salt: u64,
}

/// Which kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Log,
    Checkpoint,
}

impl Kind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Log => b"wk log\r\n",
            Self::Checkpoint => b"wk chk\r\n",
        }
    }

    pub(crate) fn name(self, revision: Revision) -> String {
        match self {
            Self::Log => format!("log-{revision:020}"),
            Self::Checkpoint => format!("checkpoint-{revision:020}"),
        }
    }

    /// The revision in a file's name, if it is of this kind.
    pub(crate) fn revision(self, name: &str) -> Option<Revision> {
        let number = match self {
            Self::Log => name.strip_prefix("log-")?,
            Self::Checkpoint => name.strip_prefix("checkpoint-")?,
        };
        number.parse().ok().filter(|revision| self.name(*revision) == name)
    }
}

impl Header {
    pub(crate) fn new(revision: Revision) -> Self {
        Self { revision, salt: random() }
    }

    pub(crate) fn encode(&self, kind: Kind) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(kind.magic());
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.revision.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.salt.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the header of a file, which has to be that of the revision after which the file is called, if it is called after one.
    pub(crate) fn decode(
        kind: Kind,
        file: PathBuf,
        revision: Option<Revision>,
        bytes: &[u8],
    ) -> Result<Self, Error> {
        let corrupt = |reason: &str| Error::Corrupt { file: file.clone(), offset: 0, reason: reason.into() };
        let mut reader = Reader(bytes);
        if reader.array::<8>().as_ref() != Some(kind.magic()) {
            return Err(corrupt("it does not begin as a file of this kind does"));
        }
        let found = reader.u32().ok_or_else(|| corrupt("the header is cut off"))?;
        if found != FORMAT {
            return Err(Error::Format { file: file.clone(), found, supported: FORMAT });
        }
        let (Some(named), Some(salt), Some(checksum)) = (reader.u64(), reader.u64(), reader.u32()) else {
            return Err(corrupt("the header is cut off"));
        };
        if checksum != crc32fast::hash(&bytes[..28]) {
            return Err(corrupt("the checksum of the header is wrong"));
        }
        if revision.is_some_and(|revision| named != revision) {
            return Err(corrupt(&format!("its header says revision {named}")));
        }
        Ok(Self { revision: named, salt })
    }
}

/// A checksum that only this file's salt makes right.
pub(crate) fn checksum(salt: u64, parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_and_says_what_is_wrong_with_it() {
        let header = Header::new(7);
        let bytes = header.encode(Kind::Log);
        let decode = |kind, revision, bytes: &[u8]| Header::decode(kind, "f".into(), Some(revision), bytes);
        assert_eq!(decode(Kind::Log, 7, &bytes).unwrap(), header);
        let mut newer = bytes;
        newer[8] = 2;
        let mut damaged = bytes;
        damaged[21] ^= 1;
        for (result, text) in [
            (decode(Kind::Checkpoint, 7, &bytes), "f is damaged at byte 0: it does not begin"),
            (decode(Kind::Log, 8, &bytes), "says revision 7"),
            (decode(Kind::Log, 7, &bytes[..30]), "cut off"),
            (decode(Kind::Log, 7, &damaged), "checksum"),
            (decode(Kind::Log, 7, &newer), "f has format 2, this version reads format 1"),
        ] {
            let error = result.unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn names_are_read_back_and_others_are_not() {
        assert_eq!(Kind::Log.revision(&Kind::Log.name(12)), Some(12));
        assert_eq!(Kind::Checkpoint.revision(&Kind::Log.name(12)), None);
        assert_eq!(Kind::Log.revision("log-12"), None);
        assert_eq!(Kind::Checkpoint.revision("checkpoint-00000000000000000012.tmp"), None);
    }
}
