//! How many objects a first list will have, for a bar that knows its end.

use futures_util::future::join_all;
use kube_core::discovery::ApiResource;
use serde::Deserialize;
use watchkeeper_connection::Connection;
use watchkeeper_wire::{ResourcePath, Uri};

use super::catalogue;
use super::target::Target;

/// All we want to know is in the metadata.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

#[derive(Deserialize)]
struct List {
    metadata: Metadata,
    #[serde(default)]
    items: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    remaining_item_count: Option<usize>,
    r#continue: Option<String>,
}

/// How many objects there are of all targets together; `None` if the server does not say it of each.
pub(super) async fn total(connection: &Connection, paths: Vec<String>) -> Option<usize> {
    let counts = join_all(paths.iter().map(|path| async move {
        let list: List = catalogue::get(connection, path, METADATA).await.ok()?;
        let more = match list.metadata.r#continue.as_deref().unwrap_or_default() {
            "" => 0,
            _ => list.metadata.remaining_item_count?,
        };
        Some(list.items.len() + more)
    }));
    counts.await.into_iter().sum()
}

/// Where one object of a target's is listed, and how many more there are.
pub(super) fn path(target: &Target) -> Option<String> {
    let ApiResource { group, version, plural, .. } = &target.kind()?.resource;
    let mut uri = Uri::new(ResourcePath::new(group, version, plural).collection(target.namespace.as_deref()));
    uri.pair("limit", "1");
    Some(uri.as_str().to_owned())
}
