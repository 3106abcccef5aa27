//! How much is measured.

/// How much work one round of each row is.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// How often each row is measured.
    pub(crate) rounds: usize,
    /// Requests one after the other, of which the median counts.
    pub(crate) requests: usize,
    /// Objects that one client creates; several create four times as many.
    pub(crate) creates: usize,
    /// Changes that every watcher is told of.
    pub(crate) changes: usize,
    /// Objects in a list.
    pub(crate) objects: usize,
    /// Objects in a long list.
    pub(crate) many: usize,
}

impl Size {
    pub(crate) const FULL: Self =
        Self { rounds: 7, requests: 300, creates: 500, changes: 1_000, objects: 10_000, many: 100_000 };
    /// Enough to see that everything works.
    pub(crate) const QUICK: Self =
        Self { rounds: 2, requests: 50, creates: 100, changes: 300, objects: 1_000, many: 5_000 };

    /// The same for a peer that is slower: what is a rate or a median needs fewer of everything, what depends on the
    /// number of objects stays. The long list would take it minutes, and is left out.
    pub(crate) fn for_peer(self) -> Self {
        let Self { rounds, requests, creates, changes, objects, .. } = self;
        Self {
            rounds: rounds.min(2),
            requests: requests.min(100),
            creates: creates.min(200),
            changes: changes.min(300),
            objects,
            many: 0,
        }
    }
}
