//! Fingerprints of contents.

use std::hash::{DefaultHasher, Hasher};

use watchkeeper_core::Version;

/// What bytes are. Equal prints mean equal bytes, for all practical purposes: nobody gains by writing two objects that collide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Print(u128);

impl Print {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let half = |seed: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(seed);
            hasher.write(bytes);
            u128::from(hasher.finish())
        };
        Self(half(1) << 64 | half(2))
    }

    /// The print of a set, of which this is what was seen so far. The order does not matter.
    pub(crate) fn with(self, name: &[u8], content: Self) -> Self {
        let mut bytes = name.to_vec();
        bytes.extend(content.0.to_le_bytes());
        Self(self.0.wrapping_add(Self::of(&bytes).0))
    }

    pub(crate) fn version(self) -> Version {
        // The letter keeps it from looking like a number, of which one could be larger than another.
        Version::from(&*format!("h{:032x}", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_tell_contents_apart_and_sets_do_not_depend_on_the_order() {
        let (a, b) = (Print::of(b"a"), Print::of(b"b"));
        assert_ne!(a, b);
        assert_eq!(Print::of(b"a"), a);
        assert_eq!(
            Print::default().with(b"x", a).with(b"y", b),
            Print::default().with(b"y", b).with(b"x", a)
        );
        assert_ne!(Print::default().with(b"x", a), Print::default().with(b"y", a));
        assert!(a.version().number().is_none());
    }
}
