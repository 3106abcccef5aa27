//! Many watchers of one kind, on a thread of their own so that whoever makes the changes does not wait for them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use watchkeeper_bench_target::{Access, Connection, Error, Result};

/// Watchers that have a TLS connection each, speak HTTP/1.1 and count lines. They stop when it is dropped.
pub(crate) struct Crowd {
    watchers: usize,
    seen: Arc<Seen>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What they saw.
#[derive(Default)]
struct Seen {
    /// Lines, all watchers together.
    total: AtomicUsize,
    /// What the total has to be before somebody is told.
    goal: AtomicUsize,
    news: Notify,
    failure: Mutex<Option<String>>,
}

impl Crowd {
    /// Connects them and begins their watches.
    pub(crate) async fn gather(access: &Arc<Access>, path: &str, watchers: usize) -> Result<Self> {
        let seen = Arc::new(Seen { goal: AtomicUsize::new(usize::MAX), ..Seen::default() });
        let (stop, stopped) = mpsc::channel(1);
        let (ready, gathered) = tokio::sync::oneshot::channel();
        let (access, path, sight) = (access.clone(), path.to_owned(), seen.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::spawn(move || {
            runtime.block_on(watch(&access, &path, watchers, &sight, stopped, ready));
        });
        let crowd = Self { watchers, seen, stop: Some(stop), thread: Some(thread) };
        gathered.await??;
        Ok(crowd)
    }

    /// From now on so many changes will come.
    pub(crate) fn expect(&self, changes: usize) {
        let now = self.seen.total.load(Ordering::SeqCst);
        self.seen.goal.store(now + changes * self.watchers, Ordering::SeqCst);
    }

    /// Waits until everybody saw them.
    pub(crate) async fn all_saw(&self) -> Result<()> {
        loop {
            let news = self.seen.news.notified();
            if let Some(failure) = self.seen.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return Err(failure.into());
            }
            if self.seen.total.load(Ordering::SeqCst) >= self.seen.goal.load(Ordering::SeqCst) {
                return Ok(());
            }
            news.await;
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Watches until it is told to stop.
async fn watch(
    access: &Arc<Access>,
    path: &str,
    watchers: usize,
    seen: &Arc<Seen>,
    mut stopped: mpsc::Receiver<()>,
    ready: tokio::sync::oneshot::Sender<Result<()>>,
) {
    let mut tasks = JoinSet::new();
    for _ in 0..watchers {
        if let Err(error) = join(&mut tasks, access, path, seen).await {
            let _ = ready.send(Err(error));
            return;
        }
    }
    let _ = ready.send(Ok(()));
    tokio::select! {
        // Nothing is ever sent: it ends when the crowd is dropped.
        _ = stopped.recv() => {}
        Some(ended) = tasks.join_next() => {
            let why = match ended {
                Ok(Err(error)) => error.to_string(),
                _ => "a watcher ended".into(),
            };
            *seen.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            seen.news.notify_one();
        }
    }
}

async fn join(
    tasks: &mut JoinSet<Result<(), Error>>,
    access: &Arc<Access>,
    path: &str,
    seen: &Arc<Seen>,
) -> Result<()> {
    let mut connection = Connection::http1(access).await?;
    let mut lines = connection.watch(path).await?;
    let seen = seen.clone();
    tasks.spawn(async move {
        // The watch ends with its connection.
        let _connection = connection;
        loop {
            let more = lines.more().await?;
            let total = seen.total.fetch_add(more, Ordering::SeqCst) + more;
            if total >= seen.goal.load(Ordering::SeqCst) {
                seen.news.notify_one();
            }
        }
    });
    Ok(())
}
