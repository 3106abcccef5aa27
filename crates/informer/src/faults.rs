use std::collections::HashSet;

use watchkeeper_core::Key;

/// How many are remembered. Whoever has more has other problems; of those beyond, nobody is told that they were mended.
const MOST: usize = 10_000;

/// The keys under which something was rejected, until it is mended.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    known: HashSet<Key>,
    /// Those of before the snapshot that has begun and has not mentioned them yet.
    before: HashSet<Key>,
}

impl Faults {
    /// A snapshot begins: what it neither rejects nor delivers is mended when it is complete.
    pub(crate) fn begin(&mut self) {
        self.before.extend(self.known.drain());
    }

    /// Something was rejected.
    pub(crate) fn note(&mut self, key: Option<&Key>) {
        if let Some(key) = key.filter(|_| self.known.len() < MOST) {
            self.before.remove(key);
            self.known.insert(key.clone());
        }
    }

    /// Something is told of a key that is not a rejection. Says whether it was rejected before.
    pub(crate) fn mend(&mut self, key: &Key) -> bool {
        // Nearly always there are none.
        (!self.known.is_empty() || !self.before.is_empty())
            && (self.known.remove(key) | self.before.remove(key))
    }

    /// The snapshot is complete: gives those that it did not mention.
    pub(crate) fn complete(&mut self) -> HashSet<Key> {
        std::mem::take(&mut self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_mended_once() {
        let key = |name: &str| Key::new(None, name);
        let mut faults = Faults::default();
        faults.note(Some(&key("a")));
        faults.note(Some(&key("b")));
        faults.note(None);
        assert!(faults.mend(&key("a")) && !faults.mend(&key("a")));
        faults.note(Some(&key("c")));
        faults.begin();
        faults.note(Some(&key("b")));
        assert_eq!(faults.complete(), [key("c")].into());
        faults.begin();
        assert!(faults.mend(&key("b")));
        assert!(faults.complete().is_empty());
    }
}
