use std::ops::Bound;
use std::sync::Arc;

use crate::{Entry, Revision};

/// The keys to read: a stretch of the key order, at a revision, up to a limit.
///
/// ```
/// use watchkeeper_storage::Range;
/// let first_page = Range::prefix("/registry/pods/default/").limit(500);
/// let next_page = Range::prefix("/registry/pods/default/").after("/registry/pods/default/web").at(17).limit(500);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    start: Bound<Box<[u8]>>,
    /// The first key that is too far, if there is one.
    end: Option<Box<[u8]>>,
    pub(crate) at: Option<Revision>,
    pub(crate) limit: Option<usize>,
}

/// Where a stretch of keys begins and ends.
type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

impl Range {
    /// All keys with a prefix.
    pub fn prefix(prefix: &str) -> Self {
        Self {
            start: Bound::Included(prefix.as_bytes().into()),
            end: successor(prefix.as_bytes()),
            at: None,
            limit: None,
        }
    }

    /// All keys from `start` on, up to and without `end`.
    pub fn between(start: &str, end: &str) -> Self {
        Self {
            start: Bound::Included(start.as_bytes().into()),
            end: Some(end.as_bytes().into()),
            at: None,
            limit: None,
        }
    }

    /// Of those, only the keys after this one: how the next page begins.
    #[must_use]
    pub fn after(mut self, key: &str) -> Self {
        let begins_later = match &self.start {
            Bound::Included(start) | Bound::Excluded(start) => **start > *key.as_bytes(),
            Bound::Unbounded => false,
        };
        if !begins_later {
            self.start = Bound::Excluded(key.as_bytes().into());
        }
        self
    }

    /// Sets the revision to read at. Default: the current one.
    #[must_use]
    pub fn at(mut self, revision: Revision) -> Self {
        self.at = Some(revision);
        self
    }

    /// The revision it is read at, if not the current one.
    pub fn revision(&self) -> Option<Revision> {
        self.at
    }

    /// At most so many entries.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The stretch as bounds, or `None` if no key can be in it.
    pub(crate) fn bounds(&self) -> Option<Bounds<'_>> {
        let start = self.start.as_ref().map(|key| &**key);
        let Some(end) = &self.end else {
            return Some((start, Bound::Unbounded));
        };
        match start {
            Bound::Included(key) | Bound::Excluded(key) if *key >= **end => None,
            _ => Some((start, Bound::Excluded(&**end))),
        }
    }
}

/// The first byte string after all those that begin with `prefix`.
fn successor(prefix: &[u8]) -> Option<Box<[u8]>> {
    let keep = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix[..=keep].to_vec();
    end[keep] += 1;
    Some(end.into())
}

/// The entries of a [`Range`].
#[derive(Clone, Debug)]
pub struct Page {
    /// The entries, in the order of their keys' bytes.
    pub entries: Vec<Arc<Entry>>,
    /// The revision that this answer stands for: further pages of the same list ask for it.
    pub revision: Revision,
    /// Whether the limit cut something off.
    pub more: bool,
    /// The number of entries that were cut off, where that is cheap to know.
    pub remaining: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_no_key_can_begin_with_it() {
        assert_eq!(successor(b"/a/").as_deref(), Some(&b"/a0"[..]));
        assert_eq!(successor(b"a\xff\xff").as_deref(), Some(&b"b"[..]));
        assert_eq!(successor(b"\xff"), None);
        assert_eq!(successor(b""), None);
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_empty() {
        assert_eq!(Range::between("/b", "/a").bounds(), None);
        assert_eq!(Range::prefix("/a/").after("/b").bounds(), None);
        assert!(Range::prefix("/b/").after("/a").bounds() == Range::prefix("/b/").bounds());
    }
}
