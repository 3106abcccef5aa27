use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How often files are looked at. client-go reads tokens again once a minute.
const POLL_INTERVAL: Duration = Duration::from_secs(60);

/// What was made of files, and when they were looked at.
///
/// Reading blocks the caller: these are small files of the system or of a projected volume.
pub(crate) struct Followed<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    value: T,
    looked: Instant,
    is_doubted: bool,
}

impl<T: Clone> Followed<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { state: Mutex::new(State { value, looked: Instant::now(), is_doubted: false }) }
    }

    /// What the files hold, by way of `read`, which is given what they held and says `None` if that is still so. It is called at
    /// most once a minute, and when what they held is [doubted](Self::doubt).
    pub(crate) fn get(&self, read: impl FnOnce(&T) -> Option<T>) -> T {
        let mut state = self.state.lock();
        if state.is_doubted || state.looked.elapsed() >= POLL_INTERVAL {
            state.is_doubted = false;
            state.looked = Instant::now();
            if let Some(news) = read(&state.value) {
                state.value = news;
            }
        }
        state.value.clone()
    }

    /// Has the files looked at the next time, whenever that is.
    pub(crate) fn doubt(&self) {
        self.state.lock().is_doubted = true;
    }
}
