//! What budgets were charged with before a start, as a database of records tells.
//!
//! Until that is known, nobody can say what is left of a limit: calls that have one wait for it, and are refused after [`WAIT`].

use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use watchkeeper_ai::{ApiError, ErrorKind};
use watchkeeper_supervision::Supervisor;

use super::record_table::RecordTable;
use super::records::Spent;

/// The name of the task that asks the database.
const TASK: &str = "spent-budgets";
/// How long a call waits.
const WAIT: Duration = Duration::from_secs(5);
/// How long to wait before the database is asked again: at first, and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Asks a table, on the current runtime, what budgets were charged with before a moment, until it says so.
pub(crate) fn ask(table: RecordTable, before: SystemTime, supervisor: &Supervisor) -> mpsc::Receiver<Spent> {
    let (told, spent) = mpsc::channel(1);
    let supervisor = supervisor.clone();
    tokio::spawn(async move {
        supervisor.run_with(TASK, (table, told), |(table, told)| Box::pin(tell(table, before, told))).await;
    });
    spent
}

async fn tell(table: &RecordTable, before: SystemTime, told: &mpsc::Sender<Spent>) {
    let mut wait = BACKOFF.0;
    loop {
        match table.spent(before).await {
            Ok(spent) => {
                let _ = told.send(spent).await; // the gateway has stopped
                return;
            }
            Err(failed) => {
                tracing::error!("calls that have limits wait for what was spent before: {failed}");
                tokio::select! {
                    () = told.closed() => return,
                    () = sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)) => {}
                }
                wait = (wait * 2).min(BACKOFF.1);
            }
        }
    }
}

/// Whether it is known what budgets were charged with before the start.
#[derive(Default)]
pub(crate) struct Known {
    is_awaited: watch::Sender<bool>,
}

impl Known {
    /// Notes that somebody was asked.
    pub(crate) fn awaits(&self) {
        self.is_awaited.send_replace(true);
    }

    /// Notes that all of it is known.
    pub(crate) fn told(&self) {
        self.is_awaited.send_replace(false);
    }

    pub(crate) fn is_awaited(&self) -> bool {
        *self.is_awaited.borrow()
    }

    /// Waits until it is known.
    ///
    /// # Errors
    ///
    /// If that takes too long.
    pub(super) async fn wait(&self) -> Result<(), ApiError> {
        if !self.is_awaited() {
            return Ok(());
        }
        let mut awaited = self.is_awaited.subscribe();
        let known = awaited.wait_for(|is_awaited| !is_awaited);
        match timeout(WAIT, known).await {
            Ok(_) => Ok(()),
            Err(_) => {
                let message = "this gateway does not know yet what was spent of the budget before it started: the database of records does not answer; try again, and see the log of the gateway";
                let mut error = ApiError::new(ErrorKind::Unavailable, message).code("budget_unavailable");
                error.retry_after = Some(1);
                Err(error)
            }
        }
    }
}
