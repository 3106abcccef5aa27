//! What webhooks add to the description of a program.

use serde_json::Value;
use watchkeeper_description::{Namespaces, Resource, Right, Verbs, Webhook, When};

use crate::configuration::{Endpoint, definition, entry};
use crate::options::{secret_name, service_name};
use crate::service::CONVERT;
use crate::webhook::AnyWebhook;

/// The webhooks that are served, as a description has them.
pub fn described(webhooks: &[AnyWebhook]) -> Vec<Webhook> {
    let mut found = Vec::new();
    for webhook in webhooks {
        let mut add = |kind: &str, path: String, entry: Value| {
            found.push(Webhook { kind: kind.to_owned(), resource: webhook.resource.clone(), path, entry });
        };
        for (kind, what) in [("mutating", "mutate"), ("validating", "validate")] {
            if let Some(entry) = entry(webhook, what) {
                add(kind, webhook.path(what), entry);
            }
        }
        if webhook.conversions.is_some() {
            add("conversion", CONVERT.to_owned(), Value::Null);
        }
    }
    found
}

/// The definition of a kind that these webhooks convert, with all versions and the Service that converts.
pub fn converted_definition(
    webhooks: &[AnyWebhook],
    program: &str,
    namespace: &str,
    name: &str,
) -> Option<Value> {
    let endpoint =
        Endpoint::Service { namespace: namespace.to_owned(), name: service_name(program), port: 443 };
    let converting = webhooks.iter().filter(|webhook| webhook.conversions.is_some());
    let mut definitions = converting.filter_map(|webhook| definition(webhook, &endpoint).ok());
    definitions.find(|definition| definition["metadata"]["name"] == name)
}

/// The names of the definitions whose versions are converted.
pub fn converted(webhooks: &[AnyWebhook]) -> Vec<String> {
    let converting = webhooks.iter().filter(|webhook| webhook.conversions.is_some());
    converting.map(|webhook| format!("{}.{}", webhook.resource.plural, webhook.resource.group)).collect()
}

/// The rights that serving the webhooks needs.
///
/// Configurations are changed only; who installs them empty also takes them away. Without anybody else who does, the program creates them, and
/// deletes them where it is the only one to serve them.
pub fn rights(webhooks: &[AnyWebhook], program: &str) -> Vec<Right> {
    let kept = Verbs::GET | Verbs::LIST | Verbs::WATCH;
    let mut rights = Vec::new();
    let mut add = |group: &str, kind: &str, plural: &str, verbs: Verbs, names: Vec<String>, why: &str| {
        let resource = Resource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced: group.is_empty(),
        };
        let mut right = Right::of(resource, kept | verbs, why);
        right.namespaces = if group.is_empty() { Namespaces::Own } else { Namespaces::All };
        (right.names, right.selects_names, right.when) = (names, true, When::ConfiguringWebhooks);
        rights.push(right);
    };
    let own = || vec![program.to_owned()];
    let why = "serves webhooks";
    let applied = Verbs::PATCH;
    let written = Verbs::CREATE | Verbs::UPDATE;
    let admission = "admissionregistration.k8s.io";
    if webhooks.iter().any(|webhook| webhook.default.is_some()) {
        let plural = "mutatingwebhookconfigurations";
        add(admission, "MutatingWebhookConfiguration", plural, applied, own(), why);
    }
    if webhooks.iter().any(|webhook| webhook.validate.is_some()) {
        let plural = "validatingwebhookconfigurations";
        add(admission, "ValidatingWebhookConfiguration", plural, applied, own(), why);
    }
    let converted = converted(webhooks);
    if !converted.is_empty() {
        let plural = "customresourcedefinitions";
        let why = "converts versions of its kinds";
        add("apiextensions.k8s.io", "CustomResourceDefinition", plural, Verbs::PATCH, converted, why);
    }
    if !webhooks.is_empty() {
        let why = "keeps the authorities of its webhooks";
        add("", "Secret", "secrets", written, vec![secret_name(program)], why);
    }
    let configurations = rights.iter().filter(|right| right.resource.group == admission);
    let installed = configurations.map(|right| Right {
        verbs: Verbs::CREATE | Verbs::DELETE,
        when: When::InstallingDefinitions,
        because: vec!["installs the configurations of its webhooks".to_owned()],
        ..right.clone()
    });
    let installed: Vec<Right> = installed.collect();
    rights.extend(installed);
    rights
}
