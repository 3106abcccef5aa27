//! The settings of a Kubernetes source, and what was learned about the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use watchkeeper_connection::Connection;
use watchkeeper_core::{Error, Freshness, Projection};

use super::kinds::Kinds;
use super::page::Pages;
use super::request::Target;

/// The page size of client-go: a compromise that servers are tuned for.
const PAGE_SIZE: u32 = 500;

/// After this time a server that refused to stream a list is asked again: servers get upgraded.
const STREAMING_RETRY_DELAY: Duration = Duration::from_secs(600);

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) connection: Connection,
    pub(super) name: String,
    /// Whether the kind says where its objects are.
    pub(super) has_plural: bool,
    pub(super) target: Target,
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) managed_fields: bool,
    pub(super) dropped: Vec<String>,
    pub(super) streaming: bool,
    pub(super) page_size: Option<u32>,
    pub(super) max_object_bytes: usize,
    pub(super) learned: Arc<Learned>,
}

/// What the server has shown of itself in earlier feeds.
#[derive(Debug, Default)]
pub(super) struct Learned {
    refused_to_stream: Mutex<Option<Instant>>,
    pages_any_version: AtomicBool,
}

impl Learned {
    /// A list at any version came in pages: this server has no watch cache to spare.
    pub(super) fn pages_any_version(&self) {
        self.pages_any_version.store(true, Ordering::Relaxed);
    }
}

impl Settings {
    /// Everything that decides what is delivered, as text.
    pub(super) fn identity(&self) -> String {
        let Self { target, managed_fields, dropped, max_object_bytes, .. } = self;
        format!("{target:?} {managed_fields} {dropped:?} {max_object_bytes}")
    }

    /// Why nothing can be asked for, if the kind does not say where its objects are.
    pub(super) fn refused(&self) -> Option<Error> {
        (!self.has_plural).then(|| {
            Error::Fatal(format!(
                "{} names no plural, so its objects are at no path: for a kind that is known at run time only, call \
                 DynamicKind::source or Kubernetes::resource",
                self.kind
            ))
        })
    }

    /// Whether to ask for the next list as a stream.
    pub(super) fn streams_lists(&self) -> bool {
        let refused = self.learned.refused_to_stream.lock().unwrap_or_else(PoisonError::into_inner);
        self.streaming && refused.is_none_or(|at| at.elapsed() >= STREAMING_RETRY_DELAY)
    }

    /// A streamed list was refused. If it was because of what we asked for, we do not ask for it again soon.
    pub(super) fn streaming_failed(&self, error: &Error) {
        tracing::debug!(source = self.name, %error, "streamed list refused, paging instead");
        if matches!(error, Error::Fatal(_)) {
            let mut refused = self.learned.refused_to_stream.lock().unwrap_or_else(PoisonError::into_inner);
            *refused = Some(Instant::now());
        }
    }

    /// A list to be taken in pages, or in one if that is better.
    pub(super) fn pages(&self, freshness: Freshness) -> Pages {
        let limit = self.page_limit(&freshness);
        Pages::new(freshness, limit)
    }

    /// How many items a page of a list may have; `None` for all.
    ///
    /// A list at a given version is served from memory only if it is not paged, so it is not, unless the server
    /// has shown that it has no such memory or the size was set on purpose.
    fn page_limit(&self, freshness: &Freshness) -> Option<u32> {
        let from_memory = match freshness {
            Freshness::NotOlderThan(version) => !version.is_empty() && version.number() != Some(0),
            _ => false,
        };
        match self.page_size {
            Some(size) => (size > 0).then_some(size),
            None if from_memory && !self.learned.pages_any_version.load(Ordering::Relaxed) => None,
            None => Some(PAGE_SIZE),
        }
    }

    /// What is kept of the objects.
    pub(super) fn kinds(&self) -> Kinds {
        let everything = if self.managed_fields { Projection::everything() } else { Projection::default() };
        let projection = self.dropped.iter().fold(everything, |projection, pointer| projection.drop(pointer));
        if !self.target.metadata_only {
            return Kinds::one(projection.complete_kind(&self.api_version, &self.kind));
        }
        let projection = projection.metadata_only();
        Kinds::either(
            projection.clone().expect_kind("meta.k8s.io/v1", "PartialObjectMetadata"),
            projection.complete_kind(&self.api_version, &self.kind),
        )
    }
}
