//! Records of calls in a database: written in batches, by a task of its own.
//!
//! No call waits for it. While the database does not answer, records wait, up to [`WAITING`] of them and [`BYTES`] bytes; more are lost, and counted. A batch whose fate is
//! not known is written again, which changes nothing if it was written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use watchkeeper_sources::postgres::{Session, StatementError};
use watchkeeper_supervision::Supervisor;

use super::record_table::RecordTable;

/// The name of the task that writes.
const TASK: &str = "records";
/// How many records may wait.
const WAITING: usize = 16_384;
/// How many bytes those may have that wait.
const BYTES: usize = 32 << 20;
/// How many records, and about how many bytes, are written at once.
const BATCH: (usize, usize) = (500, 1 << 20);
/// How long to wait before a batch is written again: at first, and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// How long the server may be silent.
const TIMEOUT: Duration = Duration::from_secs(10);

enum Message {
    Line(Vec<u8>),
    /// Answered when all that came before is written.
    Flush(oneshot::Sender<()>),
}

/// What is counted of records in a database.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) written: AtomicU64,
    pub(super) lost: AtomicU64,
    waiting: AtomicUsize,
}

/// Takes records for a database.
pub(super) struct DatabaseWriter {
    queue: mpsc::Sender<Message>,
    counted: Arc<Counted>,
}

impl DatabaseWriter {
    /// Begins to write, on the current runtime.
    pub(super) fn start(table: RecordTable, supervisor: &Supervisor) -> Self {
        let (queue, messages) = mpsc::channel(WAITING);
        let counted = Arc::<Counted>::default();
        let writer = Writer {
            table: RecordTable(table.0.timeout(TIMEOUT)),
            messages,
            counted: Arc::clone(&counted),
            session: None,
            batch: Vec::new(),
            flushed: Vec::new(),
        };
        let supervisor = supervisor.clone();
        tokio::spawn(async move {
            supervisor.run_with(TASK, writer, |writer| Box::pin(writer.run())).await;
        });
        Self { queue, counted }
    }

    /// Takes a record, if there is room for it.
    pub(super) fn offer(&self, line: Vec<u8>) {
        let bytes = line.len();
        let before = self.counted.waiting.fetch_add(bytes, Relaxed);
        if before.saturating_add(bytes) > BYTES || self.queue.try_send(Message::Line(line)).is_err() {
            self.counted.waiting.fetch_sub(bytes, Relaxed);
            self.counted.lost.fetch_add(1, Relaxed);
        }
    }

    /// Waits until all that was taken is written.
    pub(super) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.queue.send(Message::Flush(done)).await.is_ok() {
            let _ = flushed.await; // nobody writes any more
        }
    }

    pub(super) fn counted(&self) -> &Counted {
        &self.counted
    }
}

struct Writer {
    table: RecordTable,
    messages: mpsc::Receiver<Message>,
    counted: Arc<Counted>,
    session: Option<Session>,
    /// What is being written.
    batch: Vec<Vec<u8>>,
    flushed: Vec<oneshot::Sender<()>>,
}

impl Writer {
    /// Writes until nobody has records any more. Can be called again after a panic.
    async fn run(&mut self) {
        let mut wait = BACKOFF.0;
        loop {
            if self.batch.is_empty() && !self.gather().await {
                return;
            }
            match self.write().await {
                Ok(()) => {
                    wait = BACKOFF.0;
                    for done in self.flushed.drain(..) {
                        let _ = done.send(()); // nobody waits for it any more
                    }
                }
                Err(failed) => {
                    self.session = None;
                    tracing::error!("records of calls wait: {failed}");
                    sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
                    wait = (wait * 2).min(BACKOFF.1);
                }
            }
        }
    }

    /// Takes what waits, at least one record or somebody who waits for nothing. False at the end.
    async fn gather(&mut self) -> bool {
        let (mut bytes, mut next) = (0, self.messages.recv().await);
        let any = next.is_some();
        while let Some(message) = next {
            match message {
                Message::Line(line) => {
                    bytes += line.len();
                    self.batch.push(line);
                }
                Message::Flush(done) => self.flushed.push(done),
            }
            let is_full = self.batch.len() >= BATCH.0 || bytes >= BATCH.1;
            next = if is_full || !self.flushed.is_empty() { None } else { self.messages.try_recv().ok() };
        }
        any
    }

    /// Writes the batch. If the server refuses it for what is in it, its records are written one by one, and those that are refused are lost.
    async fn write(&mut self) -> Result<(), StatementError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        match self.insert(&self.table.insert(&self.batch)).await {
            Ok(()) => {
                self.written(self.batch.len());
                return Ok(());
            }
            Err(failed) if !failed.is_about_data() => return Err(failed),
            Err(_) => self.session = None,
        }
        while let Some(line) = self.batch.first() {
            let statement = self.table.insert(std::slice::from_ref(line));
            match self.insert(&statement).await {
                Ok(()) => self.written(1),
                Err(failed) if failed.is_about_data() => {
                    // What the server says of values may quote them.
                    let code = failed.code.unwrap_or_default();
                    tracing::warn!("{}: a record is refused (SQLSTATE {code})", self.table.0.name());
                    self.session = None;
                    self.counted.lost.fetch_add(1, Relaxed);
                    self.forget(1);
                }
                Err(failed) => return Err(failed),
            }
        }
        Ok(())
    }

    async fn insert(&mut self, statement: &str) -> Result<(), StatementError> {
        if self.session.is_none() {
            self.session = Some(self.table.open().await?);
        }
        match &mut self.session {
            Some(session) => session.query(statement).await.map(drop),
            None => Ok(()),
        }
    }

    fn written(&mut self, count: usize) {
        self.counted.written.fetch_add(count as u64, Relaxed);
        self.forget(count);
    }

    fn forget(&mut self, count: usize) {
        let bytes: usize = self.batch.drain(..count).map(|line| line.len()).sum();
        self.counted.waiting.fetch_sub(bytes, Relaxed);
    }
}
