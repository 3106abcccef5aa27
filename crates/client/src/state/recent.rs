//! Which states this client wrote lately.

use std::collections::{HashMap, VecDeque};

use watchkeeper_core::{Key, Version};

/// So many states are remembered for each kind.
const REMEMBERED: usize = 4096;

/// The last states that were written, oldest first.
#[derive(Default)]
pub(crate) struct Recent {
    order: VecDeque<(Key, Version)>,
    by_key: HashMap<Key, Vec<Version>>,
    /// How many writes of an object have no answer yet.
    underway: HashMap<Key, usize>,
}

impl Recent {
    pub(crate) fn put(&mut self, key: &Key, version: &Version) {
        if version.is_empty() || self.contains(key, version) {
            return;
        }
        if self.order.len() == REMEMBERED
            && let Some((key, version)) = self.order.pop_front()
            && let Some(versions) = self.by_key.get_mut(&key)
        {
            versions.retain(|other| *other != version);
            if versions.is_empty() {
                self.by_key.remove(&key);
            }
        }
        self.order.push_back((key.clone(), version.clone()));
        self.by_key.entry(key.clone()).or_default().push(version.clone());
    }

    /// Notes that a write of an object is sent.
    pub(crate) fn begin(&mut self, key: &Key) {
        *self.underway.entry(key.clone()).or_default() += 1;
    }

    /// Notes that the write was answered, or is given up.
    pub(crate) fn end(&mut self, key: &Key) {
        if let Some(count) = self.underway.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.underway.remove(key);
            }
        }
    }

    /// Whether a change to this state may be the echo of a write: the watch may tell of it before the write is answered.
    pub(crate) fn may_be_echo(&self, key: &Key, version: &Version) -> bool {
        self.contains(key, version) || self.underway.contains_key(key)
    }

    pub(crate) fn contains(&self, key: &Key, version: &Version) -> bool {
        self.by_key.get(key).is_some_and(|versions| versions.contains(version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_while_a_write_is_under_way_may_be_its_echo() {
        let (mut recent, key, version) = (Recent::default(), Key::new(None, "a"), Version::from(7));
        recent.begin(&key);
        recent.begin(&key);
        recent.end(&key);
        assert!(recent.may_be_echo(&key, &version));
        assert!(!recent.may_be_echo(&Key::new(None, "b"), &version));
        recent.end(&key);
        assert!(!recent.may_be_echo(&key, &version));
        recent.put(&key, &version);
        assert!(recent.may_be_echo(&key, &version));
    }

    #[test]
    fn the_memory_has_an_end_and_the_newest_stay() {
        let mut recent = Recent::default();
        let key = |number: usize| Key::new(None, &format!("k{}", number % 10));
        for number in 0..REMEMBERED * 3 {
            recent.put(&key(number), &Version::from(number as u64));
        }
        assert_eq!(recent.order.len(), REMEMBERED);
        assert_eq!(recent.by_key.values().map(Vec::len).sum::<usize>(), REMEMBERED);
        let newest = REMEMBERED * 3 - 1;
        assert!(recent.contains(&key(newest), &Version::from(newest as u64)));
        assert!(!recent.contains(&key(0), &Version::from(0)));
    }
}
