//! Which admission plug-ins handle the writes of a resource.

use std::sync::OnceLock;

/// A set of admission plug-ins, by their place in the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PluginSet(u64);

impl PluginSet {
    /// The most plug-ins that a chain can have.
    pub(crate) const CAPACITY: usize = u64::BITS as usize;

    /// The plug-ins at these places. Places from [`PluginSet::CAPACITY`] on are left out.
    pub(crate) fn of(places: impl IntoIterator<Item = usize>) -> Self {
        let bit = |place| u32::try_from(place).ok().and_then(|place| 1_u64.checked_shl(place));
        Self(places.into_iter().filter_map(bit).fold(0, |set, bit| set | bit))
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The places in the chain, in its order.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..Self::CAPACITY).filter(move |place| self.0 >> place & 1 == 1)
    }
}

/// The plug-ins that handle the writes of one resource, worked out once for each kind of write. The chain fills it in.
///
/// A resource is served by one server, whose chain never changes; so what was worked out stays true.
#[derive(Debug, Default)]
pub(crate) struct AdmissionPlan([OnceLock<PluginSet>; Slot::Rare as usize]);

/// A kind of write: of the object itself, or of a subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Create,
    Update,
    Delete,
    Connect,
    Status,
    Scale,
    Finalize,
    Approval,
    Binding,
    Eviction,
    Token,
    /// Any other, which is worked out each time.
    Rare,
}

impl AdmissionPlan {
    /// The plug-ins for a kind of write; computed if they are not known.
    pub(crate) fn get(&self, slot: Slot, compute: impl FnOnce() -> PluginSet) -> PluginSet {
        match self.0.get(slot as usize) {
            Some(known) => *known.get_or_init(compute),
            None => compute(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in_in_the_order_of_the_chain() {
        let set = PluginSet::of([5, 0, 63, 64, 1000]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 5, 63]);
        assert!(PluginSet::of([]).is_empty() && !set.is_empty());
    }

    #[test]
    fn what_handles_a_write_is_worked_out_once_unless_it_is_rare() {
        let (plan, asked) = (AdmissionPlan::default(), std::cell::Cell::new(0));
        let ask = |slot| {
            plan.get(slot, || {
                asked.set(asked.get() + 1);
                PluginSet::of([asked.get()])
            })
        };
        for (slot, times) in [(Slot::Create, 1), (Slot::Status, 2), (Slot::Token, 3)] {
            assert_eq!(ask(slot), ask(slot));
            assert_eq!(asked.get(), times, "{slot:?}");
        }
        assert_ne!(ask(Slot::Rare), ask(Slot::Rare));
    }
}
