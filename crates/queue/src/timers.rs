use crate::list::NONE;
use crate::priority::Priority;

/// Nanoseconds since the queue was made: half the size of an `Instant`, and arithmetic that cannot fail.
pub(crate) type Nanos = u64;

/// When to add an item, and with which priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    pub(crate) at: Nanos,
    pub(crate) priority: Priority,
}

impl Timer {
    /// Two requests for one key: the earlier time, the higher priority.
    pub(crate) fn merge(self, other: Timer) -> Timer {
        Timer { at: self.at.min(other.at), priority: self.priority.max(other.priority) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    timer: Timer,
    /// Timers for the same moment fire in the order in which they were set.
    seq: u64,
    slot: u32,
}

impl Entry {
    fn order(&self) -> (Nanos, u64) {
        (self.timer.at, self.seq)
    }
}

/// A binary heap of timers, at most one a slot, which knows where each slot's timer is: one that is replaced or
/// cancelled leaves nothing behind.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: Vec<Entry>,
    /// Where in the heap the timer of a slot is, by slot.
    places: Vec<u32>,
    seq: u64,
}

impl Timers {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    #[inline]
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.heap.first().map(|entry| entry.timer.at)
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        self.heap.iter().map(|entry| entry.slot)
    }

    #[inline]
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.place(slot).is_some()
    }

    /// Adds a timer; if the slot has one, the two are merged.
    pub(crate) fn merge(&mut self, slot: u32, timer: Timer) {
        let timer = self.cancel(slot).map_or(timer, |old| old.merge(timer));
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, NONE);
        }
        self.seq += 1;
        self.heap.push(Entry { timer, seq: self.seq, slot });
        self.sift_up(self.heap.len() - 1);
    }

    #[inline]
    pub(crate) fn cancel(&mut self, slot: u32) -> Option<Timer> {
        let place = self.place(slot)?;
        let entry = self.heap.swap_remove(place);
        self.places[slot as usize] = NONE;
        if place < self.heap.len() {
            let place = self.sift_up(place);
            self.sift_down(place);
        }
        Some(entry.timer)
    }

    /// Takes out the first timer if it is due.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<(u32, Timer)> {
        let first = *self.heap.first().filter(|entry| entry.timer.at <= now)?;
        self.cancel(first.slot);
        Some((first.slot, first.timer))
    }

    /// Gives the timer of `from`, if it has one, to `to`.
    pub(crate) fn rename(&mut self, from: u32, to: u32) {
        if let Some(place) = self.place(from) {
            self.heap[place].slot = to;
            self.places[from as usize] = NONE;
            self.places[to as usize] = place as u32;
        }
    }

    /// Forgets slots from `len` on; none of them may have a timer.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.places.truncate(len);
        self.places.shrink_to(2 * len);
        self.heap.shrink_to(2 * self.heap.len());
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.heap.capacity() + self.places.capacity()
    }

    #[inline]
    fn place(&self, slot: u32) -> Option<usize> {
        self.places.get(slot as usize).filter(|&&place| place != NONE).map(|&place| place as usize)
    }

    fn sift_up(&mut self, mut place: usize) -> usize {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent].order() <= self.heap[place].order() {
                break;
            }
            self.swap(parent, place);
            place = parent;
        }
        self.places[self.heap[place].slot as usize] = place as u32;
        place
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let children = (2 * place + 1)..(2 * place + 3).min(self.heap.len());
            let Some(child) = children.min_by_key(|&child| self.heap[child].order()) else {
                return;
            };
            if self.heap[place].order() <= self.heap[child].order() {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for place in [a, b] {
            self.places[self.heap[place].slot as usize] = place as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(at: Nanos) -> Timer {
        Timer { at, priority: Priority::NORMAL }
    }

    #[test]
    fn timers_fire_in_order_whatever_was_cancelled_or_replaced() {
        let mut rng = fastrand::Rng::with_seed(11);
        for _ in 0..200 {
            let mut timers = Timers::default();
            let mut expected: Vec<Option<Timer>> = vec![None; 32];
            for _ in 0..100 {
                let slot = rng.u32(0..32);
                let new = timer(rng.u64(0..50));
                match &mut expected[slot as usize] {
                    old if rng.bool() => assert_eq!(timers.cancel(slot), old.take()),
                    old => {
                        timers.merge(slot, new);
                        *old = Some(old.map_or(new, |old| old.merge(new)));
                    }
                }
            }
            let mut left: Vec<_> = expected.iter().flatten().map(|t| t.at).collect();
            left.sort_unstable();
            let fired: Vec<_> = std::iter::from_fn(|| timers.pop_due(60)).map(|(_, t)| t.at).collect();
            assert_eq!(fired, left);
        }
    }

    #[test]
    fn timers_of_one_moment_fire_in_the_order_in_which_they_were_set() {
        let mut timers = Timers::default();
        for slot in 0..20 {
            timers.merge(slot, timer(5));
        }
        assert_eq!(timers.pop_due(4), None);
        let fired: Vec<_> = std::iter::from_fn(|| timers.pop_due(5)).map(|(slot, _)| slot).collect();
        assert_eq!(fired, (0..20).collect::<Vec<_>>());
    }
}
