/// Decides whether a write may leave: a lease, a switch for maintenance, a budget.
///
/// It is asked right before each write is sent. If it says no, nothing is sent and the write fails with
/// [`Error::NotLeading`](crate::Error::NotLeading). Reads are never held up. It must answer at once.
pub trait Guard: Send + Sync {
    /// Whether a write may leave now.
    fn may_write(&self) -> bool;
}

/// A function can stand in for a guard.
impl<F: Fn() -> bool + Send + Sync> Guard for F {
    fn may_write(&self) -> bool {
        self()
    }
}
