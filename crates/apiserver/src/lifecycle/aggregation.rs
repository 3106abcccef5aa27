//! What other servers serve is asked for and kept; their APIServices say whether they are available.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, future};
use serde_json::{Value, json};
use watchkeeper_storage::{self as storage, Follow, Followed, Range, Storage};

use crate::aggregation::ALLOWED_NAME;
use crate::api_services::{Backend, GROUP, MANAGER, PLURAL, asked, condition, set_condition};
use crate::object::meta;
use crate::remote::Remote;
use crate::resource::{ObjectRef, prefix};
use crate::server::Server;
use crate::status_error::StatusError;
use crate::write::Subresource;

/// What the tasks are called: the one that follows what others serve, the one that says whether they are available, and the one that keeps
/// published how they can believe this server.
pub(super) const FOLLOW: &str = "aggregation";
pub(super) const CHECK: &str = "api-service-availability";
pub(super) const PUBLISH: &str = "front-proxy";

/// How often other servers are asked, if nothing changes.
const INTERVAL: Duration = Duration::from_secs(30);

/// How long changes are gathered before others are asked again.
const COALESCE_INTERVAL: Duration = Duration::from_millis(200);

/// The label by which an EndpointSlice says whose it is.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Where other servers read how to believe this one.
const PUBLISHED: (&str, &str) = ("kube-system", "extension-apiserver-authentication");

/// The most authorities that are kept there, each of 700 bytes: of servers that share the storage, and of those that were here before.
const MOST_AUTHORITIES: usize = 16;

/// How soon after it was published it is published again, at the earliest: more servers than have room would drop each other's authorities
/// without end.
const SPACING: Duration = Duration::from_secs(1);

/// The fields with certificates. Those of other servers stay in them.
const AUTHORITY: &str = "requestheader-client-ca-file";
const CLIENT_AUTHORITY: &str = "client-ca-file";

/// Waits for the next snapshot. Returns the APIServices in it that name a Service, for one of the tasks; `None` if the storage is closed.
async fn registered(server: &Server, task: &str, following: &mut Follow<'_>) -> Option<Vec<(Value, Remote)>> {
    let page = loop {
        if let Followed::Snapshot(page) = following.next().await? {
            break page;
        }
    };
    let Some(resource) = server.registry().find(GROUP, "v1", PLURAL) else { return Some(Vec::new()) };
    let read = page.entries.iter().filter_map(|entry| {
        let read = || {
            let object = resource.read(entry).ok()?;
            let remote = Remote::read(&object)?;
            Some((object, remote))
        };
        server.supervisor.caught(task, &entry.key, read)?
    });
    Some(read.collect())
}

/// Waits until something has changed, or for a time. The next thing to come is a snapshot.
async fn changed(following: &mut Follow<'_>) {
    let _ = tokio::time::timeout(INTERVAL, following.next()).await;
    tokio::time::sleep(COALESCE_INTERVAL).await;
    following.again();
}

/// Keeps in the registry what others serve, until the storage is closed.
pub(super) async fn follow(server: Arc<Server>) {
    let own = prefix(GROUP, PLURAL);
    let mut following = storage::follow(&*server.storage, "APIServices", &own);
    while let Some(found) = registered(&server, FOLLOW, &mut following).await {
        let remotes: Vec<Remote> = found.into_iter().map(|(_, remote)| with_known(&server, remote)).collect();
        // What is known is in force before others are asked, who may take their time.
        set(&server, remotes.clone());
        if !remotes.is_empty() {
            let remotes = future::join_all(remotes.into_iter().map(|remote| listed(&server, remote))).await;
            set(&server, remotes.clone());
            // Documents are large, and nobody waits for them.
            let remotes =
                future::join_all(remotes.into_iter().map(|remote| documented(&server, remote))).await;
            set(&server, remotes);
        }
        changed(&mut following).await;
    }
}

fn set(server: &Server, remotes: Vec<Remote>) {
    server.registrar.set_remotes(remotes.into_iter().map(Arc::new).collect());
}

/// The same with what was last heard of its server.
fn with_known(server: &Server, remote: Remote) -> Remote {
    let registry = server.registry();
    let known = registry.remotes.iter().find(|known| known.api_version() == remote.api_version());
    match known {
        Some(known) => Remote {
            resources: known.resources.clone(),
            documents: known.documents.clone(),
            second_document: Arc::clone(&known.second_document),
            ..remote
        },
        None => remote,
    }
}

/// The same with the resources that its server lists now, or what is known if it does not answer.
async fn listed(server: &Server, mut remote: Remote) -> Remote {
    if remote.is_available
        && let Ok(resources) = server.aggregator.resources(&remote).await
    {
        remote.resources = resources;
    }
    remote
}

/// The same with the documents that its server has now, or what is known if it does not answer.
async fn documented(server: &Server, mut remote: Remote) -> Remote {
    if !remote.is_available {
        return remote;
    }
    let (documents, second_document) =
        future::join(server.aggregator.documents(&remote), server.aggregator.second_document(&remote)).await;
    // Not every server has documents.
    if let Ok(Value::Object(documents)) = documents {
        let addresses = documents.iter().filter_map(|(path, document)| {
            Some((path.clone(), document["serverRelativeURL"].as_str()?.to_owned()))
        });
        remote.documents = addresses.collect::<BTreeMap<_, _>>();
    }
    if let Ok(second_document) = second_document
        && *remote.second_document != second_document
    {
        remote.second_document = Arc::new(second_document);
    }
    remote
}

/// Keeps the conditions of the APIServices of other servers true, until the storage is closed.
pub(super) async fn check(server: Arc<Server>) {
    let (own, services, slices) =
        (prefix(GROUP, PLURAL), prefix("", "services"), prefix("discovery.k8s.io", "endpointslices"));
    let alone = || storage::follow(&*server.storage, "APIServices", &own);
    let (mut following, mut is_alone) = (alone(), true);
    while let Some(found) = registered(&server, CHECK, &mut following).await {
        // What is behind them matters if there are some.
        if is_alone != found.is_empty() {
            is_alone = found.is_empty();
            following = if is_alone { alone() } else { alone().also([services.as_str(), slices.as_str()]) };
            continue;
        }
        let mut checks: FuturesUnordered<_> =
            found.into_iter().map(|(object, remote)| check_one(&server, object, remote)).collect();
        // Each as soon as it is known: one that hangs delays no other.
        while checks.next().await.is_some() {}
        changed(&mut following).await;
    }
}

/// Says in an APIService whether its server is available.
async fn check_one(server: &Server, object: Value, remote: Remote) {
    let name = meta::name(&object).to_owned();
    let checked = server.supervisor.caught_async(CHECK, &name, try_check(server, &object, &remote)).await;
    if let Some(Err(failure)) = checked {
        tracing::warn!(name, failure = %failure.message, "availability of an APIService could not be written");
    }
}

async fn try_check(server: &Server, object: &Value, remote: &Remote) -> Result<(), StatusError> {
    let missing = match server.aggregator.is_given(&remote.backend) {
        true => None,
        false => condition(&object["spec"], &backend(server, &object["spec"]["service"]).await?),
    };
    let said = match missing {
        Some(missing) => missing,
        None => asked(server.aggregator.resources(remote).await.map(drop)),
    };
    let mut known = object["status"]["conditions"].as_array().into_iter().flatten();
    let fields = ["type", "status", "reason", "message"];
    if known.any(|known| fields.iter().all(|field| known[*field] == said[*field])) {
        return Ok(());
    }
    let Some(resource) = server.registry().find(GROUP, "v1", PLURAL) else { return Ok(()) };
    let place = ObjectRef { resource, namespace: None, name: meta::name(object).to_owned() };
    let now = server.options.clock.stamp();
    let say = |object: &mut Value| set_condition(object, said.clone(), &now);
    server.writer.modify_as(MANAGER, &place, Subresource::Status, say).await
}

/// What is behind the Service that an APIService names.
async fn backend(server: &Server, service: &Value) -> Result<Backend, StatusError> {
    let text = |name: &str| service[name].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text("namespace"), text("name"));
    let registry = server.registry();
    let mut backend = Backend { service: None, slices: Vec::new() };
    if let Some(services) = registry.find("", "v1", "services")
        && let Some(entry) = server.storage.get(&services.key(Some(&namespace), &name), None).await?.entry
    {
        backend.service = Some(services.read(&entry)?);
    }
    if let Some(slices) = registry.find("discovery.k8s.io", "v1", "endpointslices") {
        let page = server.storage.range(Range::prefix(&slices.prefix_in(Some(&namespace)))).await?;
        for entry in page.entries {
            let slice = slices.read(&entry)?;
            if slice["metadata"]["labels"][SERVICE_NAME] == name.as_str() {
                backend.slices.push(slice);
            }
        }
    }
    Ok(backend)
}

/// Says in a ConfigMap how other servers can believe this one, and the headers in which they are told who asks. Authorities of clients that this
/// server does not know are dropped; a server that knows them adds them again.
pub(crate) async fn publish(server: &Server) -> Result<(), StatusError> {
    let Some(place) = published(server) else { return Ok(()) };
    let begin = |object: &mut Value| {
        if server.options.certificate_authority.is_some() {
            object["data"][CLIENT_AUTHORITY] = "".into();
        }
        correct(server, object);
    };
    write_published(server, &place, begin).await
}

async fn write_published(
    server: &Server,
    place: &ObjectRef,
    change: impl Fn(&mut Value) + Send + Sync,
) -> Result<(), StatusError> {
    if server.storage.get(&place.key(), None).await?.entry.is_none() {
        let (namespace, name) = PUBLISHED;
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        change(&mut object);
        match server.writer.create_as(MANAGER, "", "v1", "configmaps", Some(namespace), object).await {
            Err(failure) if failure.reason == "AlreadyExists" => {}
            made => return made.map(drop),
        }
    }
    server.writer.modify_as(MANAGER, place, Subresource::Main, change).await
}

/// Publishes it again whenever it is lost, until the storage is closed: by a deletion, by a change, by a backup that is restored, or by more servers
/// than there is room for.
pub(super) async fn keep_published(server: Arc<Server>) {
    let Some(place) = published(&server) else { return };
    let key = place.key();
    let mut following = storage::follow(&*server.storage, "the authority of the front proxy", &key);
    while let Some(followed) = following.next().await {
        let page = match followed {
            Followed::Snapshot(page) => page,
            // There are few, and its own are among them.
            Followed::Event(_) => {
                following.again();
                continue;
            }
            Followed::Progress(_) => continue,
        };
        let stored = page.entries.iter().find(|entry| *entry.key == *key);
        let is_complete = stored.and_then(|entry| place.resource.read(entry).ok()).is_some_and(|object| {
            let mut wanted = object.clone();
            correct(&server, &mut wanted);
            wanted == object
        });
        if is_complete {
            continue;
        }
        match write_published(&server, &place, |object| correct(&server, object)).await {
            Ok(()) => tokio::time::sleep(SPACING).await,
            Err(failure) => {
                tracing::warn!(name = PUBLISHED.1, failure = %failure.message, "the authority of the front proxy could not be published");
                tokio::time::sleep(INTERVAL).await;
                following.again();
            }
        }
    }
}

/// The ConfigMap with how other servers can believe this one.
fn published(server: &Server) -> Option<ObjectRef> {
    let (namespace, name) = PUBLISHED;
    let resource = server.registry().find("", "v1", "configmaps")?;
    Some(ObjectRef { resource, namespace: Some(namespace.into()), name: name.into() })
}

/// Adds what other servers have to know of this one, where it is missing.
fn correct(server: &Server, object: &mut Value) {
    let fields = [
        ("requestheader-allowed-names", json!([ALLOWED_NAME]).to_string()),
        ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#.to_owned()),
        ("requestheader-group-headers", r#"["X-Remote-Group"]"#.to_owned()),
        ("requestheader-uid-headers", r#"["X-Remote-Uid"]"#.to_owned()),
        ("requestheader-username-headers", r#"["X-Remote-User"]"#.to_owned()),
    ];
    let data = &mut object["data"];
    for (name, value) in fields {
        data[name] = value.into();
    }
    let authorities = [
        (AUTHORITY, Some(server.aggregator.authority())),
        (CLIENT_AUTHORITY, server.options.certificate_authority.as_deref()),
    ];
    for (field, authority) in authorities {
        let Some(authority) = authority else { continue };
        let known = data[field].as_str().unwrap_or_default();
        if !certificates(authority).all(|pem| known.contains(pem)) || known.is_empty() {
            data[field] = with_authority(known, authority).into();
        }
    }
}

/// The certificates in a text.
fn certificates(text: &str) -> impl Iterator<Item = &str> {
    const END: &str = "-----END CERTIFICATE-----";
    text.split_inclusive(END).map(str::trim).filter(|pem| pem.ends_with(END))
}

/// The authorities that were known and this one, without the oldest if there are many.
fn with_authority(known: &str, authority: &str) -> String {
    let mut all: Vec<&str> = certificates(known).collect();
    all.retain(|pem| certificates(authority).all(|own| own != *pem));
    let first = all.len().saturating_add(1).saturating_sub(MOST_AUTHORITIES);
    let mut text: String = all[first.min(all.len())..].iter().map(|pem| format!("{pem}\n")).collect();
    text.push_str(authority);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_of_other_servers_stay_and_the_oldest_go() {
        let pem =
            |number: usize| format!("-----BEGIN CERTIFICATE-----\n{number}\n-----END CERTIFICATE-----\n");
        let mut known = String::new();
        for number in 0..MOST_AUTHORITIES + 2 {
            known = with_authority(&known, &pem(number));
        }
        assert_eq!(known, (2..MOST_AUTHORITIES + 2).map(pem).collect::<String>());
        assert_eq!(with_authority(&known, &pem(MOST_AUTHORITIES + 1)), known, "again");
        let both = pem(4) + &pem(5);
        let expected: String = [pem(3), pem(6), both.clone()].concat();
        assert_eq!(with_authority(&(3..7).map(pem).collect::<String>(), &both), expected);
        assert_eq!(with_authority("nonsense", &pem(1)), pem(1));
    }
}
