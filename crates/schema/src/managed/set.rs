use super::element::{FieldPath, PathElement};
use std::cmp::Ordering;

/// A set of fields of an object: who owns what.
///
/// Membership of a field says nothing about the fields inside of it: owning a list element is one thing, owning what is
/// in it another. The whole object is never a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element, none without meaning: each is a member or has members below.
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) element: PathElement,
    pub(super) member: bool,
    pub(super) below: FieldSet,
}

impl FieldSet {
    /// The set without fields.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Whether there is no field in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a field, but none of those it is inside of.
    pub fn insert(&mut self, path: &FieldPath) {
        let Some((last, parents)) = path.0.split_last() else {
            return;
        };
        let mut set = self;
        for element in parents {
            set = &mut set.entry(element).below;
        }
        set.entry(last).member = true;
    }

    fn entry(&mut self, element: &PathElement) -> &mut Entry {
        let at = match self.find(element) {
            Ok(at) => at,
            Err(at) => {
                let entry = Entry { element: element.clone(), member: false, below: Self::new() };
                self.entries.insert(at, entry);
                at
            }
        };
        &mut self.entries[at]
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.element.cmp(element))
    }

    /// Whether a field is in it.
    pub fn contains(&self, path: &FieldPath) -> bool {
        let Some((last, parents)) = path.0.split_last() else {
            return false;
        };
        let parent = parents.iter().try_fold(self, |set, element| set.get(element).map(|entry| &entry.below));
        parent.and_then(|set| set.get(last)).is_some_and(|entry| entry.member)
    }

    pub(super) fn get(&self, element: &PathElement) -> Option<&Entry> {
        self.find(element).ok().map(|at| &self.entries[at])
    }

    /// Whether all fields of this set are in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.entries.iter().all(|entry| match other.get(&entry.element) {
            Some(found) => (found.member || !entry.member) && entry.below.is_subset(&found.below),
            None => false,
        })
    }

    /// The fields in either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        let mut out = Vec::with_capacity(self.entries.len().max(other.entries.len()));
        let (mut left, mut right) =
            (self.entries.into_iter().peekable(), other.entries.into_iter().peekable());
        while let (Some(first), Some(second)) = (left.peek(), right.peek()) {
            match first.element.cmp(&second.element) {
                Ordering::Less => out.extend(left.next()),
                Ordering::Greater => out.extend(right.next()),
                Ordering::Equal => {
                    if let (Some(first), Some(second)) = (left.next(), right.next()) {
                        out.push(first.with(second));
                    }
                }
            }
        }
        out.extend(left);
        out.extend(right);
        Self { entries: out }
    }

    /// The fields in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (small, large) = match self.entries.len() <= other.entries.len() {
            true => (self, other),
            false => (other, self),
        };
        let common = small.entries.iter().filter_map(|entry| {
            let found = large.get(&entry.element)?;
            let member = entry.member && found.member;
            let below = entry.below.intersection(&found.below);
            Entry { element: entry.element.clone(), member, below }.meaningful()
        });
        Self { entries: common.collect() }
    }

    /// The fields that are not in the other set. A field stays if only a field around it or inside of it is in the other.
    #[must_use]
    pub fn difference(self, other: &Self) -> Self {
        self.subtract(other, false)
    }

    /// The fields that are neither in the other set nor inside of a field that is.
    #[must_use]
    pub fn without(self, other: &Self) -> Self {
        self.subtract(other, true)
    }

    fn subtract(mut self, other: &Self, with_inside: bool) -> Self {
        if other.is_empty() {
            return self;
        }
        self.entries.retain_mut(|entry| {
            let Some(found) = other.get(&entry.element) else {
                return true;
            };
            if found.member && with_inside {
                return false;
            }
            entry.member &= !found.member;
            entry.below = std::mem::take(&mut entry.below).subtract(&found.below, with_inside);
            entry.member || !entry.below.is_empty()
        });
        self
    }

    /// How many steps the longest path has.
    pub(super) fn depth(&self) -> usize {
        self.entries.iter().map(|entry| 1 + entry.below.depth()).max().unwrap_or(0)
    }

    /// All fields, each before those inside of it, as conflicts are listed: the fields of a place, then what is below.
    pub fn paths(&self) -> Vec<FieldPath> {
        let mut found = Vec::new();
        self.collect(&mut Vec::new(), &mut found);
        found
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, found: &mut Vec<FieldPath>) {
        for entry in self.entries.iter().filter(|entry| entry.member) {
            let mut path = prefix.clone();
            path.push(entry.element.clone());
            found.push(FieldPath(path));
        }
        for entry in &self.entries {
            prefix.push(entry.element.clone());
            entry.below.collect(prefix, found);
            prefix.pop();
        }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn entries_mut(&mut self) -> &mut [Entry] {
        &mut self.entries
    }

    /// Of entries in any order; those without meaning are dropped, equal ones become one.
    pub(super) fn from_entries(entries: Vec<Entry>) -> Self {
        let mut entries: Vec<Entry> = entries.into_iter().filter_map(Entry::meaningful).collect();
        if !entries.is_sorted_by(|left, right| left.element < right.element) {
            entries.sort_by(|left, right| left.element.cmp(&right.element));
            let mut merged: Vec<Entry> = Vec::with_capacity(entries.len());
            for entry in entries {
                match merged.pop() {
                    Some(last) if last.element == entry.element => merged.push(last.with(entry)),
                    last => merged.extend(last.into_iter().chain([entry])),
                }
            }
            entries = merged;
        }
        Self { entries }
    }
}

impl Entry {
    fn meaningful(self) -> Option<Self> {
        (self.member || !self.below.is_empty()).then_some(self)
    }

    fn with(self, other: Self) -> Self {
        Self {
            element: self.element,
            member: self.member || other.member,
            below: self.below.union(other.below),
        }
    }
}

impl FromIterator<FieldPath> for FieldSet {
    fn from_iter<I: IntoIterator<Item = FieldPath>>(paths: I) -> Self {
        let mut set = Self::new();
        paths.into_iter().for_each(|path| set.insert(&path));
        set
    }
}
