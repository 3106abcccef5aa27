use std::collections::VecDeque;
use std::fmt;

use crate::duplex::Duplex;
use crate::error::Error;
use crate::message::Decode as _;
use crate::watch::{Answer, Command, Notice, Watch, WatchId};

/// One stream with any number of watches; from [`Client::watcher`](crate::Client::watcher).
///
/// What is asked for leaves while [`next`](Self::next) is awaited. The changes of one watch come in the order of their revisions, each
/// once. There is no order between watches, except that [`Notice::Progress`] without a watch speaks for all of them.
///
/// It does not resume: when the stream is lost, `next` fails, and goes on failing. Whoever wants to go on opens another one and
/// [begins](Watch::from) after the last revision of which everything was told. Dropping it ends all watches.
pub struct Watcher {
    stream: Duplex,
    last: i64,
    /// Those that were asked for and not answered yet. etcd answers in order, and does not name those that it refuses.
    creating: VecDeque<WatchId>,
}

/// Speaks for all watches, or for one that was not created.
const NOBODY: i64 = -1;

impl Watcher {
    pub(crate) fn new(stream: Duplex) -> Self {
        Self { stream, last: 0, creating: VecDeque::new() }
    }

    /// Asks for a watch. [`Notice::Created`] says that it has begun, [`Notice::Cancelled`] that it is refused.
    pub async fn watch(&mut self, watch: &Watch) -> Result<WatchId, Error> {
        let id = WatchId(self.last + 1);
        self.stream.send(&Command::Create(id, watch)).await?;
        self.last = id.0;
        self.creating.push_back(id);
        Ok(id)
    }

    /// Ends a watch. [`Notice::Cancelled`] says that it has ended.
    pub async fn cancel(&mut self, id: WatchId) -> Result<(), Error> {
        self.stream.send(&Command::Cancel(id)).await
    }

    /// Asks how far the watches are. etcd answers with [`Notice::Progress`] when all of them have caught up. Before 3.4.31 and 3.5.13, the
    /// answer may be ahead of changes that are still to come.
    pub async fn request_progress(&mut self) -> Result<(), Error> {
        self.stream.send(&Command::Progress).await
    }

    /// Says that the member is silent, whom this was asked: the connection is closed, under all who use it, and the next call goes to the next
    /// endpoint. From then on, [`next`](Self::next) fails.
    pub async fn give_up(&mut self) {
        self.stream.give_up().await;
    }

    /// What there is to be told next. Cancel-safe.
    pub async fn next(&mut self) -> Result<Notice, Error> {
        let message = self.stream.next().await?;
        let notice = self.understand(Answer::decode(&message)?)?;
        if let Notice::Cancelled { reason, .. } = &notice
            && (reason.contains("invalid auth token") || reason.contains("revision of auth store is old"))
        {
            self.stream.forget_token().await;
        }
        Ok(notice)
    }

    fn understand(&mut self, answer: Answer) -> Result<Notice, Error> {
        let Answer { header, id, created, cancelled, compact_revision, reason, fragment, changes } = answer;
        let asked = if created { self.creating.pop_front() } else { None };
        let compacted = (compact_revision != 0).then_some(compact_revision);
        Ok(match (created, cancelled) {
            (true, false) => Notice::Created { id: WatchId(id), header },
            (true, true) => {
                let id = asked.ok_or_else(|| Error::Protocol("a watch that nobody asked for".into()))?;
                Notice::Cancelled { id, reason, compacted }
            }
            (false, true) => Notice::Cancelled { id: WatchId(id), reason, compacted },
            (false, false) if changes.is_empty() && !fragment => {
                let id = (id != NOBODY).then_some(WatchId(id));
                Notice::Progress { id, revision: header.revision }
            }
            (false, false) => Notice::Changes { id: WatchId(id), changes, complete: !fragment },
        })
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("watches", &self.last).finish_non_exhaustive()
    }
}
