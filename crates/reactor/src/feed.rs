//! Moves changes from the journal of a source to the queues of its reactions.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, watch};
use watchkeeper_core::{Delivery, Error, Key, Source};
use watchkeeper_informer::{Entry, Store};
use watchkeeper_queue::Priority;

use crate::action::Stray;
use crate::confirm;
use crate::reaction::{Reaction, Shared, rounded};

/// How long to wait before objects that are missing are looked for once more: a source that is being filled anew has them by then.
const CONFIRM_DELAY: Duration = Duration::from_secs(1);
/// How long to wait before what was delivered earlier is compared again, after that failed: as long as a short interruption takes.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Whether everything that the source had at the beginning is in the queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    NotYet,
    Yes,
    /// It is not, and why. Only if the reactor runs once: otherwise it is tried again.
    Never(String),
}

/// Follows one source.
pub(crate) struct Follower {
    pub(crate) name: Arc<str>,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) store: Store<Value>,
    pub(crate) reactions: Vec<Arc<Reaction>>,
    pub(crate) complete: Arc<AtomicBool>,
    pub(crate) settled: watch::Sender<Settled>,
    pub(crate) shared: Arc<Shared>,
    /// Something was in the first snapshot that could not even be named.
    pub(crate) doubtful: AtomicBool,
}

type Finding<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

impl Follower {
    /// Follows until the informer ends. After a panic it goes on with the next entry, and looks at all objects again.
    pub(crate) async fn follow(self, entries: mpsc::Receiver<Entry<Value>>) {
        let (task, supervisor) = (format!("source {}", self.name), self.shared.metrics.supervisor.clone());
        let following = supervisor.run_with(&task, (self, entries, false), |(follower, entries, begun)| {
            let again = std::mem::replace(begun, true);
            Box::pin(follower.follow_on(entries, again))
        });
        following.await;
    }

    async fn follow_on(&self, entries: &mut mpsc::Receiver<Entry<Value>>, again: bool) {
        let mut failures = 0_u32;
        // Finds out what is gone since the last run, once the source is complete.
        let mut finding: Option<Finding<'_>> = None;
        if again {
            // What is as it was delivered is found to be so.
            for object in self.store.list() {
                for reaction in &self.reactions {
                    reaction.queue.add_with(object.key().clone(), Priority::LOW);
                }
            }
            if self.complete.load(Ordering::Acquire) {
                finding = Some(Box::pin(self.find_missing()));
            }
        }
        loop {
            tokio::select! {
                entry = entries.recv() => match entry {
                    Some(Entry::Complete(_)) if !self.complete.swap(true, Ordering::AcqRel) => {
                        tracing::info!("{}: {} objects in {}", self.name, self.store.len(), self.source.name());
                        failures = 0;
                        finding = Some(Box::pin(self.find_missing()));
                    }
                    Some(entry) => self.take(entry, &mut failures),
                    None => return,
                },
                found = async { match &mut finding {
                    Some(finding) => finding.await,
                    None => std::future::pending().await,
                } } => {
                    finding = None;
                    match found {
                        Ok(()) => drop(self.settled.send_replace(Settled::Yes)),
                        Err(why) if self.shared.once => self.give_up(why),
                        Err(why) => {
                            tracing::warn!("{}: {why}; trying again in {}", self.name, rounded(RETRY_DELAY));
                            finding = Some(Box::pin(async {
                                tokio::time::sleep(RETRY_DELAY).await;
                                self.find_missing().await
                            }));
                        }
                    }
                }
            }
        }
    }

    fn take(&self, entry: Entry<Value>, failures: &mut u32) {
        match entry {
            Entry::Changed(change) => {
                let priority = match change.delivery {
                    Delivery::Initial => Priority::LOW,
                    _ => Priority::NORMAL,
                };
                for reaction in &self.reactions {
                    reaction.queue.add_with(change.key.clone(), priority);
                }
            }
            Entry::Complete(_) | Entry::Resumed if std::mem::take(failures) > 0 => {
                tracing::info!("{}: can be read again", self.name);
            }
            Entry::Rejected(rejection) => {
                if rejection.key.is_none() {
                    self.doubtful.store(true, Ordering::Release);
                }
                tracing::warn!("{}: {rejection}", self.name);
                self.shared.tally.rejected.fetch_add(1, Ordering::Relaxed);
                self.shared.metrics.rejected(&self.name);
            }
            Entry::Interrupted { error: Some(error), wait, .. } if !matches!(error, Error::Expired(_)) => {
                *failures += 1;
                if !self.complete.load(Ordering::Acquire) && self.shared.once {
                    self.give_up(error.to_string());
                } else if failures.is_power_of_two() {
                    tracing::warn!("{}: {error}; trying again in {}", self.name, rounded(wait));
                }
            }
            _ => {}
        }
    }

    fn give_up(&self, why: String) {
        tracing::error!("{}: {why}", self.name);
        self.settled.send_replace(Settled::Never(format!("{}: {why}", self.name)));
    }

    /// Puts into the queues what was delivered and is no longer there.
    async fn find_missing(&self) -> Result<(), String> {
        for reaction in &self.reactions {
            // Before the children are listed, so that those are among them that are made meanwhile.
            let before = self.shared.delivered.keys(reaction.index);
            let origins = reaction.action.origins().await.map_err(|failure| failure.message)?;
            // Those without objects may be fewer now, which is of no use to the file before it is written anew.
            let _ = self.shared.delivered.set_kinds(reaction.index, reaction.action.kinds());
            if reaction.puts_right() {
                let there: HashSet<&Key> = origins.iter().collect();
                for key in before.into_iter().filter(|key| !there.contains(key)) {
                    let any = Stray { kind: String::new(), key: key.clone(), version: None };
                    reaction.stray(key, any);
                }
            }
            origins.into_iter().for_each(|key| self.shared.delivered.note(reaction.index, key));
        }
        let known: HashSet<Key> =
            self.reactions.iter().flat_map(|reaction| self.shared.delivered.keys(reaction.index)).collect();
        let mut missing: HashSet<Key> =
            known.iter().filter(|key| !self.store.contains(key)).cloned().collect();
        if missing.is_empty() {
            return Ok(());
        }
        let doubtful = self.doubtful.load(Ordering::Acquire);
        if doubtful || confirm::is_needed(&*self.source, known.len(), missing.len()) {
            tracing::warn!(
                "{}: {} of {} objects are no longer there: looking again before they are taken for gone",
                self.name,
                missing.len(),
                known.len()
            );
            tokio::time::sleep(CONFIRM_DELAY).await;
            let there = confirm::keys(&*self.source).await;
            let there = there.map_err(|error| format!("what is gone is not known: {error}"))?;
            missing.retain(|key| !there.contains(key) && !self.store.contains(key));
        }
        for reaction in &self.reactions {
            let known: HashSet<Key> = self.shared.delivered.keys(reaction.index).into_iter().collect();
            for key in missing.intersection(&known) {
                reaction.queue.add(key.clone());
            }
        }
        Ok(())
    }
}
