//! How much is measured.

/// How much work one round of each row is.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// How often ours and the peer alternate.
    pub(crate) rounds: usize,
    /// Requests that one client makes one after the other; several make four times as many.
    pub(crate) requests: usize,
    /// Changes that every watcher is told of, if there are up to a hundred; if there are more, a third of them.
    pub(crate) changes: usize,
    /// Objects in a list.
    pub(crate) objects: usize,
    /// Objects in a long list.
    pub(crate) many: usize,
    /// The numbers of objects at which growth is looked at.
    pub(crate) steps: [usize; 3],
}

impl Size {
    pub(crate) const FULL: Self = Self {
        rounds: 5,
        requests: 800,
        changes: 900,
        objects: 10_000,
        many: 100_000,
        steps: [2_500, 10_000, 40_000],
    };
    /// Enough to see that everything works.
    pub(crate) const QUICK: Self = Self {
        rounds: 2,
        requests: 100,
        changes: 150,
        objects: 1_000,
        many: 3_000,
        steps: [100, 400, 1_600],
    };

    /// The same for a peer that is slower: what is a rate needs fewer of everything, what depends on the number of objects
    /// stays.
    pub(crate) fn for_peer(self) -> Self {
        Self { requests: self.requests.min(200), changes: self.changes.min(300), ..self }
    }

    /// How many changes so many watchers are told of.
    pub(crate) fn changes_to(self, watchers: usize) -> usize {
        if watchers > 100 { self.changes / 3 } else { self.changes }
    }

    /// How many requests so many clients make together.
    pub(crate) fn requests_of(self, clients: usize) -> usize {
        self.requests * if clients == 1 { 1 } else { 4 }
    }
}
