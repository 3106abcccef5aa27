//! Builds the URIs of requests. Sends nothing.

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use http::{HeaderValue, Request};
use watchkeeper_core::{Error, Freshness, Version};
use watchkeeper_wire::{ResourcePath, Uri};

const JSON: &str = "application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json";
const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json";

/// Which objects: a kind, in one namespace or in all, narrowed by selectors.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) resource: ResourcePath,
    pub(super) namespace: Option<String>,
    pub(super) labels: Option<String>,
    pub(super) fields: Option<String>,
    pub(super) metadata_only: bool,
}

/// Where a page of a list comes from.
#[derive(Clone, Debug)]
pub(super) enum PageStart {
    /// It is the first one.
    Fresh(Freshness),
    /// It follows the page that ended with this token.
    Continue(String),
}

impl Target {
    pub(super) fn path(&self) -> String {
        self.resource.collection(self.namespace.as_deref())
    }

    /// One page of a list; all of it if there is no limit.
    pub(super) fn list(&self, start: &PageStart, limit: Option<u32>) -> Result<Request<Bytes>, Error> {
        let mut query = self.selection();
        if let Some(limit) = limit {
            query.pair("limit", &limit.to_string());
        }
        match start {
            PageStart::Continue(token) => query.pair("continue", token),
            PageStart::Fresh(freshness) => {
                if let Some(version) = resource_version(freshness) {
                    query.pair("resourceVersion", &version);
                    // Together with a limit the default would be "exactly this version".
                    if version != "0" {
                        query.pair("resourceVersionMatch", "NotOlderThan");
                    }
                }
            }
        }
        self.request(query, if self.metadata_only { METADATA_LIST } else { JSON })
    }

    /// The changes after a version.
    pub(super) fn watch(&self, after: &Version, timeout_seconds: u64) -> Result<Request<Bytes>, Error> {
        let mut query = self.following(timeout_seconds);
        query.pair("resourceVersion", &after.to_string());
        self.watching(query)
    }

    /// All objects as entries of a watch, a bookmark that says so, then the changes.
    pub(super) fn watch_list(
        &self,
        freshness: &Freshness,
        timeout_seconds: u64,
    ) -> Result<Request<Bytes>, Error> {
        let mut query = self.following(timeout_seconds);
        query.pair("sendInitialEvents", "true");
        query.pair("resourceVersionMatch", "NotOlderThan");
        if let Some(version) = resource_version(freshness) {
            query.pair("resourceVersion", &version);
        }
        self.watching(query)
    }

    fn selection(&self) -> Uri {
        let mut query = Uri::new(self.path());
        if let Some(labels) = &self.labels {
            query.pair("labelSelector", labels);
        }
        if let Some(fields) = &self.fields {
            query.pair("fieldSelector", fields);
        }
        query
    }

    fn following(&self, timeout_seconds: u64) -> Uri {
        let mut query = self.selection();
        query.pair("watch", "1");
        query.pair("allowWatchBookmarks", "true");
        query.pair("timeoutSeconds", &timeout_seconds.to_string());
        query
    }

    fn watching(&self, query: Uri) -> Result<Request<Bytes>, Error> {
        let mut request = self.request(query, if self.metadata_only { METADATA } else { JSON })?;
        // Compression holds entries back until a block is full, and newer servers start a new gzip member for each
        // flush, which the client's decoder takes as the end.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(request)
    }

    fn request(&self, uri: Uri, accept: &'static str) -> Result<Request<Bytes>, Error> {
        Request::get(uri.as_str())
            .header(ACCEPT, accept)
            .body(Bytes::new())
            .map_err(|error| Error::Fatal(format!("{} does not make a request: {error}", self.path())))
    }
}

/// The version to ask for; `None` asks for the newest.
fn resource_version(freshness: &Freshness) -> Option<String> {
    match freshness {
        Freshness::Any => Some("0".into()),
        Freshness::NotOlderThan(version) if !version.is_empty() => Some(version.to_string()),
        // Not older than an unknown version: only the newest is sure to be that.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> Target {
        Target {
            resource: ResourcePath::new("", "v1", "pods"),
            namespace: None,
            labels: None,
            fields: None,
            metadata_only: false,
        }
    }

    fn uri(request: Result<Request<Bytes>, Error>) -> String {
        request.unwrap().uri().to_string()
    }

    #[test]
    fn selectors_and_namespaces_cannot_break_out_of_their_place() {
        let target = Target {
            namespace: Some("a/../b?".into()),
            labels: Some("app in (a, b)&watch=1".into()),
            fields: Some("metadata.name=ü".into()),
            ..pods()
        };
        assert_eq!(
            uri(target.list(&PageStart::Fresh(Freshness::Newest), None)),
            "/api/v1/namespaces/a%2F..%2Fb%3F/pods?labelSelector=app%20in%20%28a%2C%20b%29%26watch%3D1\
             &fieldSelector=metadata.name%3D%C3%BC"
        );
    }

    #[test]
    fn a_list_says_how_fresh_it_has_to_be() {
        let list = |freshness, limit| uri(pods().list(&PageStart::Fresh(freshness), limit));
        let seven = || Freshness::NotOlderThan(Version::from(7));
        assert_eq!(list(Freshness::Any, Some(500)), "/api/v1/pods?limit=500&resourceVersion=0");
        assert_eq!(list(Freshness::Newest, Some(500)), "/api/v1/pods?limit=500");
        assert_eq!(list(seven(), None), "/api/v1/pods?resourceVersion=7&resourceVersionMatch=NotOlderThan");
        assert_eq!(list(Freshness::NotOlderThan(Version::from("")), None), "/api/v1/pods");
        assert_eq!(
            uri(pods().list(&PageStart::Continue("a+/=".into()), Some(2))),
            "/api/v1/pods?limit=2&continue=a%2B%2F%3D"
        );
    }

    #[test]
    fn a_watch_asks_for_bookmarks_and_an_end() {
        assert_eq!(
            uri(pods().watch(&Version::from(7), 300)),
            "/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=7"
        );
        assert_eq!(
            uri(pods().watch_list(&Freshness::Any, 300)),
            "/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&sendInitialEvents=true\
             &resourceVersionMatch=NotOlderThan&resourceVersion=0"
        );
        assert!(!uri(pods().watch_list(&Freshness::Newest, 300)).contains("resourceVersion="));
    }
}
