/// Decides whether a write may be sent: a lease, a switch for maintenance, a budget.
///
/// It is asked right before each write is sent. If it says no, nothing is sent and the write fails with
/// [`Error::NotLeading`](crate::Error::NotLeading). Reads are never held up. It must answer at once.
///
/// ```
/// # use std::sync::Arc;
/// # use std::sync::atomic::{AtomicBool, Ordering};
/// # fn example(client: watchkeeper_client::Client) {
/// let maintenance = Arc::new(AtomicBool::new(false));
/// let switch = Arc::clone(&maintenance);
/// let client = client.guarded_by(Arc::new(move || !switch.load(Ordering::Relaxed)));
/// # }
/// ```
pub trait Guard: Send + Sync {
    /// Whether a write may be sent now.
    fn may_write(&self) -> bool;
}

/// A function can stand in for a guard.
impl<F: Fn() -> bool + Send + Sync> Guard for F {
    fn may_write(&self) -> bool {
        self()
    }
}
