//! A bundle for the Operator Lifecycle Manager, and a catalog with it.
//!
//! A bundle cannot have webhook configurations. It says what webhooks there are: the Operator Lifecycle Manager makes their Service, certificates and
//! configurations, sets the conversion of definitions, and takes all of that away with the bundle. So the program is told to leave them alone, and has no rights for them.
//!
//! A bundle cannot have rights in namespaces that it names: it asks for those of the whole cluster, and for those of the namespace that it is installed in. A program
//! with other rights has no bundle; they would be rights everywhere. Nor has one that keeps something: a bundle installs Deployments. For a subscription to all namespaces,
//! the Operator Lifecycle Manager makes cluster roles of the second sort, too, as it does for every bundle.

use serde_json::{Value, json};
use watchkeeper_description::Roles;
use watchkeeper_schema::yaml;

use crate::Renderer;
use crate::artifacthub::person;
use crate::definition::{Definition, Version};
use crate::error::Error;
use crate::file::{File, HEADER};
use crate::operator::Operator;
use crate::workload;

pub(crate) const RENDERER: Renderer = Renderer {
    name: "olm",
    about: "a bundle for the Operator Lifecycle Manager, and a catalog",
    owns: &["bundle/", "bundle.Dockerfile", "catalog/"],
    render,
};

/// Where certificates are mounted for a Deployment with webhooks.
const CERTIFICATES: &str = "/tmp/k8s-webhook-server/serving-certs";
/// The channel of the catalog.
const CHANNEL: &str = "stable";

fn render(operator: &Operator<'_>) -> Result<Vec<File>, Error> {
    let roles = if delegates(operator) { operator.roles_without_webhooks() } else { operator.roles() };
    possible(operator, &roles)?;
    let name = operator.name();
    let mut files = vec![
        File::yaml(
            format!("bundle/manifests/{name}.clusterserviceversion.yaml"),
            &[service_version(operator, &roles)],
        ),
        File::yaml("bundle/metadata/annotations.yaml", &[json!({"annotations": annotations(operator)})]),
        File::generated("bundle.Dockerfile", dockerfile(operator)),
        File::generated("catalog/catalog.yaml", catalog(operator)),
    ];
    for definition in &operator.definitions {
        let path = format!("bundle/manifests/{}.yaml", definition.name);
        files.push(File::yaml(path, &[definition.placed(&operator.namespace())]));
    }
    for mut object in workload::objects(operator) {
        let is_delegated = delegates(operator) && object["metadata"]["name"] == operator.webhook_service();
        if object["kind"] == "Service" && !is_delegated {
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

/// Refuses what a bundle cannot install.
fn possible(operator: &Operator<'_>, roles: &Roles) -> Result<(), Error> {
    let name = operator.name().to_owned();
    if operator.volume().is_some() {
        return Err(Error::Bundle { name, why: "it keeps something on a volume".to_owned() });
    }
    let Some((namespace, rules)) = roles.namespaces.iter().next() else { return Ok(()) };
    let resources = rules.iter().filter_map(|rule| rule["resources"].as_array()).flatten();
    let resources: Vec<&str> = resources.filter_map(Value::as_str).collect();
    let why = format!("its rights to {} are limited to namespace {namespace:?}", resources.join(", "));
    Err(Error::Bundle { name, why })
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

/// An image that is the bundle, as the catalog names it.
fn dockerfile(operator: &Operator<'_>) -> String {
    let image = bundle_image(operator);
    let mut text = format!("# {HEADER}\n# docker build -f bundle.Dockerfile -t {image} .\nFROM scratch\n\n");
    for (label, value) in annotations(operator).as_object().into_iter().flatten() {
        text.push_str(&format!("LABEL {label}={}\n", value.as_str().unwrap_or_default()));
    }
    text + "\nCOPY bundle/manifests /manifests/\nCOPY bundle/metadata /metadata/\n"
}

fn bundle_image(operator: &Operator<'_>) -> String {
    format!("{}-bundle:{}", operator.repository(), operator.version())
}

/// Whether the Operator Lifecycle Manager keeps the webhooks.
fn delegates(operator: &Operator<'_>) -> bool {
    !operator.description.webhooks.is_empty() && !operator.description.webhook_arguments.is_empty()
}

/// The webhooks that the Operator Lifecycle Manager keeps.
fn webhook_definitions(operator: &Operator<'_>) -> Vec<Value> {
    if !delegates(operator) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut converted = Vec::new();
    let mut convert = "";
    for webhook in &operator.description.webhooks {
        let kind = match webhook.kind.as_str() {
            "mutating" => "MutatingAdmissionWebhook",
            "validating" => "ValidatingAdmissionWebhook",
            _ => {
                converted.push(format!("{}.{}", webhook.resource.plural, webhook.resource.group));
                convert = &webhook.path;
                continue;
            }
        };
        let mut definition = webhook_definition(operator, kind, &webhook.path);
        definition["generateName"] = webhook.entry["name"].clone();
        for field in [
            "rules",
            "admissionReviewVersions",
            "sideEffects",
            "failurePolicy",
            "matchPolicy",
            "timeoutSeconds",
        ] {
            definition[field] = webhook.entry[field].clone();
        }
        found.push(definition);
    }
    if !converted.is_empty() {
        let mut definition = webhook_definition(operator, "ConversionWebhook", convert);
        definition["generateName"] = json!(format!("convert.{}", operator.name()));
        definition["admissionReviewVersions"] = json!(["v1"]);
        definition["sideEffects"] = json!("None");
        definition["conversionCRDs"] = json!(converted);
        found.push(definition);
    }
    found
}

fn webhook_definition(operator: &Operator<'_>, kind: &str, path: &str) -> Value {
    json!({
        "type": kind,
        "deploymentName": operator.name(),
        "containerPort": 443,
        "targetPort": operator.description.webhook_port,
        "webhookPath": path,
    })
}

/// The Deployment without its metadata, which leaves webhooks to the Operator Lifecycle Manager.
fn deployment(operator: &Operator<'_>) -> Value {
    let objects = workload::objects(operator).into_iter();
    let mut spec =
        objects.filter(|object| object["kind"] == "Deployment").map(|object| object["spec"].clone());
    let mut spec = spec.next().unwrap_or_default();
    if delegates(operator) {
        let arguments = operator.webhook_arguments(CERTIFICATES).into_iter().map(Value::from);
        if let Some(given) =
            spec.pointer_mut("/template/spec/containers/0/args").and_then(Value::as_array_mut)
        {
            given.extend(arguments);
        }
    }
    spec
}

fn full_name(operator: &Operator<'_>) -> String {
    format!("{}.v{}", operator.name(), operator.version())
}

fn service_version(operator: &Operator<'_>, roles: &Roles) -> Value {
    let settings = operator.settings;
    let account = operator.name();
    let permission = |rules: &Vec<Value>| -> Vec<Value> {
        match rules.as_slice() {
            [] => Vec::new(),
            rules => vec![json!({"serviceAccountName": account, "rules": rules})],
        }
    };
    let mut annotations = json!({
        "alm-examples": format!("{:#}", json!(operator.samples())),
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
        "customresourcedefinitions": {"owned": operator.definitions.iter().flat_map(owned).collect::<Vec<_>>()},
        "install": {
            "strategy": "deployment",
            "spec": {
                "clusterPermissions": permission(&roles.cluster),
                "permissions": permission(&roles.own),
                "deployments": [{
                    "name": account,
                    "label": operator.labels(),
                    "spec": deployment(operator),
                }],
            },
        },
    });
    let webhooks = webhook_definitions(operator);
    if !webhooks.is_empty() {
        spec["webhookdefinitions"] = json!(webhooks);
    }
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

/// A definition, once for each version that is served.
fn owned<'a>(definition: &'a Definition<'_>) -> impl Iterator<Item = Value> + use<'a> {
    definition
        .versions()
        .filter(|version| version.is("served"))
        .map(|version| owned_version(definition, version))
}

fn owned_version(definition: &Definition<'_>, version: Version<'_>) -> Value {
    let about = version.schema().and_then(|schema| schema.pointer("/properties/spec/description")?.as_str());
    let about = about.map_or_else(|| format!("Objects of kind {}", definition.kind), str::to_owned);
    json!({
        "name": definition.name,
        "kind": definition.kind,
        "version": version.name,
        "displayName": definition.kind,
        "description": about,
    })
}

/// A file-based catalog with this version as its only one.
fn catalog(operator: &Operator<'_>) -> String {
    let (name, full) = (operator.name(), full_name(operator));
    let mut properties = Vec::new();
    for definition in &operator.definitions {
        for version in definition.versions().filter(|version| version.is("served")) {
            let value = json!({"group": definition.group, "kind": definition.kind, "version": version.name});
            properties.push(json!({"type": "olm.gvk", "value": value}));
        }
    }
    let package = json!({"packageName": name, "version": operator.version()});
    properties.push(json!({"type": "olm.package", "value": package}));
    let documents = [
        json!({"schema": "olm.package", "name": name, "defaultChannel": CHANNEL, "description": operator.about()}),
        json!({"schema": "olm.channel", "package": name, "name": CHANNEL, "entries": [{"name": full}]}),
        json!({
            "schema": "olm.bundle", "name": full, "package": name,
            "image": bundle_image(operator),
            "properties": properties,
        }),
    ];
    format!(
        "# {HEADER}\n{}",
        documents.iter().map(|document| format!("---\n{}", yaml::encode(document))).collect::<String>()
    )
}
