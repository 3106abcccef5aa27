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
            let client = self.client.clone();
            let head = move || {
                let client = client.clone();
                async move {
                    let found = client.range(&Range::of(Keys::one(NOTHING)).count_only()).await?;
                    Ok(revision(found.header.revision))
                }
            };
            tokio::spawn(ask(Arc::clone(&self.queue), head));
        }
        receiver.await.unwrap_or_else(|_| Err(Error::Unavailable("the question was not asked".into())))
    }
}

/// The right to ask. If it is dropped before nobody waits any more, by a panic or the end of the runtime, the next one who wants to know
/// asks again, and those who wait are told that their question was not asked.
struct Turn(Option<Arc<Mutex<Queue>>>);

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(queue) = self.0.take() else { return };
        let mut queue = queue.lock();
        queue.asking = false;
        queue.waiting.clear();
    }
}

/// Asks until nobody waits any more.
async fn ask<F: Future<Output = Result<Revision, Error>>>(queue: Arc<Mutex<Queue>>, head: impl Fn() -> F) {
    let mut turn = Turn(Some(Arc::clone(&queue)));
    loop {
        let waiting = {
            let mut queue = queue.lock();
            queue.asking = !queue.waiting.is_empty();
            std::mem::take(&mut queue.waiting)
        };
        if waiting.is_empty() {
            // From here on, somebody else may be asking.
            turn.0 = None;
            return;
        }
        let head = head().await;
        for sender in waiting {
            let _ = sender.send(head.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(queue: &Mutex<Queue>) -> oneshot::Receiver<Result<Revision, Error>> {
        let (sender, receiver) = oneshot::channel();
        let mut queue = queue.lock();
        queue.waiting.push(sender);
        queue.asking = true;
        receiver
    }

    #[tokio::test]
    async fn a_question_that_panics_is_asked_again_by_the_next_who_wants_to_know() {
        let queue = Arc::<Mutex<Queue>>::default();
        let (first, late) = (wait(&queue), Arc::new(Mutex::new(None)));
        let (asked, waits) = (Arc::clone(&queue), Arc::clone(&late));
        let panics = move || {
            *waits.lock() = Some(wait(&asked));
            async { panic!("on purpose") }
        };
        assert!(tokio::spawn(ask(Arc::clone(&queue), panics)).await.unwrap_err().is_panic());
        let late = late.lock().take().unwrap();
        assert!(first.await.is_err() && late.await.is_err(), "nobody waits for ever");
        assert!(!queue.lock().asking);
        let second = wait(&queue);
        ask(Arc::clone(&queue), || async { Ok(7) }).await;
        assert_eq!(second.await.unwrap().unwrap(), 7);
        assert!(!queue.lock().asking);
    }
}
