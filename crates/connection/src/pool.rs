//! Connections to one server that are free, and requests over them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::Error;
use crate::stream::Stream;

/// How long a connection may be free before it is closed. Servers and what is between close theirs after a few minutes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// How many connections may be free. Those of a burst beyond it are closed as soon as they are free.
const MAX_IDLE: usize = 100;

/// How long a connection whose last answer was read may take until it is ready for the next request.
const READY_TIMEOUT: Duration = Duration::from_millis(100);

type Sender = SendRequest<Full<Bytes>>;

/// The free connections to one server.
#[derive(Default)]
pub(crate) struct Pool {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last to be given back is the first to be used, so that those that are too many grow old.
    free: Vec<Free>,
    /// The epoch of all that are free.
    epoch: u64,
    is_swept: bool,
}

struct Free {
    sender: Sender,
    since: Instant,
}

/// A connection that is in use. It closes unless it is given back.
pub(crate) struct Lease {
    pool: Arc<Pool>,
    sender: Sender,
    epoch: u64,
}

/// An answer whose body is to come, and the connection that it comes over.
pub(crate) type Answer = Response<(Incoming, Lease)>;

/// What became of a request over a pooled connection.
pub(crate) enum Tried {
    Answered(Answer),
    /// No connection is free: nothing was sent, and here is the request again.
    NoneFree(Request<Full<Bytes>>),
}

impl Pool {
    /// Sends a request over a connection that is free, if there is one. A connection that turns out to be closed before anything
    /// was sent is passed over.
    ///
    /// Connections that were opened in another epoch are closed: they show other certificates.
    pub(crate) async fn send(
        self: &Arc<Self>,
        epoch: u64,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Tried, Error> {
        while let Some(lease) = self.take(epoch).await {
            match lease.send(request).await {
                Ok(answer) => return Ok(Tried::Answered(answer)),
                Err(Unsent { request: Some(unsent), .. }) => request = unsent,
                Err(Unsent { error, .. }) => return Err(Error::broken(error)),
            }
        }
        Ok(Tried::NoneFree(request))
    }

    /// Sends a request over a connection that was just opened.
    pub(crate) async fn send_over(
        self: &Arc<Self>,
        stream: Stream,
        epoch: u64,
        request: Request<Full<Bytes>>,
    ) -> Result<Answer, Error> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(Error::broken)?;
        // Ends when the sender is dropped and its last answer is read or dropped, or when the server closes it.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::trace!(%error, "a connection to the API server ended");
            }
        });
        let lease = Lease { pool: Arc::clone(self), sender, epoch };
        lease.send(request).await.map_err(|unsent| Error::broken(unsent.error))
    }

    async fn take(self: &Arc<Self>, epoch: u64) -> Option<Lease> {
        loop {
            let mut sender = {
                let mut state = self.state.lock();
                if std::mem::replace(&mut state.epoch, epoch) != epoch {
                    state.free.clear();
                }
                let free = state.free.pop()?;
                if free.since.elapsed() >= IDLE_TIMEOUT {
                    // All others are older.
                    state.free.clear();
                    return None;
                }
                free.sender
            };
            if sender.is_ready() || matches!(timeout(READY_TIMEOUT, sender.ready()).await, Ok(Ok(()))) {
                return Some(Lease { pool: Arc::clone(self), sender, epoch });
            }
        }
    }

    fn give_back(self: &Arc<Self>, sender: Sender, epoch: u64) {
        let mut state = self.state.lock();
        if epoch != state.epoch || state.free.len() >= MAX_IDLE || sender.is_closed() {
            return;
        }
        state.free.push(Free { sender, since: Instant::now() });
        if !state.is_swept
            && let Ok(runtime) = Handle::try_current()
        {
            state.is_swept = true;
            runtime.spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Closes what has been free for too long, and says when to look again.
    fn expire(&self) -> Option<Instant> {
        let mut state = self.state.lock();
        state.free.retain(|free| free.since.elapsed() < IDLE_TIMEOUT && !free.sender.is_closed());
        let oldest = state.free.first().map(|free| free.since + IDLE_TIMEOUT);
        state.is_swept = oldest.is_some();
        oldest
    }
}

/// Closes connections that have been free for too long, until there are none.
async fn sweep(pool: Weak<Pool>) {
    while let Some(next) = pool.upgrade().and_then(|pool| pool.expire()) {
        sleep_until(next).await;
    }
}

/// A request without an answer.
struct Unsent {
    error: hyper::Error,
    /// The request, if nothing of it was sent.
    request: Option<Request<Full<Bytes>>>,
}

impl Lease {
    async fn send(mut self, request: Request<Full<Bytes>>) -> Result<Answer, Unsent> {
        match self.sender.try_send_request(request).await {
            Ok(answer) => Ok(answer.map(|incoming| (incoming, self))),
            Err(mut failed) => {
                let request = failed.take_message();
                Err(Unsent { error: failed.into_error(), request })
            }
        }
    }

    /// The answer was read to its end.
    pub(crate) fn give_back(self) {
        self.pool.give_back(self.sender, self.epoch);
    }
}
