//! What kinds a server has.

use futures_util::future::{join, try_join_all};
use http::Request;
use http::header::ACCEPT;
use kube_core::discovery::ApiResource;
use serde::Deserialize;
use watchkeeper_connection::{Connection, RequestError};

/// Everything in two requests. Servers before 1.27 answer in the old form, with the names of groups only.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Why a server did not say what it has.
#[derive(Debug)]
pub(super) enum Error {
    Request(RequestError),
    /// What it answers is not what an API server answers.
    NotKubernetes,
}

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

/// One resource of a server, in one version.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) resource: ApiResource,
    pub(super) singular: String,
    pub(super) short_names: Vec<String>,
    pub(super) categories: Vec<String>,
    pub(super) namespaced: bool,
    pub(super) verbs: Vec<String>,
    /// Whether this is the version of its group that the server prefers for it.
    pub(super) preferred: bool,
}

impl Kind {
    /// `deployments.apps`, `pods`.
    pub(super) fn full_name(&self) -> String {
        let ApiResource { group, plural, .. } = &self.resource;
        if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") }
    }
}

/// All resources of the server that are not parts of others, in the server's order: the core group first, preferred versions
/// first.
pub(super) async fn read(connection: &Connection) -> Result<Vec<Kind>, Error> {
    let (core, groups) =
        join(get::<Answer>(connection, "/api", AGGREGATED), get::<Answer>(connection, "/apis", AGGREGATED))
            .await;
    let mut kinds = Vec::new();
    for (root, answer) in [("/api", core?), ("/apis", groups?)] {
        if answer.kind == "APIGroupDiscoveryList" {
            kinds.extend(answer.items.into_iter().flat_map(Group::kinds));
        } else {
            kinds.extend(read_one_by_one(connection, root, answer).await?);
        }
    }
    mark_preferred(&mut kinds);
    Ok(kinds)
}

pub(super) async fn get<T: serde::de::DeserializeOwned>(
    connection: &Connection,
    path: &str,
    accept: &str,
) -> Result<T, Error> {
    let request = Request::get(path).header(ACCEPT, accept).body(Vec::new());
    let answer = connection.request(request.map_err(|_| Error::NotKubernetes)?).await?;
    serde_json::from_slice(&answer).map_err(|_| Error::NotKubernetes)
}

/// The versions of a group come in the order of preference; what an earlier one has is preferred in it.
fn mark_preferred(kinds: &mut [Kind]) {
    let mut seen = std::collections::HashSet::new();
    for kind in kinds {
        kind.preferred = seen.insert((kind.resource.group.clone(), kind.resource.plural.clone()));
    }
}

/// Both forms of an answer at once: the members of the other are absent.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    items: Vec<Group>,
    /// The old form of `/api`.
    #[serde(default)]
    versions: Vec<String>,
    /// The old form of `/apis`.
    #[serde(default)]
    groups: Vec<OldGroup>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    versions: Vec<GroupVersion>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    resource: String,
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    singular_resource: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

impl Group {
    fn kinds(self) -> Vec<Kind> {
        let group = self.metadata.name;
        let versions = self.versions.into_iter();
        versions
            .flat_map(|GroupVersion { version, resources }| {
                let group = group.clone();
                resources.into_iter().map(move |found| Kind {
                    resource: api_resource(
                        &group,
                        &version,
                        found.response_kind.map(|kind| kind.kind),
                        found.resource,
                    ),
                    singular: found.singular_resource,
                    short_names: found.short_names,
                    categories: found.categories,
                    namespaced: found.scope == "Namespaced",
                    verbs: found.verbs,
                    preferred: false,
                })
            })
            .collect()
    }
}

fn api_resource(group: &str, version: &str, kind: Option<String>, plural: String) -> ApiResource {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let kind = kind.unwrap_or_default();
    ApiResource { group: group.to_owned(), version: version.to_owned(), api_version, kind, plural }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldGroup {
    name: String,
    #[serde(default)]
    versions: Vec<OldVersion>,
    preferred_version: Option<OldVersion>,
}

#[derive(Deserialize)]
struct OldVersion {
    version: String,
}

#[derive(Deserialize)]
struct OldResources {
    #[serde(default)]
    resources: Vec<OldResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldResource {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    short_names: Option<Vec<String>>,
    #[serde(default)]
    categories: Option<Vec<String>>,
    #[serde(default)]
    verbs: Vec<String>,
}

/// The old way: one request for each version of each group. A group whose server does not answer is passed over.
async fn read_one_by_one(connection: &Connection, root: &str, answer: Answer) -> Result<Vec<Kind>, Error> {
    let core = answer.versions.into_iter().map(|version| (String::new(), version));
    let groups = answer.groups.into_iter().flat_map(|group| {
        let mut versions: Vec<String> = group.versions.into_iter().map(|version| version.version).collect();
        let preferred = group.preferred_version.map(|preferred| preferred.version);
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        versions.into_iter().map(move |version| (group.name.clone(), version))
    });
    let reads = core.chain(groups).map(|(group, version)| async move {
        let path =
            if group.is_empty() { format!("{root}/{version}") } else { format!("{root}/{group}/{version}") };
        match get::<OldResources>(connection, &path, "application/json").await {
            Ok(found) => Ok(old_kinds(&group, &version, found)),
            Err(Error::Request(RequestError::Refused(_))) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    });
    Ok(try_join_all(reads).await?.into_iter().flatten().collect())
}

fn old_kinds(group: &str, version: &str, found: OldResources) -> Vec<Kind> {
    let whole = found.resources.into_iter().filter(|resource| !resource.name.contains('/'));
    whole
        .map(|found| Kind {
            resource: api_resource(group, version, Some(found.kind), found.name),
            singular: found.singular_name,
            short_names: found.short_names.unwrap_or_default(),
            categories: found.categories.unwrap_or_default(),
            namespaced: found.namespaced,
            verbs: found.verbs,
            preferred: false,
        })
        .collect()
}
