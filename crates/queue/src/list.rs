//! Doubly linked lists of small ids, the links in one vector: removing from the middle costs the same as from an end,
//! and nothing is left behind that has to be cleaned up later.

/// No id.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
}

/// The links of all ids, by id. An id is in at most one list at a time.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Link>);

impl Links {
    #[inline]
    fn grow_to(&mut self, id: u32) {
        if self.0.len() <= id as usize {
            self.0.resize(id as usize + 1, Link { prev: NONE, next: NONE });
        }
    }

    /// Drops the links of ids from `len` on; none of them may be in a list.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
        self.0.shrink_to(2 * len);
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

/// One list: its two ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
}

impl Default for List {
    fn default() -> Self {
        List { head: NONE, tail: NONE }
    }
}

impl List {
    #[inline]
    pub(crate) fn head(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NONE
    }

    #[inline]
    pub(crate) fn push_back(&mut self, links: &mut Links, id: u32) {
        links.grow_to(id);
        links.0[id as usize] = Link { prev: self.tail, next: NONE };
        match self.tail {
            NONE => self.head = id,
            tail => links.0[tail as usize].next = id,
        }
        self.tail = id;
    }

    #[inline]
    pub(crate) fn remove(&mut self, links: &mut Links, id: u32) {
        let Link { prev, next } = links.0[id as usize];
        self.join(links, prev, next, next, prev);
    }

    /// Puts `to` in the place of `from`.
    pub(crate) fn rename(&mut self, links: &mut Links, from: u32, to: u32) {
        links.grow_to(to);
        let link = links.0[from as usize];
        links.0[to as usize] = link;
        self.join(links, link.prev, to, link.next, to);
    }

    /// Lets `before` be followed by `follower`, and `after` be preceded by `leader`.
    #[inline]
    fn join(&mut self, links: &mut Links, before: u32, follower: u32, after: u32, leader: u32) {
        match before {
            NONE => self.head = follower,
            before => links.0[before as usize].next = follower,
        }
        match after {
            NONE => self.tail = leader,
            after => links.0[after as usize].prev = leader,
        }
    }

    pub(crate) fn iter<'a>(&self, links: &'a Links) -> impl Iterator<Item = u32> + use<'a> {
        let next_of = |id| links.0[id as usize].next;
        std::iter::successors(self.head(), move |&id| Some(next_of(id)).filter(|&next| next != NONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(list: &List, links: &Links) -> Vec<u32> {
        list.iter(links).collect()
    }

    #[test]
    fn ids_leave_from_both_ends_and_from_the_middle() {
        let (mut list, mut links) = (List::default(), Links::default());
        for id in [4, 2, 9, 1] {
            list.push_back(&mut links, id);
        }
        list.remove(&mut links, 2);
        assert_eq!(ids(&list, &links), [4, 9, 1]);
        list.remove(&mut links, 4);
        list.remove(&mut links, 1);
        assert_eq!((ids(&list, &links), list.head()), (vec![9], Some(9)));
        list.remove(&mut links, 9);
        assert!(list.is_empty());
        list.push_back(&mut links, 2);
        assert_eq!(ids(&list, &links), [2]);
    }

    #[test]
    fn a_renamed_id_keeps_its_place() {
        let (mut list, mut links) = (List::default(), Links::default());
        for id in [5, 6, 7] {
            list.push_back(&mut links, id);
        }
        for (from, to) in [(5, 0), (6, 1), (7, 2)] {
            list.rename(&mut links, from, to);
        }
        links.truncate(3);
        assert_eq!(ids(&list, &links), [0, 1, 2]);
        list.push_back(&mut links, 3);
        list.remove(&mut links, 1);
        assert_eq!(ids(&list, &links), [0, 2, 3]);
    }
}
