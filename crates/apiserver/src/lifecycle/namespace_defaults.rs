//! What every namespace is given: an account for its programs, and the certificate authority that they trust.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use watchkeeper_storage::{self as storage, Followed, Storage};

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
    let (namespaces, objects) = (prefix("", "namespaces"), prefix("", provided.plural()));
    let following = storage::follow(&*server.storage, "namespaces", &namespaces).also([objects.as_str()]);
    let lacking = following.flat_map(|followed| {
        stream::iter(match followed {
            Followed::Snapshot(page) => {
                let keys = page.entries.iter();
                keys.filter_map(|entry| entry.key.strip_prefix(namespaces.as_str()).map(str::to_owned))
                    .collect()
            }
            Followed::Event(event) => {
                Vec::from_iter(concerned(&provided, event.key(), &namespaces, &objects))
            }
            Followed::Progress(_) => Vec::new(),
        })
    });
    lacking.for_each_concurrent(AT_ONCE, |namespace| ensure(&server, &provided, namespace)).await;
}

/// The namespace that may lack the object after a change to this key.
fn concerned(provided: &Provided, key: &str, namespaces: &str, objects: &str) -> Option<String> {
    if let Some(namespace) = key.strip_prefix(namespaces) {
        return Some(namespace.to_owned());
    }
    let (namespace, name) = key.strip_prefix(objects)?.split_once('/')?;
    (name == provided.name()).then(|| namespace.to_owned())
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
