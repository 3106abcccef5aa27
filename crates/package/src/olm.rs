//! A bundle for the Operator Lifecycle Manager, and a catalog with it.

use serde_json::{Value, json};
use watchkeeper_schema::yaml;

use crate::Renderer;
use crate::artifacthub::person;
use crate::definition::Definition;
use crate::error::Error;
use crate::file::{File, HEADER};
use crate::operator::Operator;
use crate::workload;

pub(crate) const RENDERER: Renderer = Renderer {
    name: "olm",
    about: "a bundle for the Operator Lifecycle Manager, and a catalog",
    owns: &["bundle/", "catalog/"],
    render,
};

/// The channel of the catalog.
const CHANNEL: &str = "stable";

fn render(operator: &Operator<'_>) -> Result<Vec<File>, Error> {
    // A bundle installs Deployments, and nothing that keeps something.
    if operator.volume().is_some() {
        return Ok(Vec::new());
    }
    let name = operator.name();
    let mut files = vec![
        File::yaml(
            format!("bundle/manifests/{name}.clusterserviceversion.yaml"),
            &[service_version(operator)],
        ),
        File::yaml("bundle/metadata/annotations.yaml", &[json!({"annotations": annotations(operator)})]),
        File::generated("catalog/catalog.yaml", catalog(operator)),
    ];
    for definition in &operator.definitions {
        let path = format!("bundle/manifests/{}.yaml", definition.name);
        files.push(File::yaml(path, &[definition.placed(&operator.namespace())]));
    }
    for object in workload::objects(operator) {
        if object["kind"] == "Service" {
            let mut object = object;
            // The bundle is put into the namespace that its subscriber chooses.
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("namespace");
            }
            let service = object["metadata"]["name"].as_str().unwrap_or(name).to_owned();
            files.push(File::yaml(format!("bundle/manifests/{service}.service.yaml"), &[object]));
        }
    }
    Ok(files)
}

/// The labels of an image that is a bundle.
fn annotations(operator: &Operator<'_>) -> Value {
    const PREFIX: &str = "operators.operatorframework.io.bundle";
    json!({
        format!("{PREFIX}.mediatype.v1"): "registry+v1",
        format!("{PREFIX}.manifests.v1"): "manifests/",
        format!("{PREFIX}.metadata.v1"): "metadata/",
        format!("{PREFIX}.package.v1"): operator.name(),
        format!("{PREFIX}.channels.v1"): CHANNEL,
        format!("{PREFIX}.channel.default.v1"): CHANNEL,
    })
}

fn full_name(operator: &Operator<'_>) -> String {
    format!("{}.v{}", operator.name(), operator.version())
}

fn service_version(operator: &Operator<'_>) -> Value {
    let settings = operator.settings;
    let deployment = workload::objects(operator).into_iter().find(|object| object["kind"] == "Deployment");
    let deployment = deployment.unwrap_or_default();
    let roles = operator.roles();
    let account = operator.name();
    let permission = |rules: &Vec<Value>| -> Vec<Value> {
        match rules.as_slice() {
            [] => Vec::new(),
            rules => vec![json!({"serviceAccountName": account, "rules": rules})],
        }
    };
    // Where caches are limited to namespaces, the subscriber's OperatorGroup says which; a bundle cannot name them.
    let mut cluster = roles.cluster.clone();
    cluster.extend(roles.namespaces.values().flatten().cloned());
    let mut annotations = json!({
        "alm-examples": format!("{:#}", json!(settings.samples)),
        "capabilities": "Basic Install",
        "categories": "Developer Tools",
        "containerImage": operator.image(),
        "description": operator.about(),
    });
    if let Some(repository) = &settings.repository {
        annotations["repository"] = json!(repository);
    }
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"]
        .map(|mode| json!({"type": mode, "supported": mode == "AllNamespaces"}));
    let mut spec = json!({
        "displayName": operator.name(),
        "description": operator.about(),
        "version": operator.version(),
        "maturity": "alpha",
        "minKubeVersion": "1.25.0",
        "provider": settings.authors.first().map_or_else(|| json!({"name": operator.name()}), |author| json!({"name": person(author)["name"]})),
        "maintainers": settings.authors.iter().map(|author| person(author)).collect::<Vec<_>>(),
        "links": settings.homepage.iter().chain(&settings.repository).map(|url| json!({"name": "Source", "url": url})).collect::<Vec<_>>(),
        "keywords": if settings.keywords.is_empty() { vec![operator.name().to_owned()] } else { settings.keywords.clone() },
        "installModes": modes,
        "customresourcedefinitions": {"owned": operator.definitions.iter().filter_map(owned).collect::<Vec<_>>()},
        "install": {
            "strategy": "deployment",
            "spec": {
                "clusterPermissions": permission(&cluster),
                "permissions": permission(&roles.own),
                "deployments": [{
                    "name": account,
                    "label": operator.labels(),
                    "spec": deployment["spec"],
                }],
            },
        },
    });
    if spec["maintainers"] == json!([]) {
        spec["maintainers"] = json!([{"name": operator.name(), "email": "nobody@example.com"}]);
    }
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": full_name(operator), "namespace": "placeholder", "annotations": annotations},
        "spec": spec,
    })
}

fn owned(definition: &Definition<'_>) -> Option<Value> {
    let version = definition.storage()?;
    let about = version.schema().and_then(|schema| schema.pointer("/properties/spec/description")?.as_str());
    let about = about.map_or_else(|| format!("Objects of kind {}", definition.kind), str::to_owned);
    Some(json!({
        "name": definition.name,
        "kind": definition.kind,
        "version": version.name,
        "displayName": definition.kind,
        "description": about,
    }))
}

/// A file-based catalog with this version as its only one.
fn catalog(operator: &Operator<'_>) -> String {
    let (name, full) = (operator.name(), full_name(operator));
    let gvk = |definition: &Definition<'_>| {
        let version = definition.storage()?.name;
        let value = json!({"group": definition.group, "kind": definition.kind, "version": version});
        Some(json!({"type": "olm.gvk", "value": value}))
    };
    let mut properties: Vec<Value> = operator.definitions.iter().filter_map(gvk).collect();
    let package = json!({"packageName": name, "version": operator.version()});
    properties.push(json!({"type": "olm.package", "value": package}));
    let documents = [
        json!({"schema": "olm.package", "name": name, "defaultChannel": CHANNEL, "description": operator.about()}),
        json!({"schema": "olm.channel", "package": name, "name": CHANNEL, "entries": [{"name": full}]}),
        json!({
            "schema": "olm.bundle", "name": full, "package": name,
            "image": format!("{}-bundle:{}", operator.repository(), operator.version()),
            "properties": properties,
        }),
    ];
    format!(
        "# {HEADER}\n{}",
        documents.iter().map(|document| format!("---\n{}", yaml::encode(document))).collect::<String>()
    )
}
