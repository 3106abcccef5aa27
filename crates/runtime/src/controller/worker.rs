//! The workers of a controller: take a key, run the reconcile, say how it ended.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use watchkeeper_queue::{Job, JobOutcome};

use crate::action::Action;
use crate::clusters::Clusters;
use crate::context::{Context, Inner};
use crate::error::{Error, Result, Retry};
use crate::events::Recorder;
use crate::leadership::LeadershipWatch;
use crate::metrics::ControllerMetrics;
use crate::request::WorkKey;
use crate::watch_task::WorkSink;

/// What is done for a key.
pub(crate) type Run<R> = Arc<dyn Fn(R, Context) -> BoxFuture<'static, Result<Action>> + Send + Sync>;

/// What all workers of a controller share.
pub(crate) struct Workers<R> {
    pub(crate) sink: Arc<WorkSink<R>>,
    pub(crate) run: Run<R>,
    /// The cluster that a key is in.
    pub(crate) cluster: fn(&R) -> Option<&str>,
    pub(crate) clusters: Clusters,
    pub(crate) recorder: Recorder,
    pub(crate) timeout: Option<Duration>,
    pub(crate) metrics: ControllerMetrics,
    /// Whether work may be done; a worker whose lead ends drops what it runs.
    pub(crate) leadership: LeadershipWatch,
    /// The grace of a shutdown is over: drop what runs.
    pub(crate) abort: CancellationToken,
    /// A shutdown has begun: reconciles are told.
    pub(crate) stopping: CancellationToken,
}

/// How a reconcile ended, if it did.
enum Ended {
    Returned(Result<Action>),
    Panicked,
    TimedOut(Duration),
    /// Dropped on the way, because the lead was lost or the program ends.
    Dropped,
}

impl<R: WorkKey> Workers<R> {
    /// Works until the queue is shut down.
    pub(crate) async fn work(self: Arc<Self>) {
        let mut leadership = self.leadership.clone();
        while let Some(term) = leadership.won().await {
            let job = tokio::select! {
                biased;
                () = leadership.lost(term) => continue,
                job = self.sink.queue.get() => job,
            };
            let Some(job) = job else { return };
            self.reconcile(job, leadership.lost(term)).await;
        }
    }

    async fn reconcile(&self, job: Job<R>, lost: impl Future<Output = ()>) {
        let work = job.key().clone();
        let cause = self.sink.causes.take(&work);
        let span = tracing::info_span!(
            "reconcile",
            controller = %self.sink.controller,
            object = %work,
            attempt = job.attempt(),
            cause = cause.as_ref().map(tracing::field::display),
        );
        let Some(client) = self.clusters.get((self.cluster)(&work)) else {
            tracing::error!(parent: &span, "unknown cluster");
            job.finish(JobOutcome::Terminal);
            return;
        };
        let context = Context::new(Inner {
            controller: Arc::clone(&self.sink.controller),
            client: client.clone(),
            clusters: self.clusters.clone(),
            recorder: self.recorder.clone(),
            attempt: job.attempt(),
            priority: job.priority(),
            cause,
            cancelled: self.stopping.child_token(),
        });
        self.metrics.active.inc();
        let begun = Instant::now();
        let ended = self.run(work, context, lost).instrument(span.clone()).await;
        let took = begun.elapsed();
        self.metrics.active.dec();
        let _entered = span.enter();
        self.finish(job, ended, took);
    }

    async fn run(&self, work: R, context: Context, lost: impl Future<Output = ()>) -> Ended {
        // The call itself may panic as well as what it returns.
        let reconcile = AssertUnwindSafe(async { (self.run)(work, context).await }).catch_unwind();
        let limited = async {
            match self.timeout {
                Some(limit) => tokio::time::timeout(limit, reconcile).await.map_err(|_| limit),
                None => Ok(reconcile.await),
            }
        };
        let ended = tokio::select! {
            biased;
            () = self.abort.cancelled() => return Ended::Dropped,
            () = lost => return Ended::Dropped,
            ended = limited => ended,
        };
        match ended {
            Ok(Ok(result)) => Ended::Returned(result),
            Ok(Err(_)) => Ended::Panicked,
            Err(limit) => Ended::TimedOut(limit),
        }
    }

    fn finish(&self, job: Job<R>, ended: Ended, took: Duration) {
        let metrics = &self.metrics;
        metrics.seconds.observe(took.as_secs_f64());
        match ended {
            Ended::Returned(Ok(action)) => {
                tracing::debug!(?took, requeue_after = ?action.after, "reconciled");
                metrics.ended(if action.after.is_some() { "requeue_after" } else { "success" });
                let outcome = action.after.map_or(JobOutcome::Done, JobOutcome::RequeueAfter);
                match action.priority {
                    Some(priority) => job.finish_with(outcome, priority),
                    None => job.finish(outcome),
                }
            }
            Ended::Returned(Err(error)) => self.failed(job, &error, took),
            Ended::Panicked => {
                metrics.panics.inc();
                self.failed(job, &Error::message("the reconcile panicked"), took);
            }
            Ended::TimedOut(limit) => {
                metrics.timeouts.inc();
                self.failed(job, &Error::message(format!("did not end within {limit:?}")), took);
            }
            Ended::Dropped => {
                tracing::info!(?took, "reconcile cancelled");
                job.finish(JobOutcome::RequeueAfter(Duration::ZERO));
            }
        }
    }

    fn failed(&self, job: Job<R>, error: &Error, took: Duration) {
        self.metrics.ended("error");
        self.metrics.errors.inc();
        match error.retry() {
            Retry::Never => {
                self.metrics.terminal.inc();
                tracing::error!(?took, %error, "reconcile failed permanently; it runs again when the object changes");
                job.finish(JobOutcome::Terminal);
            }
            Retry::BackOff => {
                tracing::warn!(?took, %error, "failed");
                job.finish(JobOutcome::Retry);
            }
            Retry::After(after) => {
                tracing::warn!(?took, %error, ?after, "reconcile failed; it is retried");
                job.finish(JobOutcome::RetryAfter(after));
            }
        }
    }
}
