//! What a program is made of, as CycloneDX 1.5.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::image::time;

/// Makes a bill of materials from what `cargo metadata --format-version 1` prints: the package of this name and all that it depends on to
/// run, without what only builds or tests it. Packages that come from a registry or repository say so; paths of this machine are left out.
///
/// Returns nothing if there is no such package.
pub fn from_cargo(metadata: &Value, package: &str, at: u64) -> Option<Value> {
    let by_id = |key: &str| -> BTreeMap<&str, &Value> {
        let items = metadata.pointer(key).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(|item| Some((item["id"].as_str()?, item))).collect()
    };
    let (packages, nodes) = (by_id("/packages"), by_id("/resolve/nodes"));
    let (root, _) = packages.iter().find(|(_, known)| known["name"] == package)?;
    let mut needed: BTreeSet<&str> = BTreeSet::from([*root]);
    let mut pending = vec![*root];
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    while let Some(id) = pending.pop() {
        for other in nodes.get(id).into_iter().flat_map(|node| runs_with(node)) {
            edges.entry(id).or_default().insert(other);
            if needed.insert(other) {
                pending.push(other);
            }
        }
    }
    let components: Vec<Value> = needed
        .iter()
        .filter(|id| *id != root)
        .filter_map(|id| component(packages.get(id)?, "library"))
        .collect();
    let reference = |id: &str| packages.get(id).and_then(|package| purl(package));
    let dependencies: Vec<Value> = needed
        .iter()
        .filter_map(|id| {
            let others: Vec<String> =
                edges.get(id).into_iter().flatten().filter_map(|other| reference(other)).collect();
            Some(json!({"ref": reference(id)?, "dependsOn": others}))
        })
        .collect();
    Some(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time(at),
            "component": component(packages.get(root)?, "application")?,
            "tools": {"components": [{"type": "application", "name": "watchkeeper", "version": env!("CARGO_PKG_VERSION")}]},
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// The packages that a package needs when it runs.
fn runs_with(node: &Value) -> impl Iterator<Item = &str> {
    let dependencies = node["deps"].as_array().into_iter().flatten();
    dependencies.filter_map(|dependency| {
        let mut kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
        kinds.any(|kind| kind["kind"].is_null()).then_some(())?;
        dependency["pkg"].as_str()
    })
}

fn component(package: &Value, kind: &str) -> Option<Value> {
    let reference = purl(package)?;
    let mut component = json!({
        "type": kind,
        "bom-ref": reference,
        "name": package["name"],
        "version": package["version"],
        "purl": reference,
    });
    if let Some(text) = package["description"].as_str() {
        component["description"] = json!(text.trim());
    }
    if let Some(license) = package["license"].as_str() {
        // Some still separate licences as Cargo once did.
        component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
    }
    if let Some(repository) = package["repository"].as_str().filter(|url| url.starts_with("http")) {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    Some(component)
}

/// The URL that a package is known by everywhere. Packages of no registry have the same, by their name and version.
fn purl(package: &Value) -> Option<String> {
    Some(format!(
        "pkg:cargo/{}@{}",
        package["name"].as_str()?,
        package["version"].as_str()?.replace('+', "%2B")
    ))
}
