use std::sync::Arc;

use super::rule::{PathPattern, Rule};

/// The rules of one place, those that come first first.
pub(super) type Slot = Arc<[Arc<Rule>]>;

/// The rules of one host.
///
/// A clone shares everything with the original; a change copies the few nodes on the way to what it changes.
#[derive(Clone, Debug, Default)]
pub(super) struct HostTable {
    exact: imbl::HashMap<Arc<str>, Slot>,
    prefix: imbl::HashMap<Arc<str>, Slot>,
    regex: Option<Slot>,
    /// How many prefixes have so many segments. Says how deep a path has to be looked at.
    depths: Vec<u32>,
}

impl HostTable {
    pub(super) fn insert(&mut self, rule: &Arc<Rule>) {
        match &rule.path {
            PathPattern::Exact(path) => put(&mut self.exact, path, rule),
            PathPattern::Prefix(path) => {
                let depth = depth(path);
                if self.depths.len() <= depth {
                    self.depths.resize(depth + 1, 0);
                }
                self.depths[depth] += 1;
                put(&mut self.prefix, path, rule);
            }
            PathPattern::Regex(_) => self.regex = Some(with(self.regex.as_ref(), rule)),
        }
    }

    pub(super) fn remove(&mut self, rule: &Arc<Rule>) {
        match &rule.path {
            PathPattern::Exact(path) => take(&mut self.exact, path, rule),
            PathPattern::Prefix(path) => {
                if let Some(count) = self.depths.get_mut(depth(path)) {
                    *count = count.saturating_sub(1);
                }
                while self.depths.last() == Some(&0) {
                    self.depths.pop();
                }
                take(&mut self.prefix, path, rule);
            }
            PathPattern::Regex(_) => {
                self.regex = self.regex.as_ref().and_then(|slot| without(slot, rule));
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefix.is_empty() && self.regex.is_none()
    }

    /// The rules of the same kind of path and the same path as this one.
    pub(super) fn slot(&self, rule: &Rule) -> &[Arc<Rule>] {
        let slot = match &rule.path {
            PathPattern::Exact(path) => self.exact.get(path),
            PathPattern::Prefix(path) => self.prefix.get(path),
            PathPattern::Regex(_) => self.regex.as_ref(),
        };
        slot.map_or(&[], |slot| slot)
    }

    /// Goes through the rules whose path may be that of a request, the most specific first, until one is taken.
    pub(super) fn find<'a>(
        &'a self,
        path: &str,
        take: &mut impl FnMut(&'a Arc<Rule>) -> bool,
    ) -> Option<&'a Arc<Rule>> {
        if let Some(found) = self.exact.get(path).and_then(|slot| slot.iter().find(|rule| take(rule))) {
            return Some(found);
        }
        if let Some(found) = self.regex.as_ref().and_then(|slot| slot.iter().find(|rule| take(rule))) {
            return Some(found);
        }
        let mut rest = first_segments(path, self.depths.len());
        // From the longest prefix that there may be to the empty one.
        while let Some(prefix) = rest {
            if let Some(found) = self.prefix.get(prefix).and_then(|slot| slot.iter().find(|rule| take(rule)))
            {
                return Some(found);
            }
            rest = prefix.rfind('/').map(|end| &prefix[..end]);
        }
        None
    }
}

fn depth(prefix: &str) -> usize {
    prefix.bytes().filter(|byte| *byte == b'/').count()
}

/// The first segments of a path, as many as prefixes can have; `None` if there are no prefixes. Without slashes at the end.
fn first_segments(path: &str, depths: usize) -> Option<&str> {
    let most = depths.checked_sub(1)?;
    let mut slashes = path.bytes().enumerate().filter(|(_, byte)| *byte == b'/').map(|(at, _)| at);
    // `/a/b` has two segments, and two slashes: the third one ends what can be a prefix.
    let end = slashes.nth(most).unwrap_or(path.len());
    Some(path[..end].trim_end_matches('/'))
}

fn put(slots: &mut imbl::HashMap<Arc<str>, Slot>, path: &Arc<str>, rule: &Arc<Rule>) {
    let slot = with(slots.get(path), rule);
    slots.insert(Arc::clone(path), slot);
}

fn take(slots: &mut imbl::HashMap<Arc<str>, Slot>, path: &Arc<str>, rule: &Arc<Rule>) {
    let Some(slot) = slots.get(path) else { return };
    match without(slot, rule) {
        Some(slot) => slots.insert(Arc::clone(path), slot),
        None => slots.remove(path),
    };
}

fn with(slot: Option<&Slot>, rule: &Arc<Rule>) -> Slot {
    let others = slot.map_or(&[][..], |slot| slot);
    let at = others.partition_point(|other| other.rank() < rule.rank());
    others[..at].iter().chain([rule]).chain(&others[at..]).cloned().collect()
}

fn without(slot: &Slot, rule: &Arc<Rule>) -> Option<Slot> {
    let left: Vec<_> = slot.iter().filter(|other| !Arc::ptr_eq(other, rule)).cloned().collect();
    if left.is_empty() { None } else { Some(left.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_segments_are_looked_at_than_prefixes_have() {
        assert_eq!(first_segments("/a/b/c", 0), None);
        assert_eq!(first_segments("/a/b/c", 1), Some(""));
        assert_eq!(first_segments("/a/b/c", 2), Some("/a"));
        assert_eq!(first_segments("/a/b/c", 3), Some("/a/b"));
        assert_eq!(first_segments("/a/b/c", 9), Some("/a/b/c"));
        assert_eq!(first_segments("/a/", 9), Some("/a"));
        assert_eq!(first_segments("/", 9), Some(""));
        assert_eq!((depth(""), depth("/a"), depth("/a/b")), (0, 1, 2));
    }
}
