//! A kind of a Kubernetes API server as a source.

mod answer;
mod entry;
mod feed;
mod frames;
mod initial;
mod kinds;
mod list;
mod page;
mod pulse;
mod request;
mod settings;
mod skip;
mod status;
mod watch;
mod write_status;

use std::sync::Arc;

use futures_util::future::ready;
use futures_util::stream;
use kube_core::Resource;
use kube_core::discovery::ApiResource;
use watchkeeper_core::{Capabilities, Feed, Follow, ObjectStatus, Order, Source, Start, StatusWritten};
use watchkeeper_wire::ResourcePath;

use request::Target;
use settings::Settings;
pub use watchkeeper_connection::{ConnectError, Connection};

/// The largest object that is read unless told otherwise. etcd takes no object beyond 1.5 MiB.
const MAX_OBJECT_BYTES: usize = 8 * 1024 * 1024;

/// A source of the objects of one kind, in one namespace or in all, over the Kubernetes API.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_sources::kubernetes::{ConnectError, Connection, Kubernetes};
/// # async fn example() -> Result<(), ConnectError> {
/// let connection = Connection::infer().await?;
/// let web = Kubernetes::of::<Pod>(connection).namespace("shop").labels("app=web");
/// # Ok(()) }
/// ```
///
/// # How it works
///
/// A snapshot is asked for as a **streamed list** first (`sendInitialEvents`): the objects come as entries of a watch, a
/// bookmark says that this was all, and the same stream goes on as the log. A server that does not know this, or that
/// does not get to the bookmark, is asked for a **list in pages** instead, in the same feed: another
/// [`Begin`](watchkeeper_core::Event::Begin) says that the snapshot starts anew. Items are delivered while the bytes
/// arrive; what is held is one object and one chunk, never a page.
///
/// The log is a **watch** from the version of the snapshot or the one to resume from. It asks for bookmarks and for an
/// end after five to ten minutes. A connection that is silent for longer than that, or for much longer than the server's
/// bookmarks have been apart, is taken for dead. A watch is never begun at version `""` or `"0"`, where old states would
/// come disguised as new ones: resuming from there is [`Expired`](watchkeeper_core::Error::Expired).
///
/// # What it promises beyond [`Source`]
///
/// - Versions are in [total order](Order::Total). A snapshot that should be not older than a version and is, is
///   `Expired`.
/// - A body that ends too early, is not a list, or does not say its version never completes a snapshot.
/// - A streamed list in which something comes that cannot be identified is followed by a list in pages, which may be
///   able to name it.
/// - Before the end of a streamed list, an object that goes away is told as a
///   [`Delete`](watchkeeper_core::Event::Delete) without a position.
/// - An object beyond [`max_object_bytes`](Self::max_object_bytes) is rejected, with its key if its first bytes tell
///   it, and is never held in memory.
/// - Errors name the request and what the server said, not the query and not the content of objects.
///
/// # What it does not do
///
/// It does not retry. That is the reader's part, which knows how often it has tried. A
/// [`Connection`] does not retry either.
#[derive(Clone)]
pub struct Kubernetes {
    settings: Arc<Settings>,
}

impl Kubernetes {
    /// A source of all objects of a kind that is known at compile time.
    ///
    /// A type that does not name a plural is refused by every feed, without a request: objects of a kind that is known at run time only
    /// are those of a [`resource`](Self::resource).
    pub fn of<K: Resource<DynamicType = ()>>(connection: impl Into<Connection>) -> Self {
        Self::resource(connection, &ApiResource::erase::<K>(&()))
    }

    /// A source of all objects of a kind that is known at run time only.
    pub fn resource(connection: impl Into<Connection>, resource: &ApiResource) -> Self {
        let ApiResource { group, version, api_version, kind, plural } = resource;
        let name = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
        let target = Target {
            resource: ResourcePath::new(group, version, plural),
            namespace: None,
            labels: None,
            fields: None,
            metadata_only: false,
        };
        let settings = Settings {
            connection: connection.into(),
            name,
            has_plural: !plural.is_empty(),
            target,
            api_version: api_version.clone(),
            kind: kind.clone(),
            managed_fields: false,
            dropped: Vec::new(),
            streaming: true,
            page_size: None,
            max_object_bytes: MAX_OBJECT_BYTES,
            learned: Arc::default(),
        };
        Self { settings: Arc::new(settings) }
    }

    /// Limits the source to a namespace.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        self.with(|settings| {
            settings.name = format!("{} in {namespace}", settings.name);
            settings.target.namespace = Some(namespace.into());
        })
    }

    /// Limits the source to objects with these labels, in the syntax of a label selector: `app=web,tier!=cache`.
    #[must_use]
    pub fn labels(self, selector: &str) -> Self {
        self.with(|settings| settings.target.labels = Some(selector.into()))
    }

    /// Limits the source to objects with these fields, in the syntax of a field selector: `metadata.name=a`.
    #[must_use]
    pub fn fields(self, selector: &str) -> Self {
        self.with(|settings| settings.target.fields = Some(selector.into()))
    }

    /// Watches only the metadata of the objects. The server is asked to send nothing else; the rest is dropped if it does.
    #[must_use]
    pub fn metadata_only(self) -> Self {
        self.with(|settings| settings.target.metadata_only = true)
    }

    /// Keeps `metadata.managedFields`, a third of a typical object that few readers look at.
    #[must_use]
    pub fn keep_managed_fields(self) -> Self {
        self.with(|settings| settings.managed_fields = true)
    }

    /// Drops a field, named by a JSON pointer, while the objects are read. Lists on the way are passed through:
    /// `/spec/containers/env`.
    #[must_use]
    pub fn drop(self, pointer: &str) -> Self {
        self.with(|settings| settings.dropped.push(pointer.into()))
    }

    /// Takes lists in pages of this size always, or with 0 never. Without it pages have 500 objects and are used
    /// where they do not cost the server more than a whole list.
    #[must_use]
    pub fn page_size(self, objects: u32) -> Self {
        self.with(|settings| settings.page_size = Some(objects))
    }

    /// Whether to ask for streamed lists. On unless turned off.
    #[must_use]
    pub fn streaming(self, streaming: bool) -> Self {
        self.with(|settings| settings.streaming = streaming)
    }

    /// Sets the maximum size of an object as the server sends it. Default: 8 MiB.
    #[must_use]
    pub fn max_object_bytes(self, bytes: usize) -> Self {
        self.with(|settings| settings.max_object_bytes = bytes.max(1))
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        let settings = Arc::make_mut(&mut self.settings);
        // What was learned of another question's answers does not hold for this one.
        settings.learned = Arc::default();
        change(settings);
        self
    }
}

impl Source for Kubernetes {
    fn name(&self) -> &str {
        &self.settings.name
    }

    /// Says everything that decides what is delivered. The server is not among it: who shares informers keeps those of
    /// different servers apart.
    fn identity(&self) -> String {
        self.settings.identity()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Order::Total, Follow::Log).status_write_back(true)
    }

    fn open(&self, start: Start) -> Feed {
        if let Some(refused) = self.settings.refused() {
            return Box::pin(stream::once(ready(Err(refused))));
        }
        feed::open(self.settings.clone(), start)
    }

    fn write_status(&self, status: ObjectStatus) -> StatusWritten {
        let settings = self.settings.clone();
        Box::pin(async move { write_status::write(&settings, status).await })
    }
}

impl std::fmt::Debug for Kubernetes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kubernetes").field("target", &self.settings.target).finish_non_exhaustive()
    }
}
