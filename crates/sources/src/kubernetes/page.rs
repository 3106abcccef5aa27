//! A list in pages: the next continue token, and the items of the page that is arriving.

use std::time::Duration;

use watchkeeper_connection::Connection;
use watchkeeper_core::{Error, Event, Freshness, Version};

use super::answer::{Answer, Piece};
use super::kinds::Kinds;
use super::list::{Found, ListMeta, ListReader};
use super::request::{PageStart, Target};

/// How long the body of a list may make no progress.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(60);

/// A list that is being taken.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    pub(super) freshness: Freshness,
    limit: Option<u32>,
    /// What the last page ended with, if there was one.
    token: Option<String>,
    /// What the first page stands for. The others stand for the same, and a watch from the oldest misses nothing.
    version: Option<Version>,
}

/// What follows a page.
pub(super) enum Then {
    Another(Pages),
    Complete(Version),
}

impl Pages {
    pub(super) fn new(freshness: Freshness, limit: Option<u32>) -> Self {
        Self { freshness, limit, token: None, version: None }
    }

    /// Whether a page has been taken already.
    pub(super) fn is_under_way(&self) -> bool {
        self.token.is_some()
    }

    pub(super) async fn open(
        &self,
        connection: &Connection,
        target: &Target,
        kinds: Kinds,
        max_object_bytes: usize,
    ) -> Result<Page, Error> {
        let start = match &self.token {
            Some(token) => PageStart::Continue(token.clone()),
            None => PageStart::Fresh(self.freshness.clone()),
        };
        let answer = Answer::to(connection, "list", target.list(&start, self.limit)?).await?;
        Ok(Page { pages: self.clone(), answer, reader: ListReader::new(max_object_bytes), kinds })
    }
}

/// A page that is arriving. Dropping it closes the connection.
pub(super) struct Page {
    pages: Pages,
    answer: Answer,
    reader: ListReader,
    kinds: Kinds,
}

impl Page {
    /// The next item, or `None` when the page has come to its end.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            match self.reader.next(&mut self.kinds) {
                Err(not_a_list) => return Err(self.answer.failed(not_a_list.0)),
                Ok(Some(Found::Item(document))) => return Ok(Some(Event::Item(document))),
                Ok(Some(Found::Rejected(rejection))) => return Ok(Some(Event::Rejected(rejection))),
                Ok(None) if self.reader.has_ended() => return Ok(None),
                Ok(None) => {}
            }
            match self.answer.piece(PROGRESS_TIMEOUT).await? {
                Piece::Data(data) => self.reader.push(&data),
                Piece::End => self.reader.end(),
                Piece::Silence => {
                    let seconds = PROGRESS_TIMEOUT.as_secs();
                    return Err(self.answer.failed(format!("the list makes no progress for {seconds} s")));
                }
            }
        }
    }

    pub(super) fn freshness(&self) -> &Freshness {
        &self.pages.freshness
    }

    /// What follows, once the page has come to its end.
    pub(super) fn then(self) -> Result<Then, Error> {
        let Self { mut pages, answer, reader, .. } = self;
        let ListMeta { version, next } = reader.into_meta();
        // Zero would mean "any version" if a watch were to begin there.
        let Some(version) = version.filter(|version| version != "0") else {
            return Err(answer.failed("not a list: no metadata.resourceVersion"));
        };
        let version = pages.version.unwrap_or_else(|| Version::from(&*version));
        if next.is_some() {
            if next == pages.token {
                return Err(answer.failed("the list never ends: a page is followed by itself"));
            }
            pages.token = next;
            pages.version = Some(version);
            return Ok(Then::Another(pages));
        }
        Ok(Then::Complete(version))
    }
}
