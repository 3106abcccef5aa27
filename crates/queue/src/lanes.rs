use hashbrown::HashMap;
use slab::Slab;

use crate::list::{Links, List, NONE};
use crate::priority::Priority;

/// Whose turn it is within a band: one lane a tenant and band, first in first out, the lanes taking turns.
///
/// A lane that runs empty is gone, and comes back at the end of the round: a tenant gains nothing by adding its items
/// one at a time.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: Slab<Lane>,
    by_tenant: HashMap<(Priority, u64), u32>,
    /// Of slots within their lane, by slot.
    items: Links,
    /// Of lanes within the round of their band, by lane.
    rounds: Links,
    /// The lane of each slot.
    lane_of: Vec<u32>,
}

#[derive(Debug)]
struct Lane {
    band: Priority,
    tenant: u64,
    items: List,
}

impl Lanes {
    pub(crate) fn head(&self, lane: u32) -> Option<u32> {
        self.lanes[lane as usize].items.head()
    }

    pub(crate) fn push(&mut self, round: &mut List, band: Priority, tenant: u64, slot: u32) {
        let lane = *self.by_tenant.entry((band, tenant)).or_insert_with(|| {
            let lane = self.lanes.insert(Lane { band, tenant, items: List::default() }) as u32;
            round.push_back(&mut self.rounds, lane);
            lane
        });
        self.lanes[lane as usize].items.push_back(&mut self.items, slot);
        if self.lane_of.len() <= slot as usize {
            self.lane_of.resize(slot as usize + 1, NONE);
        }
        self.lane_of[slot as usize] = lane;
    }

    pub(crate) fn end_turn(&mut self, round: &mut List, slot: u32) {
        let lane = self.lane_of[slot as usize];
        round.remove(&mut self.rounds, lane);
        round.push_back(&mut self.rounds, lane);
    }

    pub(crate) fn remove(&mut self, round: &mut List, slot: u32) {
        let id = self.lane_of[slot as usize];
        let lane = &mut self.lanes[id as usize];
        lane.items.remove(&mut self.items, slot);
        if lane.items.is_empty() {
            round.remove(&mut self.rounds, id);
            self.by_tenant.remove(&(lane.band, lane.tenant));
            self.lanes.remove(id as usize);
        }
    }

    /// Gives the place of `from` to `to`.
    pub(crate) fn rename(&mut self, from: u32, to: u32) {
        let lane = self.lane_of[from as usize];
        self.lane_of[to as usize] = lane;
        self.lanes[lane as usize].items.rename(&mut self.items, from, to);
    }

    /// Forgets slots from `len` on, and closes the gaps between the lanes; `rename_in_round` does so in the
    /// round of a band.
    pub(crate) fn truncate(
        &mut self,
        len: usize,
        mut rename_in_round: impl FnMut(&mut Links, Priority, u32, u32),
    ) {
        self.items.truncate(len);
        self.lane_of.truncate(len);
        self.lane_of.shrink_to(2 * len);
        self.lanes.compact(|lane, from, to| {
            let (from, to) = (from as u32, to as u32);
            rename_in_round(&mut self.rounds, lane.band, from, to);
            self.by_tenant.insert((lane.band, lane.tenant), to);
            for slot in lane.items.iter(&self.items) {
                self.lane_of[slot as usize] = to;
            }
            true
        });
        self.rounds.truncate(self.lanes.len());
        self.by_tenant.shrink_to(2 * self.lanes.len());
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.lanes.capacity() + self.by_tenant.capacity() + self.items.capacity() + self.lane_of.capacity()
    }
}
