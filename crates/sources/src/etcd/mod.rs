//! The keys of etcd that have a prefix, as a source.

mod auditing;
mod documents;
mod feed;
mod log;
mod names;
mod settings;
mod snapshot;
mod status;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use watchkeeper_core::{Capabilities, Feed, Follow, ObjectStatus, Order, Source, Start, StatusWritten};

use settings::{Settings, StatusKey};

/// The documents under a prefix of etcd.
///
/// ```
/// use watchkeeper_sources::etcd::Etcd;
///
/// // /routes/shop/cart has {"host": "shop.example.com", ...}
/// let routes = Etcd::prefix(["https://a:2379", "https://b:2379"], "/routes/")
///     .ca_file("/etc/etcd/ca.crt")
///     .identity_files("/etc/etcd/client.crt", "/etc/etcd/client.key")
///     .namespaced()
///     .status_prefix("/routes-status/");
/// ```
///
/// # What objects are
///
/// What follows the prefix is the name: `/routes/shop/cart` is `shop/cart`. With [`namespaced`](Self::namespaced), what comes before the
/// first slash of that is the namespace. A value is a document in JSON or YAML; one that begins with `{` or `[` has to be JSON. The version of
/// an object is the revision of its key, its uid the revision that created the key.
///
/// # How it works
///
/// It reads the keys in pages of one revision, then watches from the next one on. A connection that is lost is resumed at the revision that
/// was reached, at whichever endpoint answers. If the changes since then have been compacted, the feed is
/// [`Expired`](watchkeeper_core::Error::Expired), and the reader takes a new snapshot. Of changes elsewhere in etcd, it asks every
/// [`progress_interval`](Self::progress_interval) how far it has come, so that it can resume even if nothing changes here for long.
///
/// # What it promises beyond [`Source`]
///
/// - Versions are in [total order](Order::Total). All keys of one transaction are told before a position is.
/// - A cluster that was made anew, or restored from a backup, is noticed: nothing is resumed there.
/// - A value that cannot be read is rejected with its key, and its object stays as it was. So is one that is larger than
///   [`max_message_bytes`](Self::max_message_bytes). All others go on.
/// - A status is a key of its own, of which the feed says nothing.
///
/// # What it does not do
///
/// It does not retry. That is the reader's part. A status whose object was deleted is not deleted.
#[derive(Clone, Debug)]
pub struct Etcd {
    settings: Arc<Settings>,
}

impl Etcd {
    /// The keys with this prefix. An endpoint is `https://host:2379`; one that cannot be read is an error of the feed.
    pub fn prefix<E: Into<String>>(endpoints: impl IntoIterator<Item = E>, prefix: &str) -> Self {
        Self { settings: Arc::new(Settings::new(endpoints.into_iter().map(Into::into).collect(), prefix)) }
    }

    /// Sets the name in logs, metrics and errors. Default: `etcd:` and the prefix.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.with(|settings| settings.name = name.into())
    }

    /// Takes the part of a name before the first slash as the namespace.
    #[must_use]
    pub fn namespaced(self) -> Self {
        self.with(|settings| settings.namespaced = true)
    }

    /// Writes the status of `PREFIX/a` to `status_prefix/a`. Keys under the status prefix are no objects.
    #[must_use]
    pub fn status_prefix(self, prefix: &str) -> Self {
        self.with(|settings| settings.status = Some(StatusKey::Prefix(prefix.into())))
    }

    /// Writes the status of the key `a` to the key `a` with this at the end: `.status`. Keys that end so are no objects.
    #[must_use]
    pub fn status_suffix(self, suffix: &str) -> Self {
        self.with(|settings| settings.status = Some(StatusKey::Suffix(suffix.into())))
    }

    /// Trusts the certificates in a PEM file, and no others. Default: those that the system trusts.
    #[must_use]
    pub fn ca_file(self, path: impl Into<PathBuf>) -> Self {
        self.with(|settings| settings.client = settings.client.clone().ca_file(path))
    }

    /// Sets the client certificate and its key, both PEM files.
    #[must_use]
    pub fn identity_files(self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.with(|settings| settings.client = settings.client.clone().identity_files(certificate, key))
    }

    /// Sets the name in the certificates of the members. Default: the host of the endpoint.
    #[must_use]
    pub fn server_name(self, name: &str) -> Self {
        self.with(|settings| settings.client = settings.client.clone().server_name(name))
    }

    /// Logs in with a name, and a password that is in a file.
    #[must_use]
    pub fn password_file(self, name: &str, path: impl Into<PathBuf>) -> Self {
        self.with(|settings| settings.client = settings.client.clone().password_file(name, path))
    }

    /// Sets the timeout of a request. Default: 5 seconds.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|settings| {
            settings.timeout = timeout;
            settings.client = settings.client.clone().timeout(timeout);
        })
    }

    /// Sets the time after which a silent connection is pinged. Default: 30 seconds. etcd does not allow less than 5 unless it is told to.
    #[must_use]
    pub fn keep_alive(self, interval: Duration) -> Self {
        self.with(|settings| settings.client = settings.client.clone().keep_alive(interval))
    }

    /// Sets how often etcd is asked for its revision while nothing changes. Default: a minute.
    #[must_use]
    pub fn progress_interval(self, interval: Duration) -> Self {
        self.with(|settings| settings.progress = interval)
    }

    /// Sets how many keys are read at once. Default: 500. Fewer, if they are large.
    #[must_use]
    pub fn page_size(self, keys: u32) -> Self {
        self.with(|settings| settings.page = keys.max(1))
    }

    /// Sets the maximum size of an answer, and so of a value. Default: 16 MiB.
    #[must_use]
    pub fn max_message_bytes(self, bytes: usize) -> Self {
        self.with(|settings| settings.client = settings.client.clone().max_message_bytes(bytes))
    }

    /// Reads the keys this often while they are watched, and compares them with what the log has told. What differs once the log has come to the
    /// revision that was read is counted by [`drift`](Source::drift), and the feed is [`Expired`](watchkeeper_core::Error::Expired), so that the reader takes a new snapshot: a
    /// member whose disk was set back to an older state, under the same identity. Default: never. It costs etcd a range and this process a hundred bytes for each key. A feed that is resumed after a restart of this
    /// process knows nothing to compare with.
    #[must_use]
    pub fn check_drift(self, interval: Duration) -> Self {
        self.with(|settings| settings.check_drift = Some(interval))
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        let settings = Arc::make_mut(&mut self.settings);
        settings.cluster = Arc::default();
        settings.shared = Arc::default();
        change(settings);
        self
    }
}

impl Source for Etcd {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn identity(&self) -> String {
        self.settings.identity()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Order::Total, Follow::Log).status_write_back(self.settings.status.is_some())
    }

    fn open(&self, start: Start) -> Feed {
        feed::open(Arc::clone(&self.settings), start)
    }

    fn drift(&self) -> u64 {
        self.settings.shared.drift.load(Ordering::Relaxed)
    }

    fn write_status(&self, status: ObjectStatus) -> StatusWritten {
        let settings = Arc::clone(&self.settings);
        Box::pin(async move { status::write(&settings, status).await })
    }
}
