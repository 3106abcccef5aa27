//! The recent changes of a resource, encoded once for all watchers.

use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;
use watchkeeper_storage::Event;

/// How many recent changes are kept encoded. Watchers that keep up are within a few changes of each other.
const RECENT: usize = 512;

/// How many bytes of recent changes are kept encoded.
const RECENT_BYTES: usize = 4 << 20;

/// How long a change is kept encoded.
const RECENT_TIME: Duration = Duration::from_secs(5);

/// The recent changes of a resource, each encoded at most once however many watchers there are.
#[derive(Default)]
pub(crate) struct Frames {
    recent: Mutex<Recent>,
    watchers: AtomicUsize,
}

#[derive(Default)]
struct Recent {
    /// By revision.
    frames: VecDeque<Arc<Frame>>,
    bytes: usize,
}

/// One change, in each encoding made by the first watcher that needs it.
pub(crate) struct Frame {
    event: Arc<Event>,
    /// When somebody was told of it for the first time.
    since: Instant,
    encodings: [OnceLock<Bytes>; Self::ENCODINGS],
}

impl Frames {
    /// The frame of an event.
    pub(crate) fn of(&self, event: &Arc<Event>) -> Arc<Frame> {
        let mut recent = self.recent.lock();
        let mut at = recent.frames.partition_point(|frame| frame.event.revision < event.revision);
        // Changes that were made together have one revision.
        while let Some(frame) = recent.frames.get(at).filter(|frame| frame.event.revision == event.revision) {
            if Arc::ptr_eq(&frame.event, event) {
                return Arc::clone(frame);
            }
            at += 1;
        }
        let since = Instant::now();
        let frame = Arc::new(Frame { event: Arc::clone(event), since, encodings: Default::default() });
        recent.bytes += frame.size();
        recent.frames.insert(at, Arc::clone(&frame));
        recent.shrink(since);
        frame
    }

    /// Forgets what is not recent any more. Where changes come, this happens by itself.
    pub(crate) fn shrink(&self) {
        self.recent.lock().shrink(Instant::now());
    }

    /// How many are watching.
    pub(crate) fn watchers(&self) -> usize {
        self.watchers.load(Relaxed)
    }

    /// One more is watching.
    pub(crate) fn enter(&self) {
        self.watchers.fetch_add(1, Relaxed);
    }

    /// One is not watching any more. With the last one, everything is forgotten.
    pub(crate) fn leave(&self) {
        if self.watchers.fetch_sub(1, Relaxed) == 1 {
            *self.recent.lock() = Recent::default();
        }
    }
}

impl Recent {
    fn shrink(&mut self, now: Instant) {
        while let Some(oldest) = self.frames.front() {
            let is_old = now.duration_since(oldest.since) > RECENT_TIME;
            if !is_old && self.frames.len() <= RECENT && self.bytes <= RECENT_BYTES {
                break;
            }
            self.bytes -= oldest.size();
            self.frames.pop_front();
        }
    }
}

impl Frame {
    /// How many encodings of a change are kept.
    pub(crate) const ENCODINGS: usize = 12;

    fn size(&self) -> usize {
        let entry = self.event.entry().or(self.event.previous());
        entry.map_or(0, |entry| entry.value.len()) + 128
    }

    /// The bytes of an encoding by its number; `None` for one that is not kept.
    pub(crate) fn bytes<E>(
        &self,
        encoding: Option<usize>,
        encode: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        let kept = encoding.and_then(|encoding| self.encodings.get(encoding));
        if let Some(bytes) = kept.and_then(OnceLock::get) {
            return Ok(bytes.clone());
        }
        let bytes = encode()?;
        Ok(kept.map_or(bytes.clone(), |kept| kept.get_or_init(|| bytes).clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watchkeeper_storage::{Change, Entry, Revision};

    fn event(revision: Revision, bytes: usize) -> Arc<Event> {
        let (key, value) = (format!("/{revision}").into(), vec![0; bytes].into());
        let entry = Entry { key, value, created: revision, modified: revision };
        Arc::new(Event { revision, change: Change::Created(Arc::new(entry)) })
    }

    #[test]
    fn whoever_is_told_of_an_event_gets_the_same_frame_in_whatever_order_they_come() {
        let frames = Frames::default();
        // The second and the third were made together.
        let events = [event(5, 1), event(7, 1), event(7, 1), event(9, 1)];
        let first: Vec<_> = [2, 0, 3, 1].map(|number: usize| (number, frames.of(&events[number]))).into();
        for (number, frame) in first {
            assert!(Arc::ptr_eq(&frame.event, &events[number]));
            assert!(Arc::ptr_eq(&frames.of(&events[number]), &frame), "{number}");
        }
        assert_eq!(frames.recent.lock().frames.len(), 4);
    }

    #[test]
    fn the_oldest_are_forgotten_first_by_their_number_and_by_their_size() {
        let frames = Frames::default();
        let held =
            || frames.recent.lock().frames.iter().map(|frame| frame.event.revision).collect::<Vec<_>>();
        let count = RECENT as Revision;
        (1..=count + 2).for_each(|revision| drop(frames.of(&event(revision, 1))));
        assert_eq!((held().first(), held().len()), (Some(&3), RECENT));
        // Whoever is far behind does not take the place of what others are about to need.
        frames.of(&event(1, 1));
        assert_eq!((held().first(), held().len()), (Some(&3), RECENT));
        frames.of(&event(count + 3, RECENT_BYTES - 200));
        assert_eq!(held(), [count + 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_recent_is_forgotten_by_and_by() {
        let frames = Frames::default();
        let held =
            || frames.recent.lock().frames.iter().map(|frame| frame.event.revision).collect::<Vec<_>>();
        frames.of(&event(1, 1));
        tokio::time::advance(RECENT_TIME).await;
        frames.of(&event(2, 1));
        assert_eq!(held(), [1, 2]);
        tokio::time::advance(Duration::from_millis(1)).await;
        frames.of(&event(3, 1));
        assert_eq!(held(), [2, 3]);
        tokio::time::advance(RECENT_TIME).await;
        frames.shrink();
        assert_eq!((held(), frames.recent.lock().bytes), (vec![3], 129));
        tokio::time::advance(RECENT_TIME).await;
        frames.shrink();
        assert_eq!((held(), frames.recent.lock().bytes), (vec![], 0));
    }
}
