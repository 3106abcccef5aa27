//! The periodic read of all keys that is compared with the log.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use watchkeeper_core::{Error, Event, Freshness, Start};
use watchkeeper_etcd::Client;

use super::settings::Settings;
use super::snapshot::Pages;
use crate::audit::Audit;

/// Compares what was told with the keys, every so often.
pub(super) struct Auditing {
    settings: Arc<Settings>,
    audit: Audit,
    interval: Duration,
    stage: Stage,
}

enum Stage {
    /// Until it is time to read.
    Waiting(Instant),
    Reading(Pages),
    /// All keys were read as of this revision: the log has to come here.
    Read(i64),
}

impl Auditing {
    /// None, if it was not asked for or the feed goes on where another one was that nobody knows.
    pub(super) fn new(settings: &Arc<Settings>, start: &Start) -> Option<Self> {
        let interval = settings.check_drift?;
        let audit = match start {
            Start::Snapshot(_) => Audit::default(),
            Start::Resume(_) => settings.shared.told().take()?,
        };
        Some(Self {
            settings: Arc::clone(settings),
            audit,
            interval,
            stage: Stage::Waiting(Instant::now() + interval),
        })
    }

    pub(super) fn note(&mut self, event: &Event) {
        self.audit.note(event);
    }

    /// When there is something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Waiting(due) => Some(due),
            Stage::Reading(_) => Some(Instant::now()),
            Stage::Read(_) => None,
        }
    }

    /// Reads a page; `true` if it was the last one. A read that fails says nothing: there will be another one.
    pub(super) async fn read(&mut self, client: &Client) -> bool {
        if let Stage::Waiting(_) = self.stage {
            self.audit.begin();
            self.stage = Stage::Reading(Pages::new(&self.settings));
        }
        let Stage::Reading(pages) = &mut self.stage else { return false };
        match pages.next(&self.settings, client, &Freshness::Newest).await {
            Ok(Some(events)) => {
                for event in events {
                    match event {
                        Event::Item(document) => self.audit.found(document),
                        Event::Rejected(rejection) => {
                            rejection.key.into_iter().for_each(|key| self.audit.unreadable(key));
                        }
                        _ => {}
                    }
                }
                false
            }
            Ok(None) => {
                self.audit.end();
                self.stage = Stage::Read(pages.revision);
                true
            }
            Err(error) => {
                tracing::debug!(source = self.settings.name, %error, "keys could not be compared with the log");
                self.audit.abandon();
                self.stage = Stage::Waiting(Instant::now() + self.interval);
                false
            }
        }
    }

    /// The log has come to this revision: what it should have told before is drift.
    ///
    /// # Errors
    ///
    /// [`Expired`](Error::Expired), if there is some. Versions are in total order, so that a reader would take the older one of two states for
    /// one that is over; a new snapshot overrules what it knows.
    pub(super) fn reached(&mut self, revision: i64) -> Result<(), Error> {
        match self.stage {
            Stage::Read(read_at) if revision >= read_at => {}
            _ => return Ok(()),
        }
        self.stage = Stage::Waiting(Instant::now() + self.interval);
        let drift = u64::try_from(self.audit.settle().len()).unwrap_or(u64::MAX);
        if drift == 0 {
            return Ok(());
        }
        self.settings.shared.drift.fetch_add(drift, Ordering::Relaxed);
        // Positions of before are of no use any more, nor is a snapshot that is only not older than one of them.
        self.settings.forget();
        let name = &self.settings.name;
        tracing::warn!(source = name, drift, "drift: keys changed without an entry in the log");
        Err(Error::Expired(format!("{name}: {drift} keys are not what the log has told")))
    }
}

impl Drop for Auditing {
    fn drop(&mut self) {
        self.audit.abandon();
        let audit = std::mem::take(&mut self.audit);
        *self.settings.shared.told() = audit.is_complete().then_some(audit);
    }
}
