//! How the sources are doing, told to probes, metrics and the log.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use watchkeeper_informer::{Informer, SourceStatus};

use crate::health::Checks;
use crate::metrics::Metrics;

/// A cache that is kept for as long as this lives.
pub(crate) struct Kept {
    pub(crate) name: Arc<str>,
    pub(crate) status: watch::Receiver<Vec<SourceStatus>>,
    _informer: Informer,
}

impl Kept {
    pub(crate) fn new(informer: Informer) -> Self {
        let status = informer.watch_status();
        let name = status.borrow().first().map_or("source", |status| &status.name).into();
        Self { name, status, _informer: informer }
    }

    /// Resolves when everything was listed once.
    pub(crate) fn synced(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut status = self.status.clone();
        async move {
            // An error means that it was stopped: nobody waits any more.
            let _ = status.wait_for(|sources| sources.iter().all(|source| source.synced)).await;
        }
    }
}

/// Watches over everything that a manager watches. Ends when it is dropped.
pub(crate) struct Watched {
    ready: Checks,
    metrics: Metrics,
    names: Vec<Arc<str>>,
    tasks: JoinSet<()>,
}

impl Watched {
    pub(crate) fn new(ready: Checks, metrics: Metrics) -> Self {
        Self { ready, metrics, names: Vec::new(), tasks: JoinSet::new() }
    }

    /// Another cache. Those that several controllers share are watched once.
    pub(crate) fn add(&mut self, name: &Arc<str>, status: &watch::Receiver<Vec<SourceStatus>>) {
        if self.names.contains(name) {
            return;
        }
        self.names.push(Arc::clone(name));
        let look = status.clone();
        self.ready.set(format!("cache {name}"), Arc::new(move || readiness(&look.borrow())));
        let (status, metrics) = (status.clone(), self.metrics.clone());
        self.tasks.spawn(async move {
            let report = || report(status.clone(), metrics.clone());
            metrics.supervisor.run("cache-status", report).await;
        });
    }
}

/// A cache is ready once everything was listed; later trouble is degradation, and what is cached can still be read.
fn readiness(sources: &[SourceStatus]) -> Result<(), String> {
    let missing: Vec<_> = sources
        .iter()
        .filter(|source| !source.synced)
        .map(|source| match &source.error {
            Some(error) => format!("{}: {error}", source.name),
            None => format!("{}: not listed yet", source.name),
        })
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(missing.join("; ")) }
}

/// Says once when a source fails, when it fails differently, and when it works again.
async fn report(mut status: watch::Receiver<Vec<SourceStatus>>, metrics: Metrics) {
    let mut before: Vec<(Arc<str>, Option<&'static str>)> = Vec::new();
    loop {
        let now: Vec<_> = status
            .borrow_and_update()
            .iter()
            .map(|source| (Arc::<str>::from(source.name.as_str()), source.error.clone()))
            .collect();
        for (name, error) in &now {
            let class = error.as_ref().map(watchkeeper_core::Error::class);
            let known = before.iter().find(|(known, _)| known == name).and_then(|(_, class)| *class);
            if class == known {
                continue;
            }
            metrics.source(name, class, known);
            match error {
                Some(error) => {
                    tracing::warn!(source = %name, %error, "kind cannot be watched; it is retried");
                }
                None => tracing::info!(source = %name, "kind is watched again"),
            }
        }
        before = now
            .into_iter()
            .map(|(name, error)| (name, error.as_ref().map(watchkeeper_core::Error::class)))
            .collect();
        if status.changed().await.is_err() {
            return;
        }
    }
}
