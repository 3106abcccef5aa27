use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use watchkeeper_etcd::{Client, Error, Keys, Range};

use super::revision;
use crate::Revision;

/// A key that nobody writes: asking for it costs etcd an agreement among its members, and nothing else.
const NOTHING: &str = "\0";

/// Asks etcd at which revision it is, once for all who want to know at a time.
///
/// Whoever asks gets the answer to a question that was sent after they asked, so that it covers everything that was committed before.
pub(super) struct Heads {
    client: Client,
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    /// Those whose question has not been sent yet.
    waiting: Vec<oneshot::Sender<Result<Revision, Error>>>,
    asking: bool,
}

impl Heads {
    pub(super) fn new(client: Client) -> Self {
        Self { client, queue: Arc::default() }
    }

    /// The newest revision.
    pub(super) async fn read(&self) -> Result<Revision, Error> {
        let (sender, receiver) = oneshot::channel();
        let begin = {
            let mut queue = self.queue.lock();
            queue.waiting.push(sender);
            !std::mem::replace(&mut queue.asking, true)
        };
        if begin {
            tokio::spawn(ask(self.client.clone(), Arc::clone(&self.queue)));
        }
        receiver.await.unwrap_or_else(|_| Err(Error::Unavailable("the question was not asked".into())))
    }
}

/// Asks until nobody waits any more.
async fn ask(client: Client, queue: Arc<Mutex<Queue>>) {
    let range = Range::of(Keys::one(NOTHING)).count_only();
    loop {
        let waiting = {
            let mut queue = queue.lock();
            queue.asking = !queue.waiting.is_empty();
            std::mem::take(&mut queue.waiting)
        };
        if waiting.is_empty() {
            return;
        }
        let head = client.range(&range).await.map(|found| revision(found.header.revision));
        for sender in waiting {
            let _ = sender.send(head.clone());
        }
    }
}
