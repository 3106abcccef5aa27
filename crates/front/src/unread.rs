use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::time::timeout;

/// How long is waited for the rest of a request that is answered already, and how much of it is read.
const DRAIN: (Duration, u64) = (Duration::from_millis(500), 256 << 10);

/// What requests of an HTTP/1 connection left unread.
///
/// The next request begins where the body of the last one ends. Who does not read it to the end has to close the connection, and has
/// to say so with the answer: a client that is not told sends its next request into a connection that is about to close, and cannot know
/// whether it was carried out.
#[derive(Default)]
pub(crate) struct Unread {
    request: Mutex<Answering>,
    is_left: AtomicBool,
}

/// How far the request is that the connection is busy with.
#[derive(Default)]
struct Answering {
    /// What nobody reads any more of its body.
    rest: Option<Rest>,
    /// Whether nobody asks any more what was left.
    is_answered: bool,
}

struct Rest {
    incoming: Incoming,
    /// Whether the client sends it unasked.
    is_coming: bool,
}

impl Unread {
    /// A request begins.
    pub(crate) fn begin(&self) {
        let before = std::mem::take(&mut *self.request.lock());
        drop(before);
    }

    /// Nobody reads this body any more, which the client sends without waiting to be asked for it, or not.
    ///
    /// That may be after its request was answered: somebody else had it, and gave it up. As long as it is held, the connection waits for the rest of it.
    pub(crate) fn leave(&self, incoming: Incoming, is_coming: bool) {
        let mut request = self.request.lock();
        match request.is_answered {
            true => self.is_left.store(true, Ordering::Relaxed),
            false => request.rest = Some(Rest { incoming, is_coming }),
        }
    }

    /// Reads what was left if that is soon done, and says whether nothing is left now.
    pub(crate) async fn drained(&self) -> bool {
        let rest = {
            let mut request = self.request.lock();
            request.is_answered = true;
            request.rest.take()
        };
        match rest {
            None => true,
            // Rare, and not small.
            Some(rest) => Box::pin(self.drain(rest)).await,
        }
    }

    async fn drain(&self, Rest { mut incoming, is_coming }: Rest) -> bool {
        let is_near = is_coming && incoming.size_hint().lower() <= DRAIN.1;
        if is_near && matches!(timeout(DRAIN.0, read(&mut incoming)).await, Ok(true)) {
            return true;
        }
        self.is_left.store(true, Ordering::Relaxed);
        false
    }

    /// Whether the client may still be sending what nobody reads.
    pub(crate) fn is_left(&self) -> bool {
        self.request.lock().rest.is_some() || self.is_left.load(Ordering::Relaxed)
    }
}

/// Reads to the end, if it is near.
async fn read(incoming: &mut Incoming) -> bool {
    let mut left = DRAIN.1;
    while let Some(frame) = incoming.frame().await {
        let Ok(frame) = frame else { return false };
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        match left.checked_sub(length) {
            Some(less) => left = less,
            None => return false,
        }
    }
    true
}
