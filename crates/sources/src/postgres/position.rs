//! Positions in the log of a server.

use std::fmt;

use watchkeeper_core::Version;

/// A place in the log, of this server and no other, for a table of this shape and no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) origin: Origin,
    pub(super) lsn: Lsn,
}

/// What positions can be compared within.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// Of the data directory, for its whole life.
    pub(super) system: String,
    /// Another one after every failover and every restored backup.
    pub(super) timeline: String,
    /// Of the table's columns: rows that were told with others have to be told again.
    pub(super) signature: String,
}

/// A byte of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lsn(pub(super) u64);

impl Lsn {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (high, low) = text.split_once('/')?;
        let half = |digits: &str| u32::from_str_radix(digits, 16).ok().map(u64::from);
        Some(Self(half(high)? << 32 | half(low)?))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

impl Position {
    pub(super) fn parse(version: &Version) -> Option<Self> {
        let text = version.to_string();
        let mut parts = text.splitn(4, '-');
        let (system, timeline, lsn) = (parts.next()?, parts.next()?, Lsn::parse(parts.next()?)?);
        let signature = parts.next()?.to_owned();
        Some(Self { origin: Origin { system: system.into(), timeline: timeline.into(), signature }, lsn })
    }

    pub(super) fn version(&self) -> Version {
        let Origin { system, timeline, signature } = &self.origin;
        Version::from(&*format!("{system}-{timeline}-{}-{signature}", self.lsn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_were_written() {
        let origin = Origin { system: "7423".into(), timeline: "1".into(), signature: "h0a-b".into() };
        let position = Position { origin, lsn: Lsn(0x1_016B_3748) };
        assert_eq!(position.version().to_string(), "7423-1-1/16B3748-h0a-b");
        assert_eq!(Position::parse(&position.version()), Some(position));
        for text in ["", "7", "a-b-c-d", "1-1-0/0", "1-1-0-0"] {
            assert_eq!(Position::parse(&Version::from(text)), None, "{text}");
        }
        assert!(Lsn::parse("1/0").unwrap() > Lsn::parse("0/FFFFFFFF").unwrap());
    }
}
