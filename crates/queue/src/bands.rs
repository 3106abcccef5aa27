use std::time::Duration;

use crate::lanes::Lanes;
use crate::list::{Links, List};
use crate::priority::Priority;
use crate::timers::Nanos;

/// What is ready, in the order in which it is to be handed out.
///
/// One band a priority, each in order of age. A band as a whole ranks by its oldest item, at `since - priority *
/// age_step`, smallest first, so choosing one looks at band heads only. With tenants, the chosen band then serves the
/// tenant whose turn it is; without, its oldest item.
#[derive(Debug)]
pub(crate) struct Bands {
    age_step: i128,
    /// Those that have items, highest priority first.
    bands: Vec<Band>,
    /// By slot.
    places: Vec<Place>,
    ages: Links,
    lanes: Option<Lanes>,
    len: usize,
}

#[derive(Debug)]
struct Band {
    priority: Priority,
    /// Slots, oldest first.
    items: List,
    /// Lanes, next turn first. Empty without tenants.
    turns: List,
    len: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    since: Nanos,
    band: Priority,
    /// Whether the slot is in a band at all.
    taken: bool,
}

impl Bands {
    pub(crate) fn new(age_step: Duration, by_tenant: bool) -> Self {
        Bands {
            // The longest Duration times the highest priority fits into an i128 with room to spare.
            age_step: age_step.as_nanos() as i128,
            bands: Vec::new(),
            places: Vec::new(),
            ages: Links::default(),
            lanes: by_tenant.then(Lanes::default),
            len: 0,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.place(slot).is_some()
    }

    pub(crate) fn depths(&self) -> impl Iterator<Item = (Priority, usize)> {
        self.bands.iter().map(|band| (band.priority, band.len))
    }

    /// All slots, in order of priority and then age.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        self.bands.iter().flat_map(|band| band.items.iter(&self.ages))
    }

    /// Appends a slot that is in no band. `since` may not be before that of any slot already there.
    #[inline]
    pub(crate) fn push(&mut self, slot: u32, tenant: u64, priority: Priority, since: Nanos) {
        let at = match self.find(priority) {
            Ok(at) => at,
            Err(at) => {
                self.bands
                    .insert(at, Band { priority, items: List::default(), turns: List::default(), len: 0 });
                at
            }
        };
        let band = &mut self.bands[at];
        band.items.push_back(&mut self.ages, slot);
        band.len += 1;
        self.len += 1;
        if let Some(lanes) = &mut self.lanes {
            lanes.push(&mut band.turns, priority, tenant, slot);
        }
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, Place::default());
        }
        self.places[slot as usize] = Place { since, band: priority, taken: true };
    }

    /// Moves a slot to the end of a higher band, unless its age has brought it ahead of that already.
    pub(crate) fn promote(&mut self, slot: u32, tenant: u64, priority: Priority, since: Nanos) {
        let Some(place) = self.place(slot) else { return };
        if self.rank(since, priority) < self.rank(place.since, place.band) {
            self.remove(slot);
            self.push(slot, tenant, priority, since);
        }
    }

    /// The slot whose turn it is.
    #[inline]
    pub(crate) fn next(&self) -> Option<u32> {
        let band = &self.bands[self.first_band()?];
        match &self.lanes {
            Some(lanes) => band.turns.head().and_then(|lane| lanes.head(lane)),
            None => band.items.head(),
        }
    }

    /// Takes out the slot whose turn it is; its tenant has had its turn.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        let slot = self.next()?;
        let first = self.first_band()?;
        if let Some(lanes) = &mut self.lanes {
            lanes.end_turn(&mut self.bands[first].turns, slot);
        }
        self.remove(slot);
        Some(slot)
    }

    #[inline]
    fn first_band(&self) -> Option<usize> {
        if self.bands.len() < 2 {
            return (!self.bands.is_empty()).then_some(0);
        }
        let rank_of = |band: &Band| {
            let since = band.items.head().and_then(|slot| self.place(slot)).map_or(0, |place| place.since);
            self.rank(since, band.priority)
        };
        // Of equal ranks the first wins, which is the higher priority.
        (0..self.bands.len()).min_by_key(|&at| rank_of(&self.bands[at]))
    }

    #[inline]
    fn remove(&mut self, slot: u32) {
        let Some(place) = self.vacate(slot) else {
            return;
        };
        let Ok(at) = self.find(place.band) else { return };
        let band = &mut self.bands[at];
        band.items.remove(&mut self.ages, slot);
        band.len -= 1;
        self.len -= 1;
        if let Some(lanes) = &mut self.lanes {
            lanes.remove(&mut band.turns, slot);
        }
        if band.items.is_empty() {
            self.bands.remove(at);
        }
    }

    /// Gives the place of `from`, if it has one, to the lower number `to`.
    pub(crate) fn rename(&mut self, from: u32, to: u32) {
        let Some(place) = self.vacate(from) else {
            return;
        };
        self.places[to as usize] = place;
        if let Ok(at) = self.find(place.band) {
            self.bands[at].items.rename(&mut self.ages, from, to);
        }
        if let Some(lanes) = &mut self.lanes {
            lanes.rename(from, to);
        }
    }

    /// Forgets slots from `len` on; none of them may be in a band.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.places.truncate(len);
        self.places.shrink_to(2 * len);
        self.ages.truncate(len);
        if let Some(lanes) = &mut self.lanes {
            let bands = &mut self.bands;
            lanes.truncate(len, |rounds, priority, from, to| {
                if let Ok(at) = bands.binary_search_by(|band| priority.cmp(&band.priority)) {
                    bands[at].turns.rename(rounds, from, to);
                }
            });
        }
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.places.capacity() + self.ages.capacity() + self.lanes.as_ref().map_or(0, Lanes::capacity)
    }

    #[inline]
    fn place(&self, slot: u32) -> Option<Place> {
        self.places.get(slot as usize).copied().filter(|place| place.taken)
    }

    #[inline]
    fn vacate(&mut self, slot: u32) -> Option<Place> {
        let place = self.place(slot)?;
        self.places[slot as usize].taken = false;
        Some(place)
    }

    #[inline]
    fn find(&self, priority: Priority) -> Result<usize, usize> {
        self.bands.binary_search_by(|band| priority.cmp(&band.priority))
    }

    fn rank(&self, since: Nanos, priority: Priority) -> i128 {
        i128::from(since) - i128::from(priority.0) * self.age_step
    }
}
