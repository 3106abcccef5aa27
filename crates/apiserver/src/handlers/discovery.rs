//! What is served, as clients ask for it: `/api`, `/apis`, and all of it at once.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::api_services;
use crate::registry::{GroupVersion, Registry};
use crate::remote::Remote;
use crate::resource::{Nature, Resource, api_version};

/// `GET /api`. The address is where clients reach this server, if that is known: it does not depend on what they call it.
pub(crate) fn core_versions(registry: &Registry, address: Option<SocketAddr>) -> Value {
    let versions: Vec<&str> = registry
        .group("")
        .into_iter()
        .flat_map(|group| &group.versions)
        .map(|version| version.version.as_str())
        .collect();
    let addresses: Vec<Value> = address
        .map(|address| json!({"clientCIDR": "0.0.0.0/0", "serverAddress": address.to_string()}))
        .into_iter()
        .collect();
    json!({"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": addresses})
}

/// `GET /apis`.
pub(crate) fn groups(registry: &Registry) -> Value {
    let groups: Vec<Value> =
        ordered(registry).into_iter().filter_map(|name| summary(registry, name)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// All groups but the core, the important ones first: clients take a kind that two groups have from the first of them.
fn ordered(registry: &Registry) -> Vec<&str> {
    let own = registry.groups.iter().filter(|group| !group.name.is_empty());
    let own = own.map(|group| (i64::from(api_services::group_priority(&group.name)), group.name.as_str()));
    let remote = registry.remotes.iter().map(|remote| (remote.group_priority, remote.group.as_str()));
    let mut important = BTreeMap::new();
    for (priority, name) in own.chain(remote) {
        let most = important.entry(name).or_insert(priority);
        *most = priority.max(*most);
    }
    let mut names: Vec<(i64, &str)> =
        important.into_iter().map(|(name, priority)| (priority, name)).collect();
    names.sort_by(|a, b| (b.0, a.1).cmp(&(a.0, b.1)));
    names.into_iter().map(|(_, name)| name).collect()
}

/// The versions of a group that other servers serve, the preferred one first.
fn remote_versions<'a>(registry: &'a Registry, group: &str) -> Vec<&'a Remote> {
    let remotes = registry.remotes.iter().map(|remote| &**remote).filter(|remote| remote.group == group);
    let mut remotes: Vec<&Remote> =
        remotes.filter(|remote| registry.remote(group, &remote.version).is_some()).collect();
    remotes.sort_by(|a, b| {
        let by_priority = b.version_priority.cmp(&a.version_priority);
        by_priority.then_with(|| crate::crd::compare_versions(&a.version, &b.version))
    });
    remotes
}

/// `GET /apis/GROUP`.
pub(crate) fn group(registry: &Registry, name: &str) -> Option<Value> {
    let mut value = summary(registry, name).filter(|_| !name.is_empty())?;
    value["kind"] = "APIGroup".into();
    value["apiVersion"] = "v1".into();
    Some(value)
}

fn summary(registry: &Registry, name: &str) -> Option<Value> {
    let own = registry.group(name).into_iter().flat_map(|group| &group.versions);
    let own = own.map(|version| version.version.as_str());
    let remote = remote_versions(registry, name).into_iter().map(|remote| remote.version.as_str());
    let versions: Vec<Value> = own
        .chain(remote)
        .map(|version| json!({"groupVersion": api_version(name, version), "version": version}))
        .collect();
    let preferred = versions.first()?.clone();
    Some(json!({"name": name, "versions": versions, "preferredVersion": preferred}))
}

/// `GET /api/v1`, `GET /apis/GROUP/VERSION`.
pub(crate) fn resources(group: &str, version: &GroupVersion) -> Value {
    let resources: Vec<Value> = version.resources.iter().flat_map(|resource| entries(resource)).collect();
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": api_version(group, &version.version),
        "resources": resources,
    });
    // The oldest of these lists does not have it.
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    list
}

/// A resource and its subresources, as the list of a version has them.
fn entries(resource: &Resource) -> Vec<Value> {
    let mut entry = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs(),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        entry["categories"] = resource.categories.clone().into();
    }
    let hash = if resource.is_stored() { storage_version_hash(resource) } else { String::new() };
    if !hash.is_empty() {
        entry["storageVersionHash"] = hash.into();
    }
    let mut entries = vec![entry];
    entries.extend(subresources(resource).into_iter().map(|sub| {
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, sub.name),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": sub.kind,
            "verbs": sub.verbs,
        });
        if sub.foreign {
            entry["group"] = sub.group.into();
            entry["version"] = sub.version.into();
        }
        entry
    }));
    entries
}

/// `GET /api` or `GET /apis` by a client that wants everything in one answer.
pub(crate) fn aggregated(registry: &Registry, core: bool) -> Value {
    let names = if core { vec![""] } else { ordered(registry) };
    let items: Vec<Value> = names
        .into_iter()
        .map(|name| {
            let own = registry.group(name).into_iter().flat_map(|group| &group.versions);
            let mut versions: Vec<Value> = own.map(aggregated_version).collect();
            versions.extend(remote_versions(registry, name).into_iter().map(aggregated_remote));
            let metadata = match name {
                "" => json!({"creationTimestamp": null}),
                name => json!({"name": name, "creationTimestamp": null}),
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

/// A version that another server serves, as that server lists it.
fn aggregated_remote(remote: &Remote) -> Value {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let kind = |entry: &Value| {
        let or_own = |field: &str, own: &str| match text(entry, field) {
            text if text.is_empty() => own.to_owned(),
            text => text,
        };
        json!({
            "group": or_own("group", &remote.group), "version": or_own("version", &remote.version),
            "kind": text(entry, "kind"),
        })
    };
    let is_part = |entry: &&Value| text(entry, "name").contains('/');
    let mut resources: Vec<Value> = Vec::new();
    for entry in remote.resources.iter().filter(|entry| !is_part(entry)) {
        let mut resource = json!({
            "resource": text(entry, "name"),
            "responseKind": kind(entry),
            "scope": if entry["namespaced"] == true { "Namespaced" } else { "Cluster" },
            "singularResource": text(entry, "singularName"),
            "verbs": entry["verbs"],
        });
        for field in ["shortNames", "categories"] {
            if entry[field].is_array() {
                resource[field] = entry[field].clone();
            }
        }
        resources.push(resource);
    }
    for entry in remote.resources.iter().filter(is_part) {
        let name = text(entry, "name");
        let Some((of, part)) = name.split_once('/') else { continue };
        let part = json!({"subresource": part, "responseKind": kind(entry), "verbs": entry["verbs"]});
        if let Some(resource) = resources.iter_mut().find(|resource| resource["resource"] == of) {
            match resource["subresources"].as_array_mut() {
                Some(parts) => parts.push(part),
                None => resource["subresources"] = json!([part]),
            }
        }
    }
    // Until its server was asked, nothing is known of it.
    let is_current = remote.is_available && !remote.resources.is_empty();
    let freshness = if is_current { "Current" } else { "Stale" };
    json!({"version": remote.version, "resources": resources, "freshness": freshness})
}

fn aggregated_version(version: &GroupVersion) -> Value {
    let resources: Vec<Value> =
        version.resources.iter().map(|resource| aggregated_resource(resource)).collect();
    json!({"version": version.version, "resources": resources, "freshness": "Current"})
}

fn aggregated_resource(resource: &Resource) -> Value {
    // Of a built-in kind, group and version are said only where they are others than those that it is listed under.
    let said = |group: &str, version: &str, kind: &str, is_foreign: bool| match resource.nature {
        Nature::Builtin(_) if !is_foreign => json!({"group": "", "version": "", "kind": kind}),
        _ => json!({"group": group, "version": version, "kind": kind}),
    };
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": said(&resource.group, &resource.version, &resource.kind, false),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs(),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        entry["categories"] = resource.categories.clone().into();
    }
    let subresources: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|sub| {
            json!({
                "subresource": sub.name,
                "responseKind": said(sub.group, sub.version, sub.kind, sub.foreign),
                "verbs": sub.verbs,
            })
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = subresources.into();
    }
    entry
}

struct Subresource<'a> {
    name: &'a str,
    group: &'a str,
    version: &'a str,
    kind: &'a str,
    verbs: &'a [&'a str],
    /// Whether it speaks another group or version than its resource.
    foreign: bool,
}

fn subresources(resource: &Resource) -> Vec<Subresource<'_>> {
    match &resource.nature {
        Nature::Builtin(kind) => kind
            .subresources
            .iter()
            .map(|sub| Subresource {
                name: sub.name,
                group: sub.speaks.map_or(kind.group, |speaks| speaks.group),
                version: sub.speaks.map_or(kind.version, |speaks| speaks.version),
                kind: sub.speaks.map_or(kind.kind, |speaks| speaks.kind),
                verbs: sub.verbs,
                foreign: sub
                    .speaks
                    .is_some_and(|speaks| speaks.group != kind.group || speaks.version != kind.version),
            })
            .collect(),
        Nature::Custom(installed, index) => {
            let version = &installed.definition.versions[*index];
            let verbs = &["get", "patch", "update"];
            let status = version.status.then_some(Subresource {
                name: "status",
                group: &resource.group,
                version: &resource.version,
                kind: &resource.kind,
                verbs,
                foreign: false,
            });
            let scale = version.scale.is_some().then_some(Subresource {
                name: "scale",
                group: "autoscaling",
                version: "v1",
                kind: "Scale",
                verbs,
                foreign: true,
            });
            status.into_iter().chain(scale).collect()
        }
    }
}

/// Tells clients whether two servers store a resource as the same version: a hash of that version.
fn storage_version_hash(resource: &Resource) -> String {
    let (group, version) = match &resource.nature {
        Nature::Builtin(kind) => kind.stored_as.unwrap_or((kind.group, kind.version)),
        Nature::Custom(installed, _) => {
            let stored = installed.definition.storage().filter(|version| version.served);
            let Some(stored) = stored else { return String::new() };
            (resource.group.as_str(), stored.name.as_str())
        }
    };
    let hash = digest(&SHA256, format!("{group}/{version}/{}", resource.kind).as_bytes());
    watchkeeper_go::base64::encode(&hash.as_ref()[..8])
}

impl Resource {
    /// What can be done with objects of this resource.
    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        match &self.nature {
            Nature::Builtin(kind) => kind.verbs.names(),
            Nature::Custom(installed, _) => installed.definition.verbs(),
        }
    }
}
