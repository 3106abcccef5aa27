//! The documents that describe what is served.

use http::header::ACCEPT;
use serde_json::{Map, json};
use watchkeeper_kinds::openapi::{self, CustomKind};

use crate::dispatch::Call;
use crate::failure::Failure;
use crate::health::release;
use crate::registry::Registry;
use crate::reply::Reply;
use crate::resource::Resource;
use crate::server::Server;

/// The protobuf encoding of the second version. Go clients ask for it by a name with an `@` in it, which is no media type.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// What kube-apiserver says about its document of the second version, compressed or not.
const GZIP: &str = "Accept-Encoding";

/// Answers `/openapi/...`. Documents are made when they are asked for and not kept: clients keep them, by their tags.
pub(crate) fn answer(server: &Server, call: &Call, document: &str) -> Result<Reply, Failure> {
    let registry = server.registry();
    let mut reply = match document.trim_end_matches('/') {
        "v2" => second(&registry, call).header("vary", GZIP),
        "v3" => {
            let mut reply = index(&registry);
            reply.tag(&call.headers);
            return Ok(reply);
        }
        document => match document.strip_prefix("v3/") {
            Some(path) => match third(&registry, path) {
                Some(reply) => reply,
                None => return Ok(Reply::empty(404)),
            },
            None => return Ok(Reply::no_such_page()),
        },
    };
    reply.tag(&call.headers);
    Ok(reply.header("vary", "Accept"))
}

/// Everything in one document.
fn second(registry: &Registry, call: &Call) -> Reply {
    let resources: Vec<_> = custom(registry).collect();
    let kinds: Vec<_> = resources.iter().filter_map(|resource| describe(resource)).collect();
    let accept = call.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if accept.contains("proto-openapi.spec.v2") {
        return Reply::new(200, openapi::v2_protobuf(&release(), &kinds)).typed(PROTOBUF);
    }
    Reply::new(200, openapi::v2(&release(), &kinds))
}

/// Where the document of each group and version is. The hash in its address changes when the document does.
fn index(registry: &Registry) -> Reply {
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
    // JSON that is called text: so it is in kube-apiserver, and clients do not look.
    Reply::json(200, &json!({"paths": paths})).typed("text/plain; charset=utf-8")
}

/// The document of a group and version.
fn third(registry: &Registry, path: &str) -> Option<Reply> {
    let (group, version) = match path.split('/').collect::<Vec<_>>().as_slice() {
        ["api", version] => ("", (*version).to_owned()),
        ["apis", group, version] => (*group, (*version).to_owned()),
        _ => return None,
    };
    let found = registry.group(group)?.versions.iter().find(|found| found.version == version)?;
    let kinds: Vec<_> = found.resources.iter().filter_map(|resource| describe(resource)).collect();
    Some(Reply::new(200, openapi::v3(group, &version, &release(), &kinds)))
}

fn custom(registry: &Registry) -> impl Iterator<Item = &std::sync::Arc<Resource>> {
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
fn fingerprint(resources: &[std::sync::Arc<Resource>]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for resource in resources {
        let schema = resource.custom_version().map_or(0, |(_, version)| version.fingerprint);
        for byte in resource.plural.bytes().chain(schema.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}
