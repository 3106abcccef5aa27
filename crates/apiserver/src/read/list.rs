//! Reading objects: one, or many.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Map, Value};
use watchkeeper_schema::{FieldError, Path};
use watchkeeper_storage::{Entry, Error, Range, Revision, Storage};

use crate::object::{meta, random};
use crate::read::filter::Filter;
use crate::read::render::Form;
use crate::read::watch::{Asked, From, Watcher};
use crate::request::continue_token::Token;
use crate::request::list_options::{ListOptions, VersionMatch};
use crate::resource::{ROOT, Resource};
use crate::server::Server;
use crate::status_error::StatusError;

/// How long a client that asks for a version to come is made to wait.
const TIMEOUT: Duration = Duration::from_secs(3);

/// How many entries are looked at in one go when not all of them may match.
const STRIDE: usize = 10_000;

/// A page of a list.
pub(crate) struct Listed {
    pub(crate) entries: Vec<Arc<Entry>>,
    pub(crate) revision: Revision,
    token: Option<String>,
    remaining: Option<usize>,
}

impl Server {
    /// Reads an object, at least as new as a version.
    pub(crate) async fn get(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        not_older_than: Option<Revision>,
    ) -> Result<Arc<Entry>, StatusError> {
        let mut at = None;
        if let Some(revision) = not_older_than {
            self.wait_for(revision).await?;
            at = self.known();
        }
        let found = self.storage.get(&resource.key(namespace, name), at).await?;
        let entry = found.entry.ok_or_else(|| StatusError::not_found(resource.subject(), name))?;
        self.converter.entry(resource, entry).await
    }

    /// The revision at which this server answers whoever does not want the newest state, if there is a way that is quicker, or does without
    /// the others: nobody asks a storage that others write to how far it is.
    fn known(&self) -> Option<Revision> {
        self.storage.is_shared().then(|| self.storage.stats().revision)
    }

    /// Waits until the storage has come to a revision, but not for long.
    async fn wait_for(&self, revision: Revision) -> Result<(), StatusError> {
        if self.storage.stats().revision >= revision {
            return Ok(());
        }
        // Another server may have it already.
        let current = self.storage.get(ROOT, None).await?.revision;
        if current >= revision {
            return Ok(());
        }
        let coming = async {
            let Ok(mut watch) = self.storage.watch(ROOT, current).await else { return };
            while let Some(Ok(update)) = watch.next().await {
                if let watchkeeper_storage::Update::Event(event) = update
                    && event.revision >= revision
                {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(TIMEOUT, coming).await;
        match self.storage.stats().revision {
            current if current >= revision => Ok(()),
            current => Err(StatusError::version_too_large(revision, current)),
        }
    }

    /// Reads a page of a list.
    pub(crate) async fn list(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        filter: &Filter,
        options: &ListOptions,
    ) -> Result<Listed, StatusError> {
        let prefix = resource.prefix_in(namespace);
        let limit = usize::try_from(options.limit).ok().filter(|limit| *limit > 0);
        let mut range = Range::prefix(&prefix);
        let token = options.continuation()?;
        if let Some(token) = &token {
            range = range.after(&format!("{prefix}{}", token.after));
            if let Some(revision) = token.revision {
                range = range.at(revision);
            }
        } else if let Some(revision) = revision(&options.resource_version)
            .map_err(|error| StatusError::bad_request(format!("invalid resource version: {error}")))?
        {
            self.wait_for(revision).await?;
            let exact = match options.resource_version_match {
                Some(how) => how == VersionMatch::Exact,
                None => limit.is_some(),
            };
            if exact && revision > 0 {
                range = range.at(revision);
            } else if let Some(known) = self.known() {
                range = range.at(known);
            }
        }
        match self.page(resource, &prefix, range, filter, limit).await {
            Err(PageError::Storage(Error::Compacted { oldest })) => Err(expired(options, token, oldest)),
            Err(PageError::Storage(error)) => Err(error.into()),
            Err(PageError::StatusError(failure)) => Err(failure),
            Ok(listed) => Ok(listed),
        }
    }

    async fn page(
        &self,
        resource: &Resource,
        prefix: &str,
        range: Range,
        filter: &Filter,
        limit: Option<usize>,
    ) -> Result<Listed, PageError> {
        // Where only one object can match, the others need not be looked at.
        if let Some(key) = filter.name().and_then(|name| resource.only_key(prefix, name)) {
            let found = self.storage.get(&key, range.revision()).await?;
            let found_entries = self.converter.entries(resource, found.entry.into_iter().collect()).await?;
            let matching =
                found_entries.into_iter().map(|entry| Ok((filter.matches(resource, &entry)?, entry)));
            let matching = matching.collect::<Result<Vec<_>, StatusError>>()?;
            let entries =
                matching.into_iter().filter(|(matches, _)| *matches).map(|(_, entry)| entry).collect();
            return Ok(Listed { entries, revision: found.revision, token: None, remaining: None });
        }
        if filter.is_empty() {
            let range = match limit {
                Some(limit) => range.limit(limit),
                None => range,
            };
            let page = self.storage.range(range).await?;
            let token = page.more.then(|| token(prefix, page.entries.last(), page.revision));
            return Ok(Listed {
                entries: self.converter.entries(resource, page.entries).await?,
                revision: page.revision,
                token,
                remaining: page.remaining,
            });
        }
        let (mut entries, mut next) = (Vec::new(), range.limit(STRIDE));
        loop {
            let page = self.storage.range(next.clone()).await?;
            let last = page.entries.last().cloned();
            for entry in self.converter.entries(resource, page.entries).await? {
                if !filter.matches(resource, &entry)? {
                    continue;
                }
                if limit == Some(entries.len()) {
                    let token = Some(token(prefix, entries.last(), page.revision));
                    return Ok(Listed { entries, revision: page.revision, token, remaining: None });
                }
                entries.push(entry);
            }
            match last.filter(|_| page.more) {
                Some(last) => next = next.after(&last.key).at(page.revision),
                None => return Ok(Listed { entries, revision: page.revision, token: None, remaining: None }),
            }
        }
    }

    /// Starts a watch.
    pub(crate) async fn watch(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        filter: Filter,
        form: Form,
        options: &ListOptions,
    ) -> Result<Watcher, StatusError> {
        let from = match revision(&options.resource_version).map_err(StatusError::untyped)? {
            Some(revision) if revision > 0 && options.send_initial_events != Some(true) => {
                self.wait_for(revision).await?;
                From::Revision(revision)
            }
            asked => {
                let prefix = resource.prefix_in(namespace);
                let mut range = Range::prefix(&prefix);
                if let Some(revision) = asked {
                    self.wait_for(revision).await?;
                    range = self.known().map_or(range.clone(), |known| range.at(known));
                }
                let wanted = options.send_initial_events != Some(false);
                let limit = if wanted { None } else { Some(0) };
                let listed = match self.page(resource, &prefix, range, &filter, limit).await {
                    Ok(listed) => listed,
                    Err(PageError::Storage(error)) => return Err(error.into()),
                    Err(PageError::StatusError(failure)) => return Err(failure),
                };
                let marked = options.send_initial_events == Some(true) && options.allow_watch_bookmarks;
                From::State { objects: VecDeque::from(listed.entries), at: listed.revision, marked }
            }
        };
        let prefix = match filter.name().filter(|_| namespace.is_some() || !resource.namespaced) {
            Some(name) => resource.key(namespace, name),
            None => resource.prefix_in(namespace),
        };
        let lasting = match options.timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok()) {
            Some(seconds) => Duration::from_secs(seconds),
            // Not all at once: those who reconnect after an hour would do so together.
            None => Duration::from_secs(fastrand::u64(1_800..3_600)),
        };
        let asked = Asked {
            resource: Arc::clone(resource),
            prefix,
            filter,
            form,
            bookmarks: options.allow_watch_bookmarks,
            lasting,
        };
        Watcher::start(
            &*self.storage,
            &self.converter,
            asked,
            from,
            self.stopping().at_share(random::share()),
        )
        .await
    }
}

/// The revision that a version stands for; `None` if it is not given. The error is what is wrong with it.
pub(crate) fn revision(version: &str) -> Result<Option<Revision>, String> {
    if version.is_empty() {
        return Ok(None);
    }
    meta::version_number(version)
        .map(Some)
        .map_err(|why| FieldError::invalid(&Path::root().child("resourceVersion"), version, why).to_string())
}

/// The revision that one object is asked for at least at.
pub(crate) fn revision_of_one(resource: &Resource, version: &str) -> Result<Option<Revision>, StatusError> {
    revision(version).map_err(|why| match resource.plural.as_str() {
        // kube-apiserver has no cache of events, and words errors as where there is none.
        "events" if resource.builtin_kind().is_some() => {
            StatusError::bad_request(format!("invalid resource version: {why}"))
        }
        _ => StatusError::untyped(why),
    })
}

/// What keeps a page from being read.
enum PageError {
    Storage(Error),
    StatusError(StatusError),
}

impl std::convert::From<Error> for PageError {
    fn from(error: Error) -> Self {
        Self::Storage(error)
    }
}

impl std::convert::From<StatusError> for PageError {
    fn from(failure: StatusError) -> Self {
        Self::StatusError(failure)
    }
}

/// The token that leads to what comes after an entry.
fn token(prefix: &str, last: Option<&Arc<Entry>>, revision: Revision) -> String {
    let after = last.and_then(|entry| entry.key.strip_prefix(prefix)).unwrap_or_default();
    Token { after: after.into(), revision: Some(revision) }.encode()
}

/// The answer to a client whose list has been forgotten, with a token to go on in the present.
fn expired(options: &ListOptions, token: Option<Token>, oldest: Revision) -> StatusError {
    let Some(token) = token else {
        let asked = &options.resource_version;
        return StatusError::expired(format!(
            "The resourceVersion for the provided list is too old: {asked} ({oldest})."
        ));
    };
    let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list \
        without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. \
        Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted \
        between the time the first chunk was returned and now may show up in the list.";
    let mut failure = StatusError::expired(message);
    failure.token = Some(Token { revision: None, ..token }.encode());
    failure
}

impl Listed {
    /// The metadata of the list.
    pub(crate) fn metadata(&self, resource: &Resource) -> Value {
        let mut metadata = Map::new();
        if resource.builtin_kind().is_none() {
            metadata.insert("continue".into(), "".into());
        }
        metadata.insert("resourceVersion".into(), self.revision.to_string().into());
        if let Some(token) = &self.token {
            metadata.insert("continue".into(), token.as_str().into());
            if let Some(remaining) = self.remaining {
                metadata.insert("remainingItemCount".into(), remaining.into());
            }
        }
        metadata.into()
    }
}
