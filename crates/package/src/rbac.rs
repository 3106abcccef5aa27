//! The service account and its roles, and roles for people.

use serde_json::{Value, json};
use watchkeeper_description::Roles;

use crate::Renderer;
use crate::definition::Definition;
use crate::error::Error;
use crate::file::File;
use crate::operator::Operator;

pub(crate) const RENDERER: Renderer = Renderer {
    name: "rbac",
    about: "the service account with exactly the rights that the program declares, and roles for people",
    owns: &["rbac.yaml"],
    render,
};

fn render(operator: &Operator<'_>) -> Result<Vec<File>, Error> {
    Ok(vec![File::yaml("rbac.yaml", &objects(operator))])
}

/// The service account, its roles and their bindings, and the roles for people.
pub(crate) fn objects(operator: &Operator<'_>) -> Vec<Value> {
    objects_in(operator, &operator.roles())
}

/// The same with these roles.
pub(crate) fn objects_in(operator: &Operator<'_>, roles: &Roles) -> Vec<Value> {
    let (name, namespace) = (operator.name(), operator.namespace());
    let mut objects = vec![json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace, "labels": operator.labels()},
    })];
    objects.extend(roles.objects(name, &namespace, &operator.labels()));
    objects.extend(people(operator));
    objects
}

/// Who may look at objects of these kinds and who may change them. They become part of the roles `view`, `edit` and `admin`.
fn people(operator: &Operator<'_>) -> Vec<Value> {
    if operator.definitions.is_empty() {
        return Vec::new();
    }
    let role = |suffix: &str, into: &[&str], rules: Vec<Value>| {
        let mut labels = operator.labels();
        for role in into {
            labels[format!("rbac.authorization.k8s.io/aggregate-to-{role}")] = json!("true");
        }
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": format!("{}-{suffix}", operator.name()), "labels": labels},
            "rules": rules,
        })
    };
    vec![
        role("view", &["admin", "edit", "view"], viewers(&operator.definitions)),
        role("edit", &["admin", "edit"], editors(&operator.definitions)),
    ]
}

pub(crate) fn viewers(definitions: &[Definition<'_>]) -> Vec<Value> {
    let verbs = ["get", "list", "watch"];
    definitions
        .iter()
        .map(|of| rule(of, json!([of.plural, format!("{}/status", of.plural)]), &verbs))
        .collect()
}

pub(crate) fn editors(definitions: &[Definition<'_>]) -> Vec<Value> {
    let verbs = ["create", "delete", "deletecollection", "patch", "update"];
    definitions.iter().map(|of| rule(of, json!([of.plural]), &verbs)).collect()
}

fn rule(definition: &Definition<'_>, resources: Value, verbs: &[&str]) -> Value {
    json!({"apiGroups": [definition.group], "resources": resources, "verbs": verbs})
}
