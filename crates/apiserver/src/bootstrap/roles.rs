//! Creates the roles and bindings that every cluster has, and restores what is missing in them, when the server starts.

use serde_json::{Value, json};
use watchkeeper_rbac::bootstrap::Bootstrap;
use watchkeeper_rbac::{self as rbac, Rule};

use super::change::Change;
use crate::access::GROUP;
use crate::object::meta;
use crate::server::{Error, Server};

/// The annotation that says whether an object is restored.
const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
/// Says where an object comes from.
const LABEL: &str = "kubernetes.io/bootstrapping";

/// The roles and bindings that are missing, and those that lack something.
pub(super) async fn missing(server: &Server) -> Result<Vec<Change>, Error> {
    let all = Bootstrap::new();
    let roles = all.cluster_roles.iter().map(|role| ("clusterroles", role.value()));
    let local = all.roles.iter().map(|role| ("roles", role.value()));
    let bindings = all.bindings.iter().map(|binding| match binding.namespace.as_str() {
        "" => ("clusterrolebindings", binding.value()),
        _ => ("rolebindings", binding.value()),
    });
    let mut changes = Vec::new();
    for (plural, object) in roles.chain(local).chain(bindings) {
        changes.extend(change(server, plural, object).await?);
    }
    Ok(changes)
}

async fn change(server: &Server, plural: &str, mut wanted: Value) -> Result<Option<Change>, Error> {
    let what = format!("{plural} {}", meta::name(&wanted));
    let Some(resource) = server.registry().find(GROUP, "v1", plural) else {
        return Err(Error::Bootstrap { what, why: "not served".into() });
    };
    let namespace = meta::text(&wanted, "namespace").to_owned();
    let namespace = Some(namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let key = resource.key(namespace, meta::name(&wanted));
    if let Some(entry) = server.storage.get(&key, None).await?.entry {
        let Ok(mut object) = resource.read(&entry) else { return Ok(None) };
        if object["metadata"]["annotations"][AUTOUPDATE] == "false" || !add_missing(&mut object, &wanted) {
            return Ok(None);
        }
        let (replaces, value) = (Some(entry.modified), resource.encode(&object));
        return Ok(Some(Change { key, replaces, value }));
    }
    complete(server, &mut wanted);
    Ok(Some(Change { key, replaces: None, value: resource.encode(&wanted) }))
}

/// Gives a new object what every object has. It is written by hand, and not as the objects of clients are, because there are
/// many and every start of a server in memory makes them all.
fn complete(server: &Server, object: &mut Value) {
    let now = server.options.clock.stamp();
    let mut labels = object["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    labels.insert(LABEL.into(), "rbac-defaults".into());
    let owned = |names: &mut dyn Iterator<Item = &String>| {
        let mut fields = json!({".": {}});
        names.for_each(|name| fields[format!("f:{name}")] = json!({}));
        fields
    };
    let mut fields = json!({"f:metadata": {
        "f:annotations": owned(&mut std::iter::once(&AUTOUPDATE.to_owned())),
        "f:labels": owned(&mut labels.keys()),
    }});
    for field in ["roleRef", "rules", "subjects"] {
        if object.get(field).is_some() {
            fields[format!("f:{field}")] = json!({});
        }
    }
    if object.get("aggregationRule").is_some() {
        fields["f:aggregationRule"] = json!({".": {}, "f:clusterRoleSelectors": {}});
    }
    let managed = json!([{
        "apiVersion": object["apiVersion"], "fieldsType": "FieldsV1", "fieldsV1": fields,
        "manager": "watchkeeper", "operation": "Update", "time": now,
    }]);
    let metadata = crate::object::meta::metadata(object);
    metadata.insert("annotations".into(), json!({AUTOUPDATE: "true"}));
    metadata.insert("creationTimestamp".into(), now.into());
    metadata.insert("labels".into(), Value::Object(labels));
    metadata.insert("managedFields".into(), managed);
    metadata.insert("uid".into(), crate::object::random::uid().into());
}

/// Adds fields of `wanted` that are missing. Returns whether anything was added.
fn add_missing(object: &mut Value, wanted: &Value) -> bool {
    if !wanted["aggregationRule"].is_null() {
        // Its rules are worked out from those of others.
        let lacks = object["aggregationRule"].is_null();
        if lacks {
            object["aggregationRule"] = wanted["aggregationRule"].clone();
        }
        return lacks;
    }
    let mut lacked = false;
    let rules = rbac::missing(&Rule::read_all(&object["rules"]), &Rule::read_all(&wanted["rules"]));
    if !rules.is_empty() {
        let rules = rules.iter().map(Rule::value);
        match object["rules"].as_array_mut() {
            Some(known) => known.extend(rules),
            None => object["rules"] = rules.collect(),
        }
        lacked = true;
    }
    for subject in wanted["subjects"].as_array().into_iter().flatten() {
        match object["subjects"].as_array_mut() {
            Some(known) if known.contains(subject) => {}
            Some(known) => {
                known.push(subject.clone());
                lacked = true;
            }
            None => {
                object["subjects"] = json!([subject]);
                lacked = true;
            }
        }
    }
    lacked
}
