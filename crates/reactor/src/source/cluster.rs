//! Kinds of a cluster as sources.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use kube_core::discovery::ApiResource;
use parking_lot::Mutex;
use watchkeeper_client::{Client, DynamicKind, Error as ClientError};
use watchkeeper_core::{Capabilities, Error, Feed, Follow, Order, Source, Start};
use watchkeeper_sources::kubernetes::Kubernetes;

use crate::node::Members;

/// A kind that a reactor's file names.
#[derive(Clone, Debug)]
pub(crate) struct KindOrigin {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    namespace: Option<String>,
    labels: Option<String>,
    fields: Option<String>,
    metadata_only: bool,
}

pub(super) fn read(members: &Members<'_>) -> Option<KindOrigin> {
    if let Some(node) = members.get("settings") {
        node.wrong("is for sources with a url, not with a kind");
    }
    let text = |name: &str| match members.get(name) {
        Some(node) => node.text().map(|text| Some(text.to_owned())),
        None => Some(None),
    };
    let required = |name: &str| members.require(name).and_then(|node| node.text().map(str::to_owned));
    let (api_version, kind) = (required("apiVersion"), required("kind"));
    let (namespace, labels, fields) = (text("namespace"), text("labels"), text("fields"));
    Some(KindOrigin {
        api_version: api_version?,
        kind: kind?,
        namespace: namespace?,
        labels: labels?,
        fields: fields?,
        metadata_only: false,
    })
}

/// A kind of a cluster. Where the cluster has it is asked when it is first read, so that a kind that is not there yet is waited for.
pub(crate) struct ClusterKind {
    name: String,
    inner: Arc<Inner>,
}

struct Inner {
    origin: KindOrigin,
    client: Client,
    found: Mutex<Option<Kubernetes>>,
}

impl ClusterKind {
    pub(crate) fn new(origin: KindOrigin, client: Client) -> Self {
        let place = origin.namespace.as_ref().map(|namespace| format!(" in {namespace}")).unwrap_or_default();
        let name = format!("{} of {}{place}", origin.kind, origin.api_version);
        Self { name, inner: Arc::new(Inner { origin, client, found: Mutex::default() }) }
    }
}

impl ClusterKind {
    /// The metadata of the objects with these labels.
    pub(crate) fn children(api_version: &str, kind: &str, labels: &str, client: Client) -> Self {
        let origin = KindOrigin {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            labels: Some(labels.to_owned()),
            fields: None,
            metadata_only: true,
        };
        Self::new(origin, client)
    }
}

impl Inner {
    async fn source(&self) -> Result<Kubernetes, Error> {
        if let Some(found) = &*self.found.lock() {
            return Ok(found.clone());
        }
        let KindOrigin { api_version, kind, namespace, labels, fields, metadata_only } = &self.origin;
        let kind = self.client.discover(api_version, kind).await.map_err(classified)?;
        let mut source = Kubernetes::resource(self.client.connection().clone(), &resource(&kind));
        if let Some(namespace) = namespace.as_ref().filter(|_| kind.is_namespaced()) {
            source = source.namespace(namespace);
        }
        if let Some(labels) = labels {
            source = source.labels(labels);
        }
        if let Some(fields) = fields {
            source = source.fields(fields);
        }
        if *metadata_only {
            source = source.metadata_only();
        }
        *self.found.lock() = Some(source.clone());
        Ok(source)
    }
}

fn resource(kind: &DynamicKind) -> ApiResource {
    ApiResource {
        group: kind.group().to_owned(),
        version: kind.version().to_owned(),
        api_version: kind.api_version(),
        kind: kind.kind().to_owned(),
        plural: kind.plural().to_owned(),
    }
}

/// What a refusal of the question where a kind is means for those who want to watch it.
fn classified(error: ClientError) -> Error {
    match error {
        ClientError::NotFound { .. } => Error::Missing(format!("{error} in the cluster")),
        ClientError::Denied { .. } => Error::Denied(error.to_string()),
        ClientError::Throttled { after, ref message, .. } => {
            Error::Throttled { after, reason: message.clone() }
        }
        other => Error::Unavailable { answered: false, reason: other.to_string() },
    }
}

impl Source for ClusterKind {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Order::Total, Follow::Log).status_write_back(true)
    }

    fn open(&self, start: Start) -> Feed {
        let inner = Arc::clone(&self.inner);
        let feed = stream::once(async move {
            match inner.source().await {
                Ok(source) => source.open(start),
                Err(error) => Box::pin(stream::once(async { Err(error) })) as Feed,
            }
        });
        Box::pin(feed.flatten())
    }
}
