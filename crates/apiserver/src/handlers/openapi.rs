//! The documents that describe what is served.

use std::sync::Arc;

use http::header::ACCEPT;
use serde_json::{Map, json};
use watchkeeper_kinds::openapi::{self, CustomKind};

use crate::aggregation::Target;
use crate::documents::Name;
use crate::handlers::call::Call;
use crate::handlers::health::release;
use crate::handlers::remote;
use crate::handlers::reply::Reply;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::server::Server;
use crate::status_error::StatusError;

/// The protobuf encoding of the second version. Go clients ask for it by a name with an `@` in it, which is no media type.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// What kube-apiserver says about its document of the second version, compressed or not.
const GZIP: &str = "Accept-Encoding";

/// Answers `/openapi/...`.
pub(crate) async fn answer(server: &Server, call: &Call, document: &str) -> Result<Reply, StatusError> {
    let registry = server.registry();
    let made = Arc::clone(&registry);
    let get = async |name: Name, make: Box<dyn FnOnce() -> Vec<u8> + Send>| {
        let document = registry.documents.get(name, &server.documenting, make).await?;
        Ok::<_, StatusError>(Reply::document(document, &call.headers))
    };
    let reply = match document {
        "v2" => {
            let protobuf = wants_protobuf(call);
            let make = Box::new(move || second(&made, protobuf));
            let reply = get(Name::OpenApi2 { protobuf }, make).await?.header("vary", GZIP);
            if protobuf { reply.typed(PROTOBUF) } else { reply }
        }
        "v3" => {
            let reply = get(Name::OpenApi3Index, Box::new(move || index(&made))).await?;
            // JSON that is called text: so it is in kube-apiserver, and clients do not look.
            return Ok(reply.typed("text/plain; charset=utf-8"));
        }
        document => {
            let Some(path) = document.strip_prefix("v3/") else { return Ok(Reply::no_such_page()) };
            if let Some(remote) = split(path).and_then(|(group, version)| registry.remote(group, version)) {
                let target = Target::page(&format!("/openapi/{document}"), &call.query);
                return remote::answer(server, call, remote, target).await;
            }
            let Some((group, version)) =
                split(path).filter(|(group, version)| serves(&registry, group, version))
            else {
                return Ok(Reply::empty(404));
            };
            let name = Name::OpenApi3 { group: group.into(), version: version.into() };
            let (group, version) = (group.to_owned(), version.to_owned());
            get(name, Box::new(move || third(&made, &group, &version))).await?
        }
    };
    Ok(reply.header("vary", "Accept"))
}

fn wants_protobuf(call: &Call) -> bool {
    let accept = call.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.contains("proto-openapi.spec.v2")
}

/// Everything in one document.
fn second(registry: &Registry, protobuf: bool) -> Vec<u8> {
    let resources: Vec<_> = custom(registry).collect();
    let kinds: Vec<_> = resources.iter().filter_map(|resource| describe(resource)).collect();
    let served = registry.remotes.iter().filter(|remote| remote.is_available);
    let served = served.filter(|remote| registry.remote(&remote.group, &remote.version).is_some());
    let others: Vec<_> = served.map(|remote| &*remote.second_document).collect();
    match protobuf {
        true => openapi::v2_protobuf_with(&release(), &kinds, &others),
        false => openapi::v2_with(&release(), &kinds, &others),
    }
}

/// Where the document of each group and version is. The hash in its address changes when the document does.
fn index(registry: &Registry) -> Vec<u8> {
    let mut paths = Map::new();
    for group in &registry.groups {
        for version in &group.versions {
            let path = match group.name.as_str() {
                "" => format!("api/{}", version.version),
                name => format!("apis/{name}/{}", version.version),
            };
            let hash = fingerprint(&version.resources);
            paths.insert(
                path.clone(),
                json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash:016X}")}),
            );
        }
    }
    for remote in registry.remotes.iter().filter(|remote| remote.is_available) {
        let path = format!("apis/{}", remote.api_version());
        if let Some(address) = remote.documents.get(&path).filter(|_| !paths.contains_key(&path)) {
            paths.insert(path, json!({"serverRelativeURL": address}));
        }
    }
    format!("{}\n", json!({"paths": paths})).into_bytes()
}

/// The group and version of `api/v1` or `apis/GROUP/VERSION`.
fn split(path: &str) -> Option<(&str, &str)> {
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["api", version] => Some(("", version)),
        ["apis", group, version] => Some((group, version)),
        _ => None,
    }
}

fn serves(registry: &Registry, group: &str, version: &str) -> bool {
    registry.group(group).is_some_and(|group| group.versions.iter().any(|served| served.version == version))
}

/// The document of a group and version.
fn third(registry: &Registry, group: &str, version: &str) -> Vec<u8> {
    let versions = registry.group(group).into_iter().flat_map(|group| &group.versions);
    let resources = versions.filter(|served| served.version == version).flat_map(|served| &served.resources);
    let kinds: Vec<_> = resources.filter_map(|resource| describe(resource)).collect();
    openapi::v3(group, version, &release(), &kinds)
}

fn custom(registry: &Registry) -> impl Iterator<Item = &Arc<Resource>> {
    let versions = registry.groups.iter().flat_map(|group| &group.versions);
    versions.flat_map(|version| &version.resources).filter(|resource| resource.builtin_kind().is_none())
}

/// A custom resource as the documents describe it.
fn describe(resource: &Resource) -> Option<CustomKind<'_>> {
    let (_, version) = resource.custom_version()?;
    Some(CustomKind {
        group: &resource.group,
        version: &resource.version,
        kind: &resource.kind,
        list_kind: &resource.list_kind,
        plural: &resource.plural,
        namespaced: resource.namespaced,
        schema: Some(&*version.openapi).filter(|schema| !schema.is_null()),
        status: version.status,
        scale: version.scale.is_some(),
    })
}

/// Changes when what is served changes.
fn fingerprint(resources: &[Arc<Resource>]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for resource in resources {
        let schema = resource.custom_version().map_or(0, |(_, version)| version.fingerprint);
        for byte in resource.plural.bytes().chain(schema.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use watchkeeper_storage::{Memory, Options};

    use super::*;
    use crate::authentication::Identity;
    use crate::front::Body;

    async fn get(server: &Arc<Server>, path: &str) -> http::HeaderValue {
        let request = http::Request::builder().uri(path).body(Body::empty()).unwrap();
        let response = Arc::clone(server).answer(request, Identity::admin()).await;
        assert_eq!(response.status(), 200, "{path}");
        response.headers()["etag"].clone()
    }

    #[tokio::test]
    async fn a_document_is_made_once_until_a_definition_changes() {
        let storage = Arc::new(Memory::new(Options::default()));
        let server = crate::startup::start(storage, crate::Options::default()).await.unwrap();
        let group = |group: &str| Name::OpenApi3 { group: group.into(), version: "v1".into() };
        for (path, name) in [
            ("/openapi/v2", Name::OpenApi2 { protobuf: false }),
            ("/openapi/v3", Name::OpenApi3Index),
            ("/openapi/v3/api/v1", group("")),
            ("/openapi/v3/apis/apps/v1", group("apps")),
        ] {
            let tag = get(&server, path).await;
            let registry = server.registry();
            let again = registry.documents.get(name, &server.documenting, || panic!("made again"));
            assert_eq!(again.await.unwrap().tag(), tag, "{path}");
        }
        let index = get(&server, "/openapi/v3").await;
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let definition = json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            },
        });
        let group = "apiextensions.k8s.io";
        server.writer.create(group, "v1", "customresourcedefinitions", None, definition).await.unwrap();
        assert_ne!(get(&server, "/openapi/v3").await, index);
    }
}
