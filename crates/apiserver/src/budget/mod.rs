//! What large documents may cost at a time.
//!
//! Nearly all bodies and objects are small, and take the way they would take without this. A large one is weighed before it is
//! decoded: one that would take more memory than [`MAX_TREE`] is refused, others wait until there is room for them ([`claim`]), and
//! are worked on beside the threads that answer everybody else.

mod claim;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::thread::available_parallelism;

use bytes::Bytes;
use http_body::Body as _;
use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use watchkeeper_kinds::protobuf;
use watchkeeper_schema::{MAX_TREE, Weight};
use watchkeeper_storage::Entry;

use crate::aside::Aside;
use crate::front::{Body, BodyError};
use crate::object::record::Record;
use crate::request::MAX_REQUEST_BYTES;
use crate::status_error::StatusError;
pub(crate) use claim::Claim;
use claim::{Full, Room};

/// From how many bytes on a document is large. The worst of this size is decoded in a few milliseconds, into 12 MiB.
pub(crate) const LARGE: usize = 64 << 10;

/// The most memory that a byte can take once it is decoded, if it is not JSON: `{a},` in a list of YAML.
const DENSEST: usize = 180;

/// How many large bodies of one user are read at a time. The others wait, their bytes unread, so that one user's uploads do
/// not keep everybody's processors busy with decryption.
const READ_AT_A_TIME: usize = 4;

/// The memory that trees of large documents take at one moment, and where they are worked on.
///
/// Bodies and stored objects have room of their own: who changes a large object by a large body takes from the one and then from
/// the other, never the other way round.
pub(crate) struct Budget {
    bodies: Arc<Room>,
    stored: Arc<Room>,
    /// Where large documents are worked on: by half of the processors, so that the others remain for others.
    aside: Aside,
    /// Those who read large bodies, by user.
    readers: Mutex<HashMap<String, Weak<Semaphore>>>,
    /// Weighing a body takes a processor for milliseconds: so many are weighed at once, and the others wait.
    weighing: Semaphore,
}

impl Default for Budget {
    fn default() -> Self {
        let slots = available_parallelism().map_or(1, |processors| (processors.get() / 2).max(1));
        Self {
            bodies: Arc::default(),
            stored: Arc::default(),
            aside: Aside::default(),
            readers: Mutex::default(),
            weighing: Semaphore::new(slots),
        }
    }
}

impl From<Full> for StatusError {
    fn from(_: Full) -> Self {
        let message = "Too many large objects wait for webhooks or other servers, please try again later.";
        Self::too_many_requests(message, 1)
    }
}

impl Budget {
    /// Reads a body of this user; one that may be large waits for its turn.
    pub(crate) async fn read(&self, user: &str, body: Body) -> Result<Bytes, BodyError> {
        let small = body.size_hint().upper().is_some_and(|bytes| bytes < LARGE as u64);
        let turn = if small { None } else { self.readers_of(user).acquire_owned().await.ok() };
        let bytes = body.read(MAX_REQUEST_BYTES).await;
        drop(turn);
        bytes
    }

    fn readers_of(&self, user: &str) -> Arc<Semaphore> {
        let mut readers = self.readers.lock();
        if let Some(known) = readers.get(user).and_then(Weak::upgrade) {
            return known;
        }
        readers.retain(|_, readers| readers.strong_count() > 0);
        let new = Arc::new(Semaphore::new(READ_AT_A_TIME));
        readers.insert(user.to_owned(), Arc::downgrade(&new));
        new
    }

    /// Waits for room for what will be decoded from a body of this user; `None` if it is small.
    pub(crate) async fn body(&self, user: &str, body: &Bytes) -> Result<Option<Claim>, StatusError> {
        if body.len() < LARGE {
            return Ok(None);
        }
        let turn = self.weighing.acquire().await;
        let weighed = body.clone();
        let weight = self.aside.run(async move { weigh(&weighed) }).await;
        let weight = weight.map_err(|error| StatusError::too_large(&error.to_string()))?;
        drop(turn);
        Ok(Some(self.bodies.claim(Some(user), weight).await?))
    }

    /// Does what a request asks for; if there is a claim to it, beside the threads that answer others.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        claim: Option<Claim>,
        work: Pin<Box<dyn Future<Output = T> + Send>>,
    ) -> T {
        let Some(claim) = claim else { return work.await };
        let work = async move {
            let mut work = work;
            claim.hold(work.as_mut(), |work, cx| work.poll(cx)).await
        };
        Box::pin(self.aside.run(work)).await
    }

    /// Does something that nobody waits for, beside the threads that answer.
    pub(crate) async fn beside<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        self.aside.run(work).await
    }

    /// Waits for room for a stored object that is about to be decoded for this user, or for the server itself; `None` if it is small.
    pub(crate) async fn stored(
        &self,
        user: Option<&str>,
        entry: &Entry,
    ) -> Result<Option<Claim>, StatusError> {
        if entry.value.len() < LARGE {
            return Ok(None);
        }
        let json = Record::read(entry).map(|record| record.json()).unwrap_or_default();
        let mut weight = Weight::default();
        // One that is too large was stored before there was a limit, and takes all there is.
        let weight = weight.json(&json).map_or(MAX_TREE, |_| weight.bytes());
        Ok(Some(self.stored.claim(user, weight).await?))
    }
}

/// How much memory a body takes once it is decoded, at most.
fn weigh(body: &[u8]) -> Result<usize, watchkeeper_schema::Error> {
    let mut weight = Weight::default();
    if !protobuf::is_envelope(body) && weight.json(body)? {
        return Ok(weight.bytes());
    }
    // What is not JSON to its end may be read as YAML or protobuf, whose decoders count while they decode.
    Ok(body.len().saturating_mul(DENSEST).min(MAX_TREE))
}

/// Does something that borrows, and so cannot go to another thread; if there is a claim to it, others go on elsewhere meanwhile.
pub(crate) async fn run_here<F: Future>(claim: Option<Claim>, work: Pin<&mut F>) -> F::Output {
    let Some(claim) = claim else { return work.await };
    claim.hold(work, |work, cx| beside(|| work.poll(cx))).await
}

/// Computes something beside the threads that answer others, if there are such threads.
pub(crate) fn beside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn json(item: &str, bytes: usize) -> Vec<u8> {
        format!("[{}0]", format!("{item},").repeat(bytes / (item.len() + 1))).into_bytes()
    }

    #[tokio::test(start_paused = true)]
    async fn small_bodies_claim_nothing_and_large_ones_no_more_than_there_is() {
        let budget = Budget::default();
        assert!(budget.body("a", &json(r#"{"":0}"#, LARGE - 100).into()).await.unwrap().is_none());
        let dense = Bytes::from(json(r#"{"":0}"#, 600_000));
        let first = budget.body("a", &dense).await.unwrap();
        assert!(first.is_some());
        let second = tokio::time::timeout(Duration::from_secs(3600), budget.body("a", &dense)).await;
        assert!(second.is_err(), "two at a time");
        drop(first);
        assert!(budget.body("a", &dense).await.unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_uploads_much_at_a_time_waits_for_that_and_nobody_else_does() {
        let budget = Arc::new(Budget::default());
        let read = |user: &'static str, body: Body| {
            let budget = Arc::clone(&budget);
            tokio::spawn(async move { budget.read(user, body).await })
        };
        let endless = || Body::stream(futures_util::stream::pending());
        let stalled: Vec<_> = (0..READ_AT_A_TIME).map(|_| read("greedy", endless())).collect();
        tokio::task::yield_now().await;
        let mut fifth = read("greedy", Body::stream(futures_util::stream::empty()));
        assert!(tokio::time::timeout(Duration::from_secs(60), &mut fifth).await.is_err());
        assert!(read("greedy", Body::whole("small")).await.unwrap().is_ok());
        assert!(read("modest", Body::stream(futures_util::stream::empty())).await.unwrap().is_ok());
        stalled.into_iter().for_each(|task| task.abort());
        assert!(fifth.await.unwrap().is_ok());
        assert!(budget.readers.lock().len() <= 2);
    }

    #[tokio::test]
    async fn what_would_not_fit_is_refused_with_the_limit_in_its_answer() {
        let budget = Budget::default();
        let refused = budget.body("a", &json(r#"{"":0}"#, 3_000_000).into()).await.map(|_| ()).unwrap_err();
        assert_eq!((refused.code, refused.reason), (413, "RequestEntityTooLarge"));
        assert!(refused.message.contains("limit is 67108864 bytes of memory"), "{}", refused.message);
    }

    #[test]
    fn what_is_not_json_weighs_the_most_that_it_can() {
        assert_eq!(weigh(&json("{a}", 1_000_000)), Ok(MAX_TREE));
        assert_eq!(weigh(&[b"k8s\0".as_slice(), &[b'x'; 100_000]].concat()), Ok(100_004 * DENSEST));
        assert!(weigh(&json(r#""a""#, 100_000)).unwrap() < 2_000_000);
    }
}
