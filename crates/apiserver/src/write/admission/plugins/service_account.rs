//! Pods run as a ServiceAccount of their namespace: they are given its token and its pull secrets.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{Admitted, Attributes, Make, Plugin, Scope, Verb, done};
use crate::object::{meta, random};
use crate::write::Draft;
use crate::write::admission::listers::Listers;

pub(in crate::write::admission) const PLUGIN: (&str, Make) =
    ("ServiceAccount", |handles| Box::new(ServiceAccount(Arc::clone(&handles.listers))));

/// The account of Pods that name none.
const DEFAULT: &str = "default";

/// How long a Pod waits for the default account, which every namespace gets a moment after it was made.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);

/// What the names of token volumes begin with.
const VOLUME: &str = "kube-api-access-";

/// Where containers find the token.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How long a token is valid, in seconds; as upstream, which tells tokens of Pods by that.
const TOKEN_SECONDS: i64 = 3607;

/// The annotation of accounts whose Pods may use no other secrets than those of the account.
const ENFORCES: &str = "kubernetes.io/enforce-mountable-secrets";

/// What marks a Pod that a node has made by itself.
const MIRROR: &str = "kubernetes.io/config.mirror";

struct ServiceAccount(Arc<Listers>);

impl Plugin for ServiceAccount {
    fn handles(&self, scope: &Scope<'_>) -> bool {
        match scope.verb {
            Verb::Create => scope.is_of("", "pods"),
            Verb::Update => scope.subresource == "ephemeralcontainers" && scope.is_below("", "pods"),
            _ => false,
        }
    }

    fn mutate<'a>(&'a self, attributes: &'a Attributes<'a>, draft: &'a mut Draft) -> Admitted<'a> {
        if attributes.verb != Verb::Create {
            return done(Ok(()));
        }
        Box::pin(async move {
            let refuse = |pod: &Value, why: String| Err(attributes.forbidden_draft(pod, &why));
            let pod = &mut draft.object;
            if is_mirror(pod) {
                return check_mirror(pod).or_else(|why| refuse(pod, why));
            }
            if account_name(pod).is_empty() {
                let Some(Value::Object(spec)) = pod.get_mut("spec") else { return Ok(()) };
                for field in ["serviceAccountName", "serviceAccount"] {
                    spec.insert(field.into(), DEFAULT.into());
                }
            }
            let account = match self.account(attributes, account_name(pod)).await {
                Ok(account) => account,
                Err(why) => return refuse(pod, why),
            };
            if mounts_token(&account, pod) {
                mount_token(pod);
            }
            give_pull_secrets(&account, pod);
            check_secrets(&account, pod).or_else(|why| refuse(pod, why))
        })
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: &'a Value,
        _: &'a mut Vec<String>,
    ) -> Admitted<'a> {
        Box::pin(async move {
            let checked = match attributes.verb {
                Verb::Create if is_mirror(object) => check_mirror(object),
                _ => self.check(attributes, object).await,
            };
            checked.map_err(|why| attributes.forbidden(&why))
        })
    }
}

impl ServiceAccount {
    /// The account of a Pod. The default one is waited for.
    async fn account(&self, attributes: &Attributes<'_>, name: &str) -> Result<Arc<Value>, String> {
        let accounts = &self.0.service_accounts;
        let namespace = attributes.namespace_name();
        let mut changes = accounts.changes();
        let mut find = async || {
            loop {
                let found = accounts.get_in(namespace, name);
                if found.is_some() || name != DEFAULT || changes.changed().await.is_err() {
                    return found;
                }
            }
        };
        let found = timeout(LOOKUP_TIMEOUT, find()).await.ok().flatten();
        found.ok_or_else(|| {
            format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found")
        })
    }

    async fn check(&self, attributes: &Attributes<'_>, pod: &Value) -> Result<(), String> {
        let name = account_name(pod);
        if name.is_empty() {
            let namespace = attributes.namespace_name();
            return Err(format!("no service account specified for pod {namespace}/{}", meta::name(pod)));
        }
        let account = self.account(attributes, name).await?;
        match attributes.verb {
            Verb::Create => check_secrets(&account, pod),
            _ if enforces(&account) => {
                check_containers(&account, pod, "ephemeralContainers", "ephemeral container")
            }
            _ => Ok(()),
        }
    }
}

fn account_name(pod: &Value) -> &str {
    pod["spec"]["serviceAccountName"].as_str().unwrap_or_default()
}

fn is_mirror(pod: &Value) -> bool {
    meta::get(pod, "annotations").is_some_and(|annotations| annotations.get(MIRROR).is_some())
}

/// Refuses the Pod of a node that uses an account or a secret.
fn check_mirror(pod: &Value) -> Result<(), String> {
    if !account_name(pod).is_empty() {
        return Err("a mirror pod may not reference service accounts".to_owned());
    }
    const PLACES: [&str; 4] = ["volumes", "initContainers", "containers", "ephemeralContainers"];
    let has_pull_secrets = list(&pod["spec"]["imagePullSecrets"]).next().is_some();
    if has_pull_secrets || PLACES.iter().any(|place| mentions_secret(&pod["spec"][place])) {
        return Err("a mirror pod may not reference secrets".to_owned());
    }
    let projected = list(&pod["spec"]["volumes"]).flat_map(|volume| list(&volume["projected"]["sources"]));
    match projected.into_iter().any(|source| source["serviceAccountToken"].is_object()) {
        true => Err("a mirror pod may not use ServiceAccountToken volume projections".to_owned()),
        false => Ok(()),
    }
}

/// Whether volumes or containers name a secret anywhere.
fn mentions_secret(value: &Value) -> bool {
    const FIELDS: [&str; 5] = ["secret", "secretRef", "secretKeyRef", "nodePublishSecretRef", "secretName"];
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            FIELDS.contains(&name.as_str()) && !value.is_null() || mentions_secret(value)
        }),
        Value::Array(items) => items.iter().any(mentions_secret),
        _ => false,
    }
}

/// Whether a Pod gets a token: as it says, or as its account says.
fn mounts_token(account: &Value, pod: &Value) -> bool {
    let field = "automountServiceAccountToken";
    pod["spec"][field].as_bool().or(account[field].as_bool()).unwrap_or(true)
}

/// Mounts a token into every container that has nothing else there.
fn mount_token(pod: &mut Value) {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    let known = list_of(spec, "volumes").find_map(|volume| {
        let name = volume["name"].as_str()?;
        name.starts_with(VOLUME).then(|| name.to_owned())
    });
    let name = known.clone().unwrap_or_else(|| format!("{VOLUME}{}", random::suffix()));
    let mut is_needed = false;
    for containers in ["initContainers", "containers"] {
        let containers = spec.get_mut(containers).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            if list_of(container, "volumeMounts").any(|mount| mount["mountPath"] == MOUNT_PATH) {
                continue;
            }
            let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH});
            append(container, "volumeMounts", mount);
            is_needed = true;
        }
    }
    if known.is_none() && is_needed {
        append(spec, "volumes", json!({"name": name, "projected": token_source()}));
    }
}

/// What a token volume is made of: the token, the certificates of the server, and the namespace.
fn token_source() -> Value {
    json!({
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
            ]}},
        ],
    })
}

/// Gives a Pod without pull secrets those of its account.
fn give_pull_secrets(account: &Value, pod: &mut Value) {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    let names: Vec<Value> =
        list(&account["imagePullSecrets"]).map(|secret| json!({"name": secret["name"]})).collect();
    if list_of(spec, "imagePullSecrets").next().is_none() && !names.is_empty() {
        spec.insert("imagePullSecrets".into(), names.into());
    }
}

fn enforces(account: &Value) -> bool {
    let text = meta::get(account, "annotations").and_then(|annotations| annotations[ENFORCES].as_str());
    matches!(text, Some("1" | "t" | "T" | "true" | "TRUE" | "True"))
}

/// Refuses a Pod that uses secrets its account does not name, if the account insists on that.
fn check_secrets(account: &Value, pod: &Value) -> Result<(), String> {
    if !enforces(account) {
        return Ok(());
    }
    let spec = &pod["spec"];
    let mountable = names(&account["secrets"]);
    for volume in list(&spec["volumes"]).filter(|volume| volume["secret"].is_object()) {
        let secret = volume["secret"]["secretName"].as_str().unwrap_or_default();
        if !mountable.contains(secret) {
            return Err(format!(
                "volume with secret.secretName=\"{secret}\" is not allowed because service account {} does not reference that secret",
                meta::name(account)
            ));
        }
    }
    check_containers(account, pod, "initContainers", "init container")?;
    check_containers(account, pod, "containers", "container")?;
    let pullable = names(&account["imagePullSecrets"]);
    for (index, secret) in list(&spec["imagePullSecrets"]).enumerate() {
        let secret = secret["name"].as_str().unwrap_or_default();
        if !pullable.contains(secret) {
            return Err(format!(
                "imagePullSecrets[{index}].name=\"{secret}\" is not allowed because service account {} does not reference that imagePullSecret",
                meta::name(account)
            ));
        }
    }
    Ok(())
}

/// The same for what containers have in their environment.
fn check_containers(account: &Value, pod: &Value, containers: &str, word: &str) -> Result<(), String> {
    let mountable = names(&account["secrets"]);
    let refuse = |container: &Value, with: &str, secret: &str| {
        let (name, account) = (container["name"].as_str().unwrap_or_default(), meta::name(account));
        Err(format!(
            "{word} {name} with {with} referencing secret.secretName=\"{secret}\" is not allowed because service account {account} does not reference that secret"
        ))
    };
    for container in list(&pod["spec"][containers]) {
        for variable in list(&container["env"]) {
            if let Some(secret) = variable["valueFrom"]["secretKeyRef"]["name"].as_str()
                && !mountable.contains(secret)
            {
                let with = format!("envVar {}", variable["name"].as_str().unwrap_or_default());
                return refuse(container, &with, secret);
            }
        }
        for source in list(&container["envFrom"]) {
            if let Some(secret) = source["secretRef"]["name"].as_str()
                && !mountable.contains(secret)
            {
                return refuse(container, "envFrom", secret);
            }
        }
    }
    Ok(())
}

fn names(references: &Value) -> BTreeSet<&str> {
    list(references).filter_map(|reference| reference["name"].as_str()).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn list_of<'a>(fields: &'a Map<String, Value>, field: &str) -> impl Iterator<Item = &'a Value> {
    fields.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// Puts an item at the end of a list, which is made if it is missing.
fn append(fields: &mut Map<String, Value>, field: &str, item: Value) {
    let list = fields.entry(field).or_insert_with(|| json!([]));
    match list {
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}
