//! What every namespace is given: an account for its programs, and the certificate authority that they trust.

use std::sync::Arc;

use futures_util::{Stream, StreamExt, TryStreamExt, future, stream};
use serde_json::{Value, json};
use watchkeeper_storage::{Error, Range, Storage, Update, Watch};

use crate::following::until_closed;
use crate::object::meta;
use crate::resource::ObjectRef;
use crate::resource::prefix;
use crate::server::Server;
use crate::status_error::StatusError;
use crate::write::Subresource;

/// In how many namespaces something is put at the same time.
const AT_ONCE: usize = 16;

/// The annotation that says what the published certificates are for.
const DESCRIPTION: &str = "kubernetes.io/description";

/// An object that every namespace has.
#[derive(Clone, Debug)]
pub(super) enum Provided {
    /// The account that programs have unless they ask for another.
    Account,
    /// The certificates by which programs know the server, in PEM.
    Certificates(String),
}

impl Provided {
    /// What the task is called that provides it.
    pub(super) fn task(&self) -> &'static str {
        match self {
            Self::Account => "service-accounts",
            Self::Certificates(_) => "root-ca-certificates",
        }
    }

    fn plural(&self) -> &'static str {
        match self {
            Self::Account => "serviceaccounts",
            Self::Certificates(_) => "configmaps",
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Account => "default",
            Self::Certificates(_) => "kube-root-ca.crt",
        }
    }

    /// The object, as it is made.
    fn object(&self) -> Value {
        let mut object = match self {
            Self::Account => json!({"apiVersion": "v1", "kind": "ServiceAccount"}),
            Self::Certificates(_) => json!({"apiVersion": "v1", "kind": "ConfigMap"}),
        };
        object["metadata"] = json!({"name": self.name()});
        self.correct(&mut object);
        object
    }

    /// Puts back what somebody has changed and may not.
    fn correct(&self, object: &mut Value) {
        let Self::Certificates(certificates) = self else { return };
        object["data"] = json!({"ca.crt": certificates});
        let annotations = &mut object["metadata"]["annotations"];
        if annotations[DESCRIPTION].as_str().is_none_or(str::is_empty) {
            annotations[DESCRIPTION] =
                "How programs in this cluster know the API server when they connect to it \
                by the usual names of the Service default/kubernetes. No other use is promised."
                    .into();
        }
    }
}

/// Sees to it that every namespace has it, until the storage is closed.
pub(super) async fn run(server: Arc<Server>, provided: Provided) {
    until_closed("the namespaces", || follow(&server, &provided)).await;
}

async fn follow(server: &Server, provided: &Provided) -> Result<(), Error> {
    let namespaces = prefix("", "namespaces");
    let page = server.storage.range(Range::prefix(&namespaces)).await?;
    let names = page.entries.iter().filter_map(|entry| entry.key.strip_prefix(namespaces.as_str()));
    stream::iter(names).for_each_concurrent(AT_ONCE, |name| ensure(server, provided, name.to_owned())).await;
    let objects = prefix("", provided.plural());
    let appearing = keys(server.storage.watch(&namespaces, page.revision).await?);
    let changing = keys(server.storage.watch(&objects, page.revision).await?);
    let appearing =
        appearing.map(|key| key.map(|key| key.strip_prefix(namespaces.as_str()).map(str::to_owned)));
    let changing = changing.map(|key| {
        key.map(|key| {
            let (namespace, name) = key.strip_prefix(objects.as_str())?.split_once('/')?;
            (name == provided.name()).then(|| namespace.to_owned())
        })
    });
    let give = |name: Option<String>| async {
        if let Some(name) = name {
            ensure(server, provided, name).await;
        }
        Ok(())
    };
    stream::select(appearing, changing).try_for_each_concurrent(AT_ONCE, give).await
}

/// The keys of what changes.
fn keys(watch: Watch) -> impl Stream<Item = Result<String, Error>> + Unpin {
    Box::pin(watch.filter_map(|update| {
        future::ready(match update {
            Ok(Update::Event(event)) => {
                event.entry().or(event.previous()).map(|entry| Ok(entry.key.to_string()))
            }
            Ok(Update::Progress(_)) => None,
            Err(error) => Some(Err(error)),
        })
    }))
}

/// Makes it, or puts back what it was.
async fn ensure(server: &Server, provided: &Provided, namespace: String) {
    let ensured = try_ensure(server, provided, &namespace);
    match server.supervisor.caught_async(provided.task(), &namespace, ensured).await {
        Some(Err(failure)) if failure.code >= 500 => {
            let name = provided.name();
            tracing::warn!(%namespace, name, failure = %failure.message, "default object of a namespace could not be created");
        }
        // It is there, or the namespace is on its way out.
        _ => {}
    }
}

async fn try_ensure(server: &Server, provided: &Provided, namespace: &str) -> Result<(), StatusError> {
    let plural = provided.plural();
    let Some(resource) = server.registry().find("", "v1", plural) else { return Ok(()) };
    let place = ObjectRef { resource, namespace: Some(namespace.into()), name: provided.name().into() };
    let Some(entry) = server.storage.get(&place.key(), None).await?.entry else {
        return server.writer.create("", "v1", plural, Some(namespace), provided.object()).await.map(drop);
    };
    let object = place.resource.read(&entry)?;
    let mut wanted = object.clone();
    provided.correct(&mut wanted);
    if wanted == object || meta::is_deleting(&object) {
        return Ok(());
    }
    server.writer.modify(&place, Subresource::Main, |object| provided.correct(object)).await
}
