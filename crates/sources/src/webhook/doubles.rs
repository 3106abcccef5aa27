//! Recognises repeated deliveries. Without I/O and without a clock.

use std::collections::{HashSet, VecDeque};

/// So many ids are remembered. Who sends more in a window than this gets some of them twice, which does no harm.
const REMEMBERED: usize = 100_000;

/// The ids of deliveries within a window of time.
#[derive(Debug, Default)]
pub(super) struct Doubles {
    ids: HashSet<String>,
    /// In the order in which they came, with the time.
    order: VecDeque<(u64, String)>,
}

impl Doubles {
    /// Notes an id at a time in seconds; says whether it is new within the window.
    pub(super) fn note(&mut self, id: &str, now: u64, window: u64) -> bool {
        while self.order.len() >= REMEMBERED
            || self.order.front().is_some_and(|(at, _)| now.saturating_sub(*at) > window)
        {
            if let Some((_, id)) = self.order.pop_front() {
                self.ids.remove(&id);
            }
        }
        let new = self.ids.insert(id.to_owned());
        if new {
            self.order.push_back((now, id.to_owned()));
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_within_the_window() {
        let mut doubles = Doubles::default();
        assert!(doubles.note("a", 100, 600));
        assert!(doubles.note("b", 101, 600));
        assert!(!doubles.note("a", 700, 600));
        assert!(doubles.note("a", 701, 600), "it is forgotten");
        assert!(!doubles.note("b", 701, 600));
    }

    #[test]
    fn a_flood_of_ids_takes_bounded_memory() {
        let mut doubles = Doubles::default();
        for number in 0..2 * REMEMBERED {
            assert!(doubles.note(&number.to_string(), 1, 600));
        }
        assert_eq!((doubles.ids.len(), doubles.order.len()), (REMEMBERED, REMEMBERED));
    }
}
