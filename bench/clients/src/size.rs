//! How much is measured.

/// How much work one round of each row is.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// How often ours and the peer's take turns.
    pub(crate) rounds: usize,
    /// How often, where one turn takes long.
    pub(crate) long_rounds: usize,
    /// Custom resources of 1 kB in one namespace; as many of 5 kB, and as many Pods.
    pub(crate) some: usize,
    /// Custom resources of 1 kB in all namespaces.
    pub(crate) many: usize,
    /// Changes of which every handler is told.
    pub(crate) changes: usize,
    /// The same, where kube-apiserver makes them.
    pub(crate) slow_changes: usize,
    /// Seconds for which changes are made at a steady rate.
    pub(crate) seconds: f64,
    /// Keys of a full queue.
    pub(crate) keys: usize,
    /// Items that go through a queue with fewer keys.
    pub(crate) items: usize,
}

impl Size {
    pub(crate) const FULL: Self = Self {
        rounds: 5,
        long_rounds: 5,
        some: 10_000,
        many: 100_000,
        changes: 20_000,
        slow_changes: 4_000,
        seconds: 4.0,
        keys: 1_000_000,
        items: 300_000,
    };
    /// Enough to see that everything works.
    pub(crate) const QUICK: Self = Self {
        rounds: 2,
        long_rounds: 1,
        some: 1_000,
        many: 8_000,
        changes: 3_000,
        slow_changes: 1_000,
        seconds: 1.0,
        keys: 100_000,
        items: 100_000,
    };

    /// N, 4N and 16N of what there are many of.
    pub(crate) fn steps(self) -> [usize; 3] {
        [self.many / 16, self.many / 4, self.many]
    }
}
