//! The objects by which an API server knows of webhooks, made from the webhooks. Without I/O.

use std::hash::{DefaultHasher, Hash, Hasher};

use kube_core::crd::merge_crds;
use serde_json::{Map, Value, json};
use watchkeeper_go::base64;

use crate::service::CONVERT;
use crate::webhook::AnyWebhook;

/// Where a number stands that only grows: an object with a larger one was written by who knew more.
pub(crate) const SEQUENCE: &str = "webhook.watchkeeper.dev/sequence";
/// Where it stands what was applied, so that a program knows whether it was its own version.
pub(crate) const APPLIED: &str = "webhook.watchkeeper.dev/applied";

/// How an API server reaches the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// Under this URL, to which paths are added: `https://127.0.0.1:9443`.
    Url(String),
    /// Through a Service.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
    },
}

impl Endpoint {
    fn client_config(&self, path: &str) -> Value {
        match self {
            Self::Url(base) => json!({"url": format!("{}{path}", base.trim_end_matches('/'))}),
            Self::Service { namespace, name, port } => {
                json!({"service": {"namespace": namespace, "name": name, "path": path, "port": port}})
            }
        }
    }
}

/// One object that says where webhooks are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Configuration {
    pub(crate) kind: ConfigurationKind,
    pub(crate) name: String,
    /// The object as it should be, without bundles of authorities.
    pub(crate) body: Value,
    /// Whether somebody else installs the object, empty, and deletes it. It is never created here.
    pub(crate) installed_by_others: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConfigurationKind {
    Mutating,
    Validating,
    /// The whole definition of a kind, with its conversion.
    Definition,
    /// The conversion of a kind whose definition somebody else installs.
    Conversion,
}

impl ConfigurationKind {
    /// The path of all objects of the kind.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Mutating => "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            Self::Validating => "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            Self::Definition | Self::Conversion => "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        }
    }

    fn type_meta(self) -> (&'static str, &'static str) {
        match self {
            Self::Mutating => ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
            Self::Validating => ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
            Self::Definition | Self::Conversion => ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        }
    }
}

/// What the configurations of a program depend on.
pub(crate) struct Setting<'a> {
    /// The name of the program, which is that of its configurations.
    pub(crate) name: &'a str,
    pub(crate) endpoint: &'a Endpoint,
    /// The namespace that the program runs in, if others than its own kinds should not wait for it there.
    pub(crate) own_namespace: Option<&'a str>,
    /// Whether the program installs this definition.
    pub(crate) installs: &'a dyn Fn(&str) -> bool,
    /// Whether somebody else installs the configurations of admission webhooks, empty.
    pub(crate) installed_by_others: bool,
}

/// All configurations of these webhooks. The error says which versions of a kind do not fit together.
pub(crate) fn configurations(
    webhooks: &[AnyWebhook],
    setting: &Setting<'_>,
) -> Result<Vec<Configuration>, String> {
    let mut found = Vec::new();
    for (kind, what) in [(ConfigurationKind::Mutating, "mutate"), (ConfigurationKind::Validating, "validate")]
    {
        let entries: Vec<Value> =
            webhooks.iter().filter_map(|webhook| admission(webhook, what, setting)).collect();
        if !entries.is_empty() {
            found.push(Configuration {
                kind,
                name: setting.name.to_owned(),
                body: json!({"webhooks": entries}),
                installed_by_others: setting.installed_by_others,
            });
        }
    }
    for webhook in webhooks.iter().filter(|webhook| webhook.conversions.is_some()) {
        let definition = definition(webhook, setting.endpoint)?;
        let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let installs = (setting.installs)(&name);
        let (kind, spec) = match installs {
            true => (ConfigurationKind::Definition, definition["spec"].clone()),
            false => (ConfigurationKind::Conversion, json!({"conversion": definition["spec"]["conversion"]})),
        };
        found.push(Configuration { kind, name, body: json!({"spec": spec}), installed_by_others: !installs });
    }
    Ok(found)
}

fn admission(webhook: &AnyWebhook, what: &str, setting: &Setting<'_>) -> Option<Value> {
    let mut entry = entry(webhook, what)?;
    entry["clientConfig"] = setting.endpoint.client_config(&webhook.path(what));
    // The pods that serve the webhook do not wait for it.
    if let Some(namespace) = setting.own_namespace.filter(|_| !webhook.is_own) {
        entry["namespaceSelector"] = json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [namespace]},
        ]});
    }
    Some(entry)
}

/// What an API server is told of a webhook, but for the way to it: `mutate` or `validate`, if the webhook does that.
pub(crate) fn entry(webhook: &AnyWebhook, what: &str) -> Option<Value> {
    let operations: Vec<&str> = match what {
        "mutate" => webhook.default.as_ref().map(|_| vec!["CREATE", "UPDATE"])?,
        _ => {
            webhook.validate.as_ref()?;
            let mut operations = webhook.validated.clone();
            operations.sort_unstable();
            operations.dedup();
            operations.iter().map(|operation| operation.name()).collect()
        }
    };
    let resource = &webhook.resource;
    Some(json!({
        "name": webhook.name(what),
        "rules": [{
            "apiGroups": [resource.group],
            "apiVersions": [resource.version],
            "resources": [resource.plural],
            "operations": operations,
            "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        }],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": webhook.failure_policy.name(),
        "matchPolicy": "Equivalent",
        "timeoutSeconds": webhook.timeout.as_secs(),
    }))
}

/// The definition of a kind with all its versions, and its conversion.
pub(crate) fn definition(webhook: &AnyWebhook, endpoint: &Endpoint) -> Result<Value, String> {
    let definitions: Vec<_> = webhook.definitions.iter().map(|definition| definition()).collect();
    let stored = webhook.stored.as_deref().unwrap_or(&webhook.resource.version);
    let of = &webhook.resource.kind;
    let merged = merge_crds(definitions, stored).map_err(|error| format!("the versions of {of}: {error}"))?;
    let mut value = serde_json::to_value(merged).map_err(|error| format!("the versions of {of}: {error}"))?;
    value["apiVersion"] = "apiextensions.k8s.io/v1".into();
    value["kind"] = "CustomResourceDefinition".into();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("status");
    }
    value["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": endpoint.client_config(CONVERT),
            "conversionReviewVersions": ["v1"],
        },
    });
    Ok(value)
}

impl Configuration {
    /// The path of the object.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.kind.path(), self.name)
    }

    /// A short text that differs where what is applied differs, bundles aside.
    pub(crate) fn mark(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.body.to_string().hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// The object as it is applied, with these authorities: none leaves them to somebody else.
    pub(crate) fn object(&self, bundle: Option<&str>, sequence: u64) -> Value {
        self.dressed(self.body.clone(), bundle, sequence, &self.mark())
    }

    /// What another version of the program applied, with these authorities.
    pub(crate) fn rebundled(&self, live: &Value, bundle: Option<&str>, sequence: u64) -> Value {
        let mark = live["metadata"]["annotations"][APPLIED].as_str().unwrap_or_default();
        let body = match self.kind {
            ConfigurationKind::Mutating | ConfigurationKind::Validating => {
                json!({"webhooks": live["webhooks"]})
            }
            ConfigurationKind::Definition => json!({"spec": live["spec"]}),
            ConfigurationKind::Conversion => json!({"spec": {"conversion": live["spec"]["conversion"]}}),
        };
        self.dressed(body, bundle, sequence, mark)
    }

    fn dressed(&self, mut object: Value, bundle: Option<&str>, sequence: u64, mark: &str) -> Value {
        if let Some(bundle) = bundle {
            let bundle: Value = base64::encode(bundle).into();
            for config in clients(&mut object) {
                config.insert("caBundle".into(), bundle.clone());
            }
        }
        let (api_version, kind) = self.kind.type_meta();
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({
            "name": self.name,
            "annotations": {SEQUENCE: sequence.to_string(), APPLIED: mark},
        });
        object
    }

    /// Why there is nothing to keep up to date, if the object is missing and somebody else has to install it.
    pub(crate) fn missing(&self) -> Option<String> {
        let kind = self.kind.type_meta().1;
        self.installed_by_others.then(|| {
            format!(
                "{kind} {} is not installed, and this program was told that others install it (--install-definitions=false): apply the \
                 manifests or the chart that `watchkeeper generate` made for it",
                self.name
            )
        })
    }

    /// An object with which nothing begins yet, to be applied to afterwards; `None` where there is no such thing.
    pub(crate) fn skeleton(&self) -> Option<Value> {
        let (api_version, kind) = self.kind.type_meta();
        match self.kind {
            ConfigurationKind::Mutating | ConfigurationKind::Validating => {
                Some(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": self.name}}))
            }
            ConfigurationKind::Definition | ConfigurationKind::Conversion => None,
        }
    }

    /// Removes the other way to the program from a definition that is to be applied: a server takes a URL or a Service, and whoever has
    /// created the definition, such as this program on a laptop, may own the other one. Says whether there is one; then the object has to
    /// be merged, since applying leaves what others own.
    pub(crate) fn remove_other_way(&self, live: &Value, object: &mut Value) -> bool {
        const CLIENT: &str = "/spec/conversion/webhook/clientConfig";
        let (Some(live), Some(wanted)) = (live.pointer(CLIENT), object.pointer_mut(CLIENT)) else {
            return false;
        };
        let is_other =
            |way: &&str| live.get(*way).is_some_and(|value| !value.is_null()) && wanted.get(*way).is_none();
        let others: Vec<&str> = ["url", "service"].into_iter().filter(is_other).collect();
        for way in &others {
            wanted[*way] = Value::Null;
        }
        !others.is_empty()
    }

    /// What an object of the server shows.
    pub(crate) fn shown(&self, live: &Value) -> Shown {
        let annotation = |name: &str| live["metadata"]["annotations"][name].as_str().unwrap_or_default();
        let bundles = bundles(live);
        let bundle = bundles.first().filter(|first| bundles.iter().all(|other| other == *first)).cloned();
        let mark = annotation(APPLIED);
        // One that nobody has marked is ours to make; a definition may be stored in other words than it was sent.
        let is_ours = mark.is_empty() || mark == self.mark();
        let is_admission = matches!(self.kind, ConfigurationKind::Mutating | ConfigurationKind::Validating);
        Shown {
            sequence: annotation(SEQUENCE).parse().unwrap_or(0),
            is_ours,
            has_drifted: is_ours && is_admission && !contains(live, &self.body),
            in_force: is_admission || is_established(live),
            bundle: bundle.unwrap_or_default(),
        }
    }
}

/// What a configuration of the server shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shown {
    /// How much its writer knew.
    pub(crate) sequence: u64,
    /// Whether this version of the program has applied it, or nobody has.
    pub(crate) is_ours: bool,
    /// Whether it is ours and somebody has changed it since.
    pub(crate) has_drifted: bool,
    /// Whether the server goes by it: a definition is not served at once.
    pub(crate) in_force: bool,
    /// The authorities that all of its webhooks have; empty if they differ.
    pub(crate) bundle: String,
}

/// The annotations that have somebody else fill in the authorities: cert-manager's cainjector, OpenShift's service-ca.
const INJECTED: [&str; 4] = [
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
    "service.beta.openshift.io/inject-cabundle",
];

/// Whether somebody else fills in the authorities of an object of the server.
pub(crate) fn is_injected(live: &Value) -> bool {
    INJECTED.iter().any(|name| live["metadata"]["annotations"][name].is_string())
}

/// The authorities of each webhook of an object of the server, in PEM; empty where there are none.
pub(crate) fn bundles(live: &Value) -> Vec<String> {
    let mut copy = live.clone();
    let bundles = clients(&mut copy).map(|config| {
        let bundle = config.get("caBundle").and_then(Value::as_str).unwrap_or_default();
        base64::decode(bundle).ok().and_then(|text| String::from_utf8(text).ok()).unwrap_or_default()
    });
    bundles.collect()
}

/// Every `clientConfig` of a configuration or of a definition.
fn clients(object: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    let (webhooks, conversion) = match object.get("spec").is_some() {
        true => (None, object.pointer_mut("/spec/conversion/webhook/clientConfig")),
        false => (object.get_mut("webhooks"), None),
    };
    let webhooks = webhooks.and_then(Value::as_array_mut).into_iter().flatten();
    let webhooks = webhooks.filter_map(|webhook| webhook.get_mut("clientConfig"));
    webhooks.chain(conversion).filter_map(Value::as_object_mut)
}

fn is_established(definition: &Value) -> bool {
    let mut conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

/// Whether an object has everything that another one says, and perhaps more.
fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| live.get(name).is_some_and(|live| contains(live, wanted)))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| contains(live, wanted))
        }
        _ => live == wanted,
    }
}
