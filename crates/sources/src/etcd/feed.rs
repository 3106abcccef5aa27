//! The feed of a prefix: its keys in pages, then their changes.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use tokio::time::{Instant, timeout};
use watchkeeper_core::{Error, Event, Feed, Freshness, Start, Version};
use watchkeeper_etcd::{Client, Keys, Notice, Range, Watch, Watcher};

use super::auditing::Auditing;
use super::log::Log;
use super::settings::Settings;
use super::snapshot::Pages;

/// Everything a feed does happens while it is polled; dropping it drops its connection.
pub(super) fn open(settings: Arc<Settings>, start: Start) -> Feed {
    let audit = Auditing::new(&settings, &start);
    let stage = match start {
        Start::Snapshot(freshness) => Stage::Begin(freshness),
        Start::Resume(version) => Stage::Resume(version),
    };
    let feeding = Feeding { settings, client: None, stage, queue: VecDeque::new(), audit };
    let events = stream::unfold(Some(Box::new(feeding)), |feeding| async move {
        let mut feeding = feeding?;
        match feeding.next().await {
            Ok(event) => Some((Ok(event), Some(feeding))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Box::pin(events.fuse())
}

struct Feeding {
    settings: Arc<Settings>,
    client: Option<Client>,
    stage: Stage,
    queue: VecDeque<Event>,
    /// Whether the log tells everything is looked at, if that was asked for.
    audit: Option<Auditing>,
}

enum Stage {
    Begin(Freshness),
    Snapshot(Pages, Freshness),
    Resume(Version),
    /// To be watched from the next revision on.
    Watch(Log),
    Follow(Following),
}

struct Following {
    watcher: Watcher,
    log: Log,
    /// When to ask how far etcd has come; never, if etcd could say that it is further than it is.
    ask_at: Option<Instant>,
}

impl Feeding {
    async fn next(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                if let Some(audit) = &mut self.audit {
                    audit.note(&event);
                }
                return Ok(event);
            }
            let stage = std::mem::replace(&mut self.stage, Stage::Resume(Version::from("")));
            self.stage = self.step(stage).await?;
        }
    }

    /// Not cancel-safe, and need not be: a feed whose future is dropped is not polled again.
    async fn step(&mut self, stage: Stage) -> Result<Stage, Error> {
        let settings = Arc::clone(&self.settings);
        let failure = |error| settings.failure(error);
        let client = match &self.client {
            Some(client) => client.clone(),
            None => self.client.insert(settings.client.build().map_err(failure)?).clone(),
        };
        Ok(match stage {
            Stage::Begin(freshness) => {
                let mut pages = Pages::new(&settings);
                let events = pages.next(&settings, &client, &freshness).await?;
                self.queue.push_back(Event::Begin);
                self.queue.extend(events.unwrap_or_default());
                Stage::Snapshot(pages, freshness)
            }
            Stage::Snapshot(mut pages, freshness) => {
                match pages.next(&settings, &client, &freshness).await? {
                    Some(events) => {
                        self.queue.extend(events);
                        Stage::Snapshot(pages, freshness)
                    }
                    None => {
                        self.queue.push_back(Event::Complete(Version::from(pages.revision.unsigned_abs())));
                        Stage::Watch(Log { position: pages.revision })
                    }
                }
            }
            Stage::Resume(version) => {
                let position = self.resumable(&client, &version).await?;
                Stage::Watch(Log { position })
            }
            Stage::Watch(log) => {
                let ask_at = may_ask(&client).await.then(|| Instant::now() + settings.progress);
                let mut watcher = client.watcher().await.map_err(failure)?;
                let watch = Watch::of(settings.keys()).from(log.position.saturating_add(1)).progress();
                watcher.watch(&watch).await.map_err(failure)?;
                Stage::Follow(Following { watcher, log, ask_at })
            }
            Stage::Follow(mut following) => {
                // All that came before was told: nothing is queued.
                if let Some(audit) = &mut self.audit {
                    audit.reached(following.log.position)?;
                }
                let due = self.audit.as_ref().and_then(Auditing::due);
                match following.step(&settings, due).await? {
                    Some(events) => self.queue.extend(events),
                    None => {
                        if let Some(audit) = &mut self.audit
                            && audit.read(&client).await
                        {
                            following.ask_now();
                        }
                    }
                }
                Stage::Follow(following)
            }
        })
    }

    /// The revision to resume after. A watch from one that etcd has not reached would be silent rather than refused, and one from a
    /// revision that was compacted would be accepted before it is cancelled.
    async fn resumable(&mut self, client: &Client, version: &Version) -> Result<i64, Error> {
        let settings = &self.settings;
        let failure = |error| settings.failure(error);
        // Any key that may be read.
        let key = if settings.prefix.is_empty() { "\0" } else { &settings.prefix };
        let look = Range::of(Keys::one(key)).count_only();
        let header = client.range(&look).await.map_err(failure)?.header;
        let position = version.number().and_then(|number| i64::try_from(number).ok());
        let Some(position) = position.filter(|at| settings.is_known(header) && *at <= header.revision) else {
            return Err(Error::Expired(format!("{}: {version} is of no use here", settings.name)));
        };
        if position < header.revision {
            client.range(&look.at(position + 1)).await.map_err(failure)?;
        }
        settings.remember(header);
        Ok(position)
    }
}

impl Following {
    /// Asks how far etcd has come as soon as nothing is told, if it can be asked.
    fn ask_now(&mut self) {
        self.ask_at = self.ask_at.map(|_| Instant::now());
    }

    /// What is told next; nothing if it is time for something else.
    async fn step(
        &mut self,
        settings: &Settings,
        else_at: Option<Instant>,
    ) -> Result<Option<Vec<Event>>, Error> {
        let failure = |error| settings.failure(error);
        let at = [self.ask_at, else_at].into_iter().flatten().min();
        let notice = match at {
            None => self.watcher.next().await,
            Some(at) => match tokio::time::timeout_at(at, self.watcher.next()).await {
                Ok(notice) => notice,
                Err(_) if self.ask_at.is_none_or(|ask_at| ask_at > at) => return Ok(None),
                Err(_) => {
                    self.ask_at = Some(Instant::now() + settings.progress);
                    let asked = timeout(settings.timeout, self.watcher.request_progress()).await;
                    asked.unwrap_or(Ok(())).map_err(failure)?;
                    return Ok(Some(Vec::new()));
                }
            },
        };
        let events = match notice.map_err(failure)? {
            // Says that it is there before there is anything to say.
            Notice::Created { .. } => {
                vec![Event::Position(Version::from(self.log.position.unsigned_abs()))]
            }
            Notice::Changes { changes, complete, .. } => self.log.changes(settings, &changes, complete),
            Notice::Progress { revision, .. } => self.log.progress(revision).into_iter().collect(),
            Notice::Cancelled { compacted: Some(oldest), .. } => {
                let position = self.log.position;
                let said =
                    format!("{}: the changes after {position} were compacted up to {oldest}", settings.name);
                return Err(Error::Expired(said));
            }
            Notice::Cancelled { reason, .. } if reason.contains("permission denied") => {
                return Err(Error::Denied(format!("{}: {reason}", settings.name)));
            }
            Notice::Cancelled { reason, .. } => {
                return Err(Error::Unavailable {
                    answered: true,
                    reason: format!("{}: watch cancelled: {reason}", settings.name),
                });
            }
            _ => Vec::new(),
        };
        Ok(Some(events))
    }
}

/// Whether etcd can be asked how far it is: before 3.4.31 and 3.5.13, the answer may be ahead of changes that are still to come.
async fn may_ask(client: &Client) -> bool {
    let Ok(status) = client.status().await else { return false };
    let mut numbers =
        status.version.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or_default());
    let [major, minor, patch] = [(), (), ()].map(|()| numbers.next().unwrap_or_default());
    (major, minor) > (3, 5)
        || (major, minor) == (3, 5) && patch >= 13
        || (major, minor) == (3, 4) && patch >= 31
}
