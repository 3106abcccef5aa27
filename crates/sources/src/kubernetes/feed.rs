//! The feed of a kind: a snapshot, streamed or in pages, then the watch.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use watchkeeper_core::{Error, Event, Feed, Freshness, Order, Start, Version};

use super::Settings;
use super::entry::Entry;
use super::initial::{Initial, Told};
use super::page::{Page, Pages, Then};
use super::watch::{self, Filled, Watch};

/// How long a server may take to say that it cannot resume, after it has said yes.
const RESUME_TIMEOUT: Duration = Duration::from_millis(250);

/// Everything a feed does happens while it is polled; dropping it drops the connection it holds.
pub(super) fn open(settings: Arc<Settings>, start: Start) -> Feed {
    let stage = match start {
        Start::Snapshot(freshness) => Stage::Begin(freshness),
        Start::Resume(version) => Stage::Resume(version),
    };
    let feeding = Box::new(Feeding { settings, stage });
    let events = stream::unfold(Some(feeding), |feeding| async move {
        let mut feeding = feeding?;
        match feeding.next().await {
            Ok(event) => event.map(|event| (Ok(event), Some(feeding))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Box::pin(events.fuse())
}

struct Feeding {
    settings: Arc<Settings>,
    stage: Stage,
}

/// Where a feed stands.
enum Stage {
    /// Before a snapshot.
    Begin(Freshness),
    OpenInitial(Freshness),
    Initial(Box<Initial>),
    /// The streamed list came to nothing after some of it was told: a snapshot begins anew.
    BeginAnew(Pages),
    OpenPage(Pages),
    Page(Box<Page>),
    /// As `OpenWatch`, at the beginning of a feed: that the server is there is told before it has anything to tell.
    Resume(Version),
    OpenWatch(Version),
    Watch(Box<Watch>),
    /// Between two stages, and after the last.
    Done,
}

/// One step: what to tell, and where the feed stands then.
type Step = (Option<Event>, Stage);

impl Feeding {
    /// The next event, or `None` when the server ends the watch in good order.
    async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            // The long stage first: it is left once in five minutes and makes one event of one entry.
            if let Stage::Watch(watch) = &mut self.stage {
                return match watch.next().await? {
                    Some(entry) => log(watch, entry).map(Some),
                    None => Ok(None),
                };
            }
            let stage = std::mem::replace(&mut self.stage, Stage::Done);
            let (event, stage) = stage.step(&self.settings).await?;
            self.stage = stage;
            if event.is_some() || matches!(self.stage, Stage::Done) {
                return Ok(event);
            }
        }
    }
}

impl Stage {
    async fn step(self, settings: &Settings) -> Result<Step, Error> {
        match self {
            Stage::Begin(freshness) => {
                let next = if settings.streams_lists() {
                    Stage::OpenInitial(freshness)
                } else {
                    Stage::OpenPage(settings.pages(freshness))
                };
                Ok((Some(Event::Begin), next))
            }
            Stage::BeginAnew(pages) => Ok((Some(Event::Begin), Stage::OpenPage(pages))),
            Stage::OpenInitial(freshness) => open_initial(settings, freshness).await,
            Stage::Initial(initial) => take_initial(settings, initial).await,
            Stage::OpenPage(pages) => open_page(settings, pages).await,
            Stage::Page(page) => take_page(settings, page).await,
            Stage::Resume(version) => resume(settings, version).await,
            Stage::OpenWatch(version) => {
                let watch = open_watch(settings, &version).await?;
                Ok((None, Stage::Watch(Box::new(watch))))
            }
            Stage::Watch(_) | Stage::Done => Ok((None, self)),
        }
    }
}

async fn open_initial(settings: &Settings, freshness: Freshness) -> Result<Step, Error> {
    let timeout = watch::timeout_seconds();
    let request = settings.target.watch_list(&freshness, timeout)?;
    match start_watch(settings, request, timeout).await {
        Ok(watch) => Ok((None, Stage::Initial(Box::new(Initial::new(watch, freshness))))),
        Err(error) if ends_a_streamed_list(&error) => Err(error),
        Err(error) => {
            settings.streaming_failed(&error);
            Ok((None, Stage::OpenPage(settings.pages(freshness))))
        }
    }
}

async fn take_initial(settings: &Settings, mut initial: Box<Initial>) -> Result<Step, Error> {
    Ok(match initial.next().await? {
        Told::Event(event) => (Some(event), Stage::Initial(initial)),
        Told::Complete(version) => {
            not_older(initial.freshness(), &version)?;
            (Some(Event::Complete(version)), Stage::Watch(Box::new(initial.into_watch())))
        }
        Told::Unidentified(rejection) => {
            tracing::debug!(source = settings.name, %rejection, "streamed list given up, paging instead");
            (Some(Event::Rejected(rejection)), Stage::BeginAnew(settings.pages(initial.freshness().clone())))
        }
        Told::Useless(reason) => {
            tracing::debug!(source = settings.name, reason, "streamed list given up, paging instead");
            (None, Stage::BeginAnew(settings.pages(initial.freshness().clone())))
        }
        Told::Failed(error) if ends_a_streamed_list(&error) => return Err(error),
        Told::Failed(error) => {
            settings.streaming_failed(&error);
            (None, Stage::BeginAnew(settings.pages(initial.freshness().clone())))
        }
    })
}

async fn open_page(settings: &Settings, pages: Pages) -> Result<Step, Error> {
    let Settings { connection, target, max_object_bytes, .. } = settings;
    match pages.open(connection, target, settings.kinds(), *max_object_bytes).await {
        Ok(page) => Ok((None, Stage::Page(Box::new(page)))),
        // The version that the pages were taken from is gone. All at once, it cannot go while we read.
        Err(Error::Expired(_)) if pages.is_under_way() => {
            Ok((None, Stage::BeginAnew(Pages::new(pages.freshness, None))))
        }
        Err(error) => Err(error),
    }
}

async fn take_page(settings: &Settings, mut page: Box<Page>) -> Result<Step, Error> {
    if let Some(event) = page.next().await? {
        return Ok((Some(event), Stage::Page(page)));
    }
    let freshness = page.freshness().clone();
    match page.then()? {
        Then::Another(pages) => {
            if freshness == Freshness::Any {
                settings.learned.pages_any_version();
            }
            Ok((None, Stage::OpenPage(pages)))
        }
        Then::Complete(version) => {
            not_older(&freshness, &version)?;
            Ok((Some(Event::Complete(version.clone())), Stage::OpenWatch(version)))
        }
    }
}

/// Who resumes wants to know that the server is there, though it may have nothing to tell for a long time. A server that
/// does not have the version any more may only say so after it has accepted the request, so there is a moment to wait.
async fn resume(settings: &Settings, version: Version) -> Result<Step, Error> {
    let mut watch = open_watch(settings, &version).await?;
    let event = match watch.fill(RESUME_TIMEOUT).await? {
        Filled::Silence => Some(Event::Position(version)),
        Filled::More | Filled::End => None,
    };
    Ok((event, Stage::Watch(Box::new(watch))))
}

async fn open_watch(settings: &Settings, version: &Version) -> Result<Watch, Error> {
    if version.is_empty() || version.number() == Some(0) {
        return Err(Error::Expired("there is no version to go on from".into()));
    }
    let timeout = watch::timeout_seconds();
    let request = settings.target.watch(version, timeout)?;
    start_watch(settings, request, timeout).await
}

async fn start_watch(
    settings: &Settings,
    request: http::Request<Bytes>,
    timeout: u64,
) -> Result<Watch, Error> {
    let Settings { connection, max_object_bytes, .. } = settings;
    Watch::open(connection, request, timeout, settings.kinds(), *max_object_bytes).await
}

/// What an entry of the log is to the reader of the feed.
fn log(watch: &Watch, entry: Entry) -> Result<Event, Error> {
    let position = |version: &Version| Some(version.clone()).filter(|version| !version.is_empty());
    Ok(match entry {
        Entry::Put { document, .. } => Event::Put { position: position(&document.header.version), document },
        Entry::Delete(document) => Event::Delete { position: position(&document.header.version), document },
        Entry::Bookmark { version, .. } => Event::Position(version),
        Entry::Rejected(rejection) => Event::Rejected(rejection),
        Entry::Failed(status) => return Err(watch.answer().refused(&status)),
    })
}

/// Whether a list in pages would fare no better than the streamed one did, or would only add to the load.
fn ends_a_streamed_list(error: &Error) -> bool {
    matches!(
        error,
        Error::Expired(_)
            | Error::Throttled { .. }
            | Error::Missing(_)
            | Error::Unavailable { answered: false, .. }
    )
}

/// Time does not go backwards, even if a server does not know what it was asked.
fn not_older(freshness: &Freshness, version: &Version) -> Result<(), Error> {
    match freshness {
        Freshness::NotOlderThan(wanted) if Order::Total.is_older(version, wanted) => {
            Err(Error::Expired(format!("the server is at version {version}, behind {wanted}")))
        }
        _ => Ok(()),
    }
}
