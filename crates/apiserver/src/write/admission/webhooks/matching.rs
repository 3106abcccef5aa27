//! Which hooks a write concerns, and in which version they want to see it.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::hook::{Hook, Rule};
use super::{GROUP, Webhooks};
use crate::object::meta;
use crate::resource::Resource;
use crate::status_error::StatusError;
use crate::write::admission::{Attributes, Verb};

/// The kinds by which admission itself is configured: no webhook is asked about them, since it could lock everybody out.
const EXEMPT: [&str; 6] = [
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// Whether webhooks are asked about a write at all.
pub(super) fn is_exempt(attributes: &Attributes<'_>) -> bool {
    let resource = &attributes.target.resource;
    attributes.context.author.client().is_none()
        || resource.group == GROUP && EXEMPT.contains(&resource.plural.as_str())
}

impl Webhooks {
    /// The resource in the version in which a hook is to be asked; `None` if it is not to be.
    pub(super) async fn concerned(
        &self,
        hook: &Hook,
        attributes: &Attributes<'_>,
        object: &Value,
        labels: &mut NamespaceLabels,
    ) -> Result<Option<Arc<Resource>>, StatusError> {
        // Rules first: they cost nothing, and most hooks are not about most writes.
        let Some(resource) = self.matched(hook, attributes) else { return Ok(None) };
        if let Some(selector) = &hook.objects {
            let matches = |object: &Value| {
                object.is_object() && selector.matches(meta::get(object, "labels").and_then(Value::as_object))
            };
            if !matches(object) && !attributes.old.is_some_and(matches) {
                return Ok(None);
            }
        }
        if let Some(selector) = &hook.namespaces
            && let Some(found) = labels.get(self, attributes, object).await?
            && !selector.matches(found.as_ref())
        {
            return Ok(None);
        }
        Ok(Some(resource))
    }

    /// The resource in the version in which the rules of a hook name it.
    fn matched(&self, hook: &Hook, attributes: &Attributes<'_>) -> Option<Arc<Resource>> {
        let resource = &attributes.target.resource;
        if hook.rules.iter().any(|rule| rule.matches(attributes, resource)) {
            return Some(Arc::clone(resource));
        }
        // Other versions are looked for only if it could be one of them.
        if !hook.equivalent || !hook.rules.iter().any(|rule| rule.names(attributes, resource)) {
            return None;
        }
        let versions = self.registrar.current().versions_of(&resource.prefix);
        let mut others = hook.rules.iter().flat_map(|rule| {
            let fits = |other: &&Arc<Resource>| {
                other.api_version != resource.api_version && rule.matches(attributes, other)
            };
            versions.iter().filter(fits)
        });
        others.next().cloned()
    }
}

/// The labels of the namespace of a write, read when the first hook asks for them.
#[derive(Default)]
pub(super) struct NamespaceLabels(Option<Option<Option<Map<String, Value>>>>);

impl NamespaceLabels {
    /// The labels; `None` if the object is in no namespace, which every selector matches.
    async fn get(
        &mut self,
        webhooks: &Webhooks,
        attributes: &Attributes<'_>,
        object: &Value,
    ) -> Result<&Option<Option<Map<String, Value>>>, StatusError> {
        if self.0.is_none() {
            self.0 = Some(read(webhooks, attributes, object).await?);
        }
        Ok(self.0.get_or_insert_default())
    }
}

async fn read(
    webhooks: &Webhooks,
    attributes: &Attributes<'_>,
    object: &Value,
) -> Result<Option<Option<Map<String, Value>>>, StatusError> {
    let labels = |object: &Value| meta::get(object, "labels").and_then(Value::as_object).cloned();
    let target = attributes.target;
    // A namespace is in itself, as it is going to be.
    if target.resource.is_core("namespaces") {
        let namespace = if object.is_object() { Some(object) } else { attributes.old };
        return Ok(namespace.map(labels));
    }
    let Some(name) = &target.namespace else { return Ok(None) };
    let key = format!("{}{name}", crate::resource::prefix("", "namespaces"));
    let (entry, namespaces) = (
        webhooks.storage.get(&key, None).await?.entry,
        webhooks.registrar.current().find("", "v1", "namespaces"),
    );
    let (Some(entry), Some(namespaces)) = (entry, namespaces) else {
        return Err(StatusError::not_found(
            crate::status_error::Subject { group: "", name: "namespaces" },
            name,
        ));
    };
    Ok(Some(labels(&namespaces.read(&entry)?)))
}

impl Rule {
    fn matches(&self, attributes: &Attributes<'_>, resource: &Resource) -> bool {
        self.names(attributes, resource)
            && any(&self.groups, &resource.group)
            && any(&self.versions, &resource.version)
    }

    /// Whether it matches in some group and version.
    fn names(&self, attributes: &Attributes<'_>, resource: &Resource) -> bool {
        let in_namespace = attributes.target.namespace.is_some() && !resource.is_core("namespaces");
        let scope = match self.scope.as_str() {
            "Namespaced" => in_namespace,
            "Cluster" => !in_namespace,
            _ => true,
        };
        let resources = self.resources.iter().any(|one| {
            let (plural, subresource) = one.split_once('/').unwrap_or((one, ""));
            (plural == "*" || plural == resource.plural)
                && (subresource == "*" || subresource == attributes.subresource)
        });
        scope && resources && any(&self.operations, operation(attributes.verb))
    }
}

fn any(list: &[String], word: &str) -> bool {
    list.iter().any(|one| one == "*" || one == word)
}

/// What a write is called in rules and reviews.
pub(super) fn operation(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "CREATE",
        Verb::Update => "UPDATE",
        Verb::Delete => "DELETE",
        Verb::Connect => "CONNECT",
    }
}

impl Webhooks {
    /// An object in another version.
    pub(super) async fn converted(
        &self,
        from: &Resource,
        to: &Resource,
        object: &Value,
    ) -> Result<Value, StatusError> {
        if object.is_null() || from.api_version == to.api_version || object["apiVersion"] != *from.api_version
        {
            return Ok(object.clone());
        }
        if let (Some(from), Some(kind)) = (from.builtin_kind(), to.builtin_kind()) {
            let mut object = kind.from_stored(from.to_stored(object.clone()));
            object["apiVersion"] = to.api_version.as_str().into();
            return Ok(object);
        }
        let converted = self.converter.object(from, object, to).await;
        converted.map_err(|failure| StatusError::internal(failure.message))
    }

    /// What is there before a write, in the version of a hook: of a Scale, the Scale.
    pub(super) async fn old(
        &self,
        attributes: &Attributes<'_>,
        resource: &Resource,
    ) -> Result<Value, StatusError> {
        let from = &attributes.target.resource;
        match (attributes.old, attributes.subresource) {
            (None, _) => Ok(Value::Null),
            (Some(old), "scale") => from.written_scale(old),
            (Some(old), _) => self.converted(from, resource, old).await,
        }
    }
}
