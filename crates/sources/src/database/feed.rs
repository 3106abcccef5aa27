//! The feed of a table: all rows, then their changes.

use std::collections::VecDeque;
use std::future::Future;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use watchkeeper_core::{Error, Event, Feed, Key, Start};

use super::told::{Settled, Told};
use super::{Database, Scope};

/// A read that finds no more news than this is over before they are told: a reader who takes his time does not hold up the database.
const TOGETHER: usize = 1024;

/// Everything a feed does happens while it is polled; dropping it drops its connection.
pub(crate) fn open<D: Database, F>(start: Start, connect: impl FnOnce() -> F + Send + 'static) -> Feed
where
    F: Future<Output = Result<D, Error>> + Send + 'static,
{
    if let Start::Resume(_) = start {
        let error = Error::Expired("a table that is polled has no log to resume".into());
        return Box::pin(stream::once(async { Err(error) }));
    }
    let feeding = Feeding {
        stage: Stage::Closed(Box::new(move || Box::pin(connect()))),
        told: Told::default(),
        queue: VecDeque::new(),
        unasked: Vec::new(),
    };
    let events = stream::unfold(Some(Box::new(feeding)), |feeding| async move {
        let mut feeding = feeding?;
        match feeding.next().await {
            Ok(event) => Some((Ok(event), Some(feeding))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Box::pin(events.fuse())
}

struct Feeding<D> {
    stage: Stage<D>,
    told: Told,
    queue: VecDeque<Event>,
    /// What the read that is under way found to have changed, if nobody had said so.
    unasked: Vec<Key>,
}

type Connect<D> = Box<dyn FnOnce() -> BoxFuture<'static, Result<D, Error>> + Send>;

enum Stage<D> {
    Closed(Connect<D>),
    /// The snapshot is being read.
    Snapshot(D),
    Waiting(D),
    Reading(D, Scope),
    Failed,
}

impl<D: Database> Feeding<D> {
    async fn next(&mut self) -> Result<Event, Error> {
        loop {
            let reads_on = matches!(self.stage, Stage::Reading(..)) && self.queue.len() < TOGETHER;
            if !reads_on && let Some(event) = self.queue.pop_front() {
                return Ok(event);
            }
            self.stage = match std::mem::replace(&mut self.stage, Stage::Failed) {
                Stage::Closed(connect) => {
                    let mut database = connect().await?;
                    database.begin(Scope::All).await?;
                    self.told.begin(Scope::All);
                    self.queue.push_back(Event::Begin);
                    Stage::Snapshot(database)
                }
                Stage::Snapshot(mut database) => match database.next().await? {
                    Some(found) => {
                        self.queue.extend(self.told.item(found));
                        Stage::Snapshot(database)
                    }
                    None => {
                        let (gone, _) = self.told.end(database.end().await?);
                        debug_assert!(gone.is_empty(), "nothing was told before");
                        self.queue.push_back(Event::Complete(self.told.version()));
                        Stage::Waiting(database)
                    }
                },
                Stage::Waiting(mut database) => {
                    let scope = database.wait().await?;
                    self.begin(database, scope).await?
                }
                Stage::Reading(mut database, scope) => match database.next().await? {
                    Some(found) => {
                        let news = self.told.news(found);
                        self.note(scope, &news);
                        self.queue.extend(news);
                        Stage::Reading(database, scope)
                    }
                    None => {
                        let (gone, settled) = self.told.end(database.end().await?);
                        for event in gone {
                            let event = Some(event);
                            self.note(scope, &event);
                            self.queue.extend(event);
                        }
                        match settled {
                            Settled::ReadKeys => self.begin(database, Scope::Keys).await?,
                            Settled::Done => {
                                database.found_unasked(std::mem::take(&mut self.unasked));
                                Stage::Waiting(database)
                            }
                        }
                    }
                },
                Stage::Failed => return Err(Error::Fatal("the feed has failed before".into())),
            };
        }
    }

    async fn begin(&mut self, mut database: D, scope: Scope) -> Result<Stage<D>, Error> {
        database.begin(scope).await?;
        self.told.begin(scope);
        Ok(Stage::Reading(database, scope))
    }

    fn note(&mut self, scope: Scope, news: &Option<Event>) {
        match news {
            _ if scope == Scope::Hinted => {}
            Some(Event::Put { document, .. }) => self.unasked.push(document.header.key.clone()),
            Some(Event::Gone { key, .. }) => self.unasked.push(key.clone()),
            _ => {}
        }
    }
}
