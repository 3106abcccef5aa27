//! Answers to requests that were answered before.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use ring::digest::{Context, SHA256};

/// What an answer depends on besides the request: a form of a model. Another form is another allocation.
type Form = Arc<dyn Any + Send + Sync>;

/// The largest answer that is kept, as a part of all bytes.
const LARGEST: usize = 8;

/// The answers of a policy: to the same bytes and headers, asked in the same dialect for the same variant of a model, for a while.
///
/// It belongs to one form of one policy. So nobody gets an answer that was given under another policy, or to another tenant, and an edit of the policy
/// or of the model forgets all answers.
pub struct Cache {
    ttl: Duration,
    max_bytes: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_digest: HashMap<[u8; 32], Entry>,
    /// The oldest first, which is also the first to expire.
    order: VecDeque<([u8; 32], Instant)>,
    bytes: usize,
}

struct Entry {
    answer: Bytes,
    model: Weak<dyn Any + Send + Sync>,
    since: Instant,
}

/// A request, and where its answer is to be kept.
pub(super) struct Slot {
    cache: Arc<Cache>,
    digest: [u8; 32],
    model: Form,
    /// What was passed on of a stream so far; `None` if it is too large.
    passed: Option<Vec<u8>>,
}

/// Shows no answer.
impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("ttl", &self.ttl).field("max_bytes", &self.max_bytes).finish()
    }
}

impl Cache {
    pub(crate) fn new(ttl: Duration, max_bytes: usize) -> Self {
        Self { ttl, max_bytes, entries: Mutex::default() }
    }

    fn get(&self, digest: &[u8; 32], model: &Form) -> Option<Bytes> {
        let entries = self.entries.lock();
        let entry = entries.by_digest.get(digest)?;
        let is_same = entry.model.upgrade().is_some_and(|known| Arc::ptr_eq(&known, model));
        (is_same && entry.since.elapsed() < self.ttl).then(|| entry.answer.clone())
    }

    fn put(&self, digest: [u8; 32], model: &Form, answer: Bytes) {
        if answer.len() > self.max_bytes / LARGEST {
            return;
        }
        let since = Instant::now();
        let mut entries = self.entries.lock();
        let Entries { by_digest, order, bytes } = &mut *entries;
        *bytes += answer.len();
        order.push_back((digest, since));
        if let Some(before) = by_digest.insert(digest, Entry { answer, model: Arc::downgrade(model), since })
        {
            *bytes -= before.answer.len();
        }
        while let Some((digest, then)) = order.front().copied() {
            let is_last = by_digest.get(&digest).is_some_and(|entry| entry.since == then);
            if is_last && *bytes <= self.max_bytes && then.elapsed() < self.ttl {
                break;
            }
            order.pop_front();
            if is_last && let Some(entry) = by_digest.remove(&digest) {
                *bytes -= entry.answer.len();
            }
        }
    }
}

impl Slot {
    /// The place of a request among the answers: by all that makes a difference to what is answered.
    pub(super) fn of(cache: &Arc<Cache>, model: Form, asked: &[&[u8]]) -> Self {
        let mut context = Context::new(&SHA256);
        for part in asked {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let digest = context.finish().as_ref().try_into().unwrap_or_default();
        Self { cache: Arc::clone(cache), digest, model, passed: Some(Vec::new()) }
    }

    /// The answer that was given before.
    pub(super) fn answer(&self) -> Option<Bytes> {
        self.cache.get(&self.digest, &self.model)
    }

    /// Takes a piece of a stream.
    pub(super) fn pass(&mut self, piece: &[u8]) {
        let most = self.cache.max_bytes / LARGEST;
        match self.passed.as_mut().filter(|passed| passed.len() + piece.len() <= most) {
            Some(passed) => passed.extend_from_slice(piece),
            None => self.passed = None,
        }
    }

    /// Keeps what was passed on: all of a stream that ended well.
    pub(super) fn keep_passed(self) {
        if let Some(passed) = self.passed.filter(|passed| !passed.is_empty()) {
            self.cache.put(self.digest, &self.model, passed.into());
        }
    }

    /// Keeps an answer.
    pub(super) fn keep(self, answer: Bytes) {
        self.cache.put(self.digest, &self.model, answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Form {
        Arc::new(7_u64)
    }

    #[test]
    fn answers_take_no_more_room_than_they_may_and_the_oldest_go_first() {
        let (cache, model) = (Cache::new(Duration::from_secs(60), 1_000), model());
        for number in 0..100_u8 {
            cache.put([number; 32], &model, vec![number; 100].into());
        }
        let kept: Vec<u8> = (0..100).filter(|number| cache.get(&[*number; 32], &model).is_some()).collect();
        assert_eq!(kept, (90..100).collect::<Vec<_>>());
        cache.put([1; 32], &model, vec![0; 126].into());
        assert!(cache.get(&[1; 32], &model).is_none(), "it is more than an eighth");
        for _ in 0..100 {
            cache.put([99; 32], &model, vec![1; 100].into());
        }
        let entries = cache.entries.lock();
        assert_eq!(entries.bytes, entries.by_digest.len() * 100);
    }

    #[test]
    fn an_answer_expires_and_is_for_one_form_of_a_model() {
        let (cache, one, other) = (Cache::new(Duration::ZERO, 1_000), model(), model());
        cache.put([1; 32], &one, "a".into());
        assert!(cache.get(&[1; 32], &one).is_none());
        let cache = Cache::new(Duration::from_secs(60), 1_000);
        cache.put([1; 32], &one, "a".into());
        assert!(cache.get(&[1; 32], &one).is_some() && cache.get(&[1; 32], &other).is_none());
    }
}
