use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Since when each object waits for its next step, finer than the whole seconds that objects carry.
///
/// It only refines: after a restart it is empty, and the age that the object itself tells takes its place.
#[derive(Default)]
pub(crate) struct Since(Mutex<HashMap<String, (Step, Instant)>>);

/// What is waited for: a name, and a number if the same comes again and again.
pub(crate) type Step = (&'static str, i32);

impl Since {
    /// What is left of a wait that is at least `age` old when it is first heard of.
    pub(crate) fn left(&self, uid: &str, step: Step, wait: Duration, age: Duration) -> Duration {
        if wait.is_zero() {
            return wait;
        }
        let now = Instant::now();
        let new = || (step, now.checked_sub(age.min(wait)).unwrap_or(now));
        let mut all = self.0.lock();
        let (_, began) = match all.entry(uid.to_owned()) {
            Entry::Occupied(mut known) => {
                if known.get().0 != step {
                    known.insert(new());
                }
                *known.get()
            }
            Entry::Vacant(unknown) => *unknown.insert(new()),
        };
        wait.saturating_sub(now - began)
    }

    pub(crate) fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_goes_on_until_the_step_is_another() {
        let (since, wait) = (Since::default(), Duration::from_millis(300));
        let none = Duration::ZERO;
        assert_eq!(since.left("a", ("bind", 0), wait, none), wait);
        tokio::time::advance(Duration::from_millis(100)).await;
        assert_eq!(since.left("a", ("bind", 0), wait, none), Duration::from_millis(200));
        assert_eq!(since.left("b", ("bind", 0), wait, none), wait);
        assert_eq!(since.left("a", ("run", 0), wait, none), wait);
        assert_eq!(since.left("c", ("run", 0), wait, Duration::from_secs(1)), none);
        since.forget("a");
        assert_eq!(since.left("a", ("run", 0), wait, none), wait);
    }
}
