use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{mpsc, oneshot};

use super::counters::Counters;
use super::writer::Writer;
use crate::{Commit, Committed, Error};

/// So many commits may wait for the thread; further ones wait to be let in.
const WAITING: usize = 1024;
/// A group is not made larger once its commits amount to this.
const GROUP_BYTES: usize = 4 << 20;
/// Why a storage halts whose writer panicked: what it holds may no longer be what the log says.
const PANICKED: &str = "the writer panicked";
/// A disk that takes longer than this is waited for in a thread of its own.
const QUICK: Duration = Duration::from_micros(500);
/// After two commits met, so many are made in groups.
const COMPANY: usize = 64;

/// Hands commits to the one writer, in groups. There are two ways to it.
///
/// - Usually, a thread takes all commits that wait as one group. While it syncs, the next group gathers.
/// - A commit that comes alone is made by whoever brings it, on the spot: waking a thread and being woken by it takes as long as the
///   disk does. That blocks a thread of the caller's runtime, so it is done only if the runtime has others, the disk is quick,
///   and commits have been coming one by one.
pub(crate) struct GroupCommit {
    shared: Arc<Shared>,
    /// Taken away to stop the thread.
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    counters: Arc<Counters>,
    /// Taken out while it is used, so that nobody uses it again if that panics.
    writer: Mutex<Option<Writer>>,
    /// So many commits are made in groups even if they come alone.
    company: AtomicUsize,
}

/// A commit on its way to the thread.
struct Request {
    commit: Commit,
    reply: oneshot::Sender<Result<Committed, Error>>,
}

impl GroupCommit {
    /// Starts the thread.
    pub(crate) fn open(writer: Writer) -> Result<Self, Error> {
        let counters = Arc::clone(&writer.counters);
        let (writer, company) = (Mutex::new(Some(writer)), AtomicUsize::new(0));
        let shared = Arc::new(Shared { counters, writer, company });
        let (requests, waiting) = mpsc::channel(WAITING);
        let thread_shared = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("storage-writer".into())
            .spawn(move || thread_shared.run(waiting))
            .map_err(|error| Error::Io { doing: "starting a thread".into(), reason: error.to_string() })?;
        Ok(Self { shared, requests: Some(requests), thread: Some(thread) })
    }

    /// Makes a commit.
    pub(crate) async fn commit(&self, commit: Commit) -> Result<Committed, Error> {
        if let Some(answer) = self.shared.at_once(&commit) {
            return answer;
        }
        let requests = self.requests.as_ref().ok_or(Error::Closed)?;
        let (reply, answer) = oneshot::channel();
        let sent = requests.send(Request { commit, reply }).await;
        sent.map_err(|_| self.shared.ended())?;
        answer.await.map_err(|_| self.shared.ended())?
    }

    /// Waits until the commits that were handed in are durable.
    pub(crate) fn close(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // Panics are caught inside.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Makes a commit on the spot, or says that it has to go to the thread.
    fn at_once(&self, commit: &Commit) -> Option<Result<Committed, Error>> {
        let in_company = self.company.try_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        if in_company || !may_block() {
            return None;
        }
        let Some(mut slot) = self.writer.try_lock() else {
            self.company.store(COMPANY, Relaxed);
            return None;
        };
        let mut writer = slot.take()?;
        if writer.pace > QUICK {
            *slot = Some(writer);
            return None;
        }
        let served = self.with(&mut writer, |writer| writer.serve([commit]));
        let Ok(mut answers) = served else { return served.err().map(Err) };
        if self.with(&mut writer, Writer::tidy).is_ok() {
            *slot = Some(writer);
        }
        answers.pop()
    }

    /// Has the writer do something. After a panic it must not be used again.
    fn with<T>(&self, writer: &mut Writer, work: impl FnOnce(&mut Writer) -> T) -> Result<T, Error> {
        catch_unwind(AssertUnwindSafe(|| work(writer))).map_err(|_| {
            tracing::error!(reason = PANICKED, "storage halted: no more commits are accepted");
            self.counters.halt(PANICKED);
            Error::Unknown { reason: PANICKED.into() }
        })
    }

    /// Why no commits are taken any more.
    fn ended(&self) -> Error {
        self.counters.halted().map_or(Error::Closed, |reason| Error::Halted { reason })
    }

    /// Runs until nobody can hand in commits any more.
    fn run(&self, mut requests: mpsc::Receiver<Request>) {
        while let Some(first) = requests.blocking_recv() {
            let mut slot = self.writer.lock();
            let Some(mut writer) = slot.take() else { return };
            // What has come in the meantime comes along.
            let group = gather(first, &mut requests);
            if group.len() > 1 {
                self.company.store(COMPANY, Relaxed);
            }
            let commits = group.iter().map(|request| &request.commit);
            let served = self.with(&mut writer, |writer| writer.serve(commits));
            let is_well = served.is_ok();
            let answers = served.unwrap_or_else(|error| vec![Err(error); group.len()]);
            for (request, answer) in group.into_iter().zip(answers) {
                // Nobody waits for the answer if the commit was cancelled.
                let _ = request.reply.send(answer);
            }
            if !is_well || self.with(&mut writer, Writer::tidy).is_err() {
                return;
            }
            *slot = Some(writer);
        }
        if let Some(writer) = self.writer.lock().take() {
            writer.finish();
        }
    }
}

/// Whether the caller is a task of a runtime that has other threads to go on with.
fn may_block() -> bool {
    Handle::try_current().is_ok_and(|runtime| {
        runtime.runtime_flavor() == RuntimeFlavor::MultiThread && runtime.metrics().num_workers() > 1
    })
}

fn gather(first: Request, requests: &mut mpsc::Receiver<Request>) -> Vec<Request> {
    let mut bytes = first.commit.bytes();
    let mut group = vec![first];
    while bytes < GROUP_BYTES
        && let Ok(next) = requests.try_recv()
    {
        bytes += next.commit.bytes();
        group.push(next);
    }
    group
}
