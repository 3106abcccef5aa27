//! A list of items behind a URL, as a source.

mod answer;
mod credentials;
mod difference;
mod feed;
mod items;
mod listing;
mod pace;
mod settings;
mod sse;
mod subscription;
mod transport;
mod validators;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use watchkeeper_core::{Capabilities, Feed, Follow, Order, Source, Start};

pub use answer::retry_after;
pub use settings::{Pages, Waiting, shown};
use settings::{SHRINK, Settings};

/// The items of a JSON document at a URL.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_sources::http::{Http, Pages, Waiting};
///
/// // {"items": [{"id": 7, ...}, ...]}, asked for every ten seconds.
/// let orders = Http::get("https://shop.example.com/orders.json")
///     .items("/items")
///     .key("/id")
///     .interval(Duration::from_secs(10))
///     .bearer_file("/var/run/secrets/shop/token");
/// // Consul: answers when something has changed.
/// let services = Http::get("http://127.0.0.1:8500/v1/catalog/services")
///     .waiting(Waiting::Index { header: "X-Consul-Index".into(), parameter: "index".into(), wait: Duration::from_secs(300) });
/// // Pages that link to the next one, and a stream of events that says when to look.
/// let users = Http::get("https://api.example.com/users").key("/login").pages(Pages::Link).events("https://api.example.com/events");
/// ```
///
/// # What items are called
///
/// By `metadata.namespace` and `metadata.name`, or by what [`key`](Self::key) points to. If what [`items`](Self::items) points to is an
/// object rather than a list, its members are the items and their names are the keys.
///
/// # How it works
///
/// It asks again after each [`interval`](Self::interval), give or take a tenth, with the validators that the service gave (`ETag`,
/// `Last-Modified`), and compares what it gets with what it told before. With [`waiting`](Self::waiting), the service answers when there is
/// something new. With [`events`](Self::events), it also asks whenever an event comes.
///
/// # What it promises beyond [`Source`]
///
/// - Nothing but a complete answer with status 200 says what there is. `404` is [`Missing`](watchkeeper_core::Error::Missing), `401` and
///   `403` are [`Denied`](watchkeeper_core::Error::Denied), `429` and `Retry-After` are
///   [`Throttled`](watchkeeper_core::Error::Throttled), and a redirection, a body that is cut off or that is not JSON is a failure. None of them
///   deletes anything.
/// - Validators are not trusted further than they go: a `Last-Modified` of the same two seconds as the answer is not used, behind a weak `ETag`
///   a change may hide for ten answers at most, and an answer older than one that was seen is passed over.
/// - Pages that are not known to be of one moment are read until they come out the same twice.
/// - Credentials are read from their files for every request, and are in no error and no log. Neither is the query of a URL.
///
/// # What it does not do
///
/// It does not retry. That is the reader's part, which knows how often it has tried.
#[derive(Clone, Debug)]
pub struct Http {
    settings: Arc<Settings>,
}

impl Http {
    /// The items at this URL. A URL that cannot be used is an error of the feed.
    pub fn get(url: &str) -> Self {
        Self { settings: Arc::new(Settings::new(url)) }
    }

    /// Sets where the items are in the body, as a JSON pointer. Default: the body itself.
    #[must_use]
    pub fn items(self, pointer: &str) -> Self {
        self.with(|settings| settings.items = pointer.into())
    }

    /// Sets where an item has its name, as a JSON pointer into the item. The value has to be a text or a number.
    #[must_use]
    pub fn key(self, pointer: &str) -> Self {
        self.with(|settings| settings.key = Some(pointer.into()))
    }

    /// Sets where an item has its namespace, as a JSON pointer into the item, if it has a [`key`](Self::key) too.
    #[must_use]
    pub fn namespace(self, pointer: &str) -> Self {
        self.with(|settings| settings.namespace = Some(pointer.into()))
    }

    /// Sets the interval of requests. Default: 30 seconds.
    #[must_use]
    pub fn interval(self, interval: Duration) -> Self {
        self.with(|settings| settings.interval = interval)
    }

    /// Sets how the list is divided into pages. Default: not at all.
    #[must_use]
    pub fn pages(self, pages: Pages) -> Self {
        self.with(|settings| settings.pages = pages)
    }

    /// Sets how the service is asked to answer only when something has changed. Default: not at all.
    #[must_use]
    pub fn waiting(self, waiting: Waiting) -> Self {
        self.with(|settings| settings.waiting = Some(waiting))
    }

    /// Sets the URL of a stream of server-sent events. Each event causes a request of the list; its content does not matter.
    #[must_use]
    pub fn events(self, url: &str) -> Self {
        self.with(|settings| settings.events = Some(url.into()))
    }

    /// Sends a header with every request.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        self.with(|settings| settings.headers.push((name.into(), value.into())))
    }

    /// Sends a header whose value is in a file.
    #[must_use]
    pub fn header_file(self, name: &str, path: impl Into<PathBuf>) -> Self {
        self.with(|settings| settings.header_files.push((name.into(), String::new(), path.into())))
    }

    /// Sends the token in a file as `Authorization: Bearer`.
    #[must_use]
    pub fn bearer_file(self, path: impl Into<PathBuf>) -> Self {
        self.with(|settings| {
            settings.header_files.push(("authorization".into(), "Bearer ".into(), path.into()));
        })
    }

    /// Trusts the certificates in a PEM file, and no others. Default: those that the system trusts.
    #[must_use]
    pub fn ca_file(self, path: impl Into<PathBuf>) -> Self {
        self.with(|settings| settings.ca_file = Some(path.into()))
    }

    /// Sets the timeout of a request, waiting of [`waiting`](Self::waiting) not counted. Default: 30 seconds.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|settings| settings.timeout = timeout)
    }

    /// Sets the maximum size of a body. Default: 64 MiB.
    #[must_use]
    pub fn max_body_bytes(self, bytes: usize) -> Self {
        self.with(|settings| settings.max_body_bytes = bytes)
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl Source for Http {
    /// The URL, without its query and without credentials.
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn identity(&self) -> String {
        self.settings.identity()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Order::Opaque, Follow::Hints).confirm_shrink(SHRINK)
    }

    fn open(&self, start: Start) -> Feed {
        feed::open(Arc::clone(&self.settings), start)
    }
}
