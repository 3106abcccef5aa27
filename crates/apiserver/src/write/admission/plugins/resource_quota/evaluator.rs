//! What objects are charged for, by kind.

use serde_json::Value;
use watchkeeper_kinds::Quantity;

use super::super::persistent_volume_claim_resize::class;
use super::pod_resources::{self, Amounts, ResourceList};
use super::scope::{self, Selector};
use crate::resource::Resource;
use crate::write::admission::Verb;

/// How the objects of a resource are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Evaluator {
    Pods,
    Services,
    VolumeClaims,
    ResourceClaims,
    /// One each, under these names.
    Count(Vec<String>),
}

/// What is done about a write of an object that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Enforcement {
    /// It is refused if there is not enough left.
    Refuse,
    /// It is counted.
    Count,
    /// Nothing, unless the server counts everything.
    Ignore,
}

/// The most devices that one request can be given.
const MOST_DEVICES: i64 = 32;

const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
const DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";

/// The name by which the number of all objects of a resource is limited.
fn count(group: &str, plural: &str) -> String {
    match group {
        "" => format!("count/{plural}"),
        group => format!("count/{plural}.{group}"),
    }
}

impl Evaluator {
    /// How a resource is counted; `None` if it is not.
    pub(crate) fn of(resource: &Resource) -> Option<Self> {
        if !resource.namespaced || !resource.is_stored() {
            return None;
        }
        let (group, plural) = (resource.group.as_str(), resource.plural.as_str());
        if resource.builtin_kind().is_none() {
            return Some(Self::Count(vec![count(group, plural)]));
        }
        match (group, plural) {
            ("" | "events.k8s.io", "events") => None,
            ("", "pods") => Some(Self::Pods),
            ("", "services") => Some(Self::Services),
            ("", "persistentvolumeclaims") => Some(Self::VolumeClaims),
            ("resource.k8s.io", "resourceclaims") => Some(Self::ResourceClaims),
            // These had names of their own before there was one for everything.
            ("", "configmaps" | "resourcequotas" | "replicationcontrollers" | "secrets") => {
                Some(Self::Count(vec![plural.to_owned(), count(group, plural)]))
            }
            _ => Some(Self::Count(vec![count(group, plural)])),
        }
    }

    /// Whether it takes the objects to count them, and not only their number.
    pub(crate) fn reads_objects(&self) -> bool {
        !matches!(self, Self::Count(_))
    }

    /// Whether something that a quota limits is counted here.
    pub(crate) fn counts(&self, name: &str) -> bool {
        match self {
            Self::Pods => {
                matches!(
                    name,
                    "count/pods"
                        | "pods"
                        | "cpu"
                        | "memory"
                        | "ephemeral-storage"
                        | "requests.cpu"
                        | "requests.memory"
                        | "requests.ephemeral-storage"
                        | "limits.cpu"
                        | "limits.memory"
                        | "limits.ephemeral-storage"
                ) || name.strip_prefix("requests.").unwrap_or(name).starts_with("hugepages-")
                    || is_extended(name)
            }
            Self::Services => {
                matches!(
                    name,
                    "count/services" | "services" | "services.nodeports" | "services.loadbalancers"
                )
            }
            Self::VolumeClaims => {
                let name = name.split_once(STORAGE_CLASS).map_or(name, |(_, name)| name);
                matches!(name, "count/persistentvolumeclaims" | "persistentvolumeclaims" | "requests.storage")
            }
            Self::ResourceClaims => {
                name == "count/resourceclaims.resource.k8s.io" || name.ends_with(DEVICE_CLASS)
            }
            Self::Count(names) => names.iter().any(|known| known == name),
        }
    }

    /// Whether an object is one of those that a scope is about.
    pub(super) fn is_in_scope(&self, object: &Value, selector: &Selector<'_>) -> bool {
        match self {
            Self::Pods => scope::has_pod(object, selector),
            Self::VolumeClaims => scope::has_claim(object, selector),
            _ => false,
        }
    }

    /// What is done about a write.
    pub(super) fn enforcement(&self, verb: Verb, subresource: &str, objects: [&Value; 2]) -> Enforcement {
        let [old, new] = objects;
        match (self, verb, subresource) {
            (_, Verb::Create, "") => Enforcement::Refuse,
            (Self::Pods, Verb::Update, "") if scope::is_terminating(old) != scope::is_terminating(new) => {
                Enforcement::Refuse
            }
            (Self::Pods, Verb::Update, "resize") => Enforcement::Refuse,
            (Self::Services | Self::VolumeClaims | Self::ResourceClaims, Verb::Update, "") => {
                Enforcement::Refuse
            }
            (Self::VolumeClaims, Verb::Update, "status") => Enforcement::Count,
            _ => Enforcement::Ignore,
        }
    }

    /// Refuses an object that does not say what it needs of something that is limited.
    pub(super) fn check(&self, limited: &[&String], object: &Value) -> Result<(), String> {
        const NEEDED: [&str; 6] =
            ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];
        if *self != Self::Pods || pod_resources::has_pod_level(&object["spec"]) {
            return Ok(());
        }
        let mut missing = Vec::new();
        for name in NEEDED.iter().filter(|name| limited.iter().any(|limited| limited == *name)) {
            let (list, resource) = match name.split_once('.') {
                Some(("limits", resource)) => ("limits", resource),
                Some((_, resource)) => ("requests", resource),
                None => ("requests", *name),
            };
            let mut silent: Vec<&str> = ["containers", "initContainers"]
                .into_iter()
                .flat_map(|containers| object["spec"][containers].as_array().into_iter().flatten())
                .filter(|container| container["resources"][list][resource].is_null())
                .map(|container| container["name"].as_str().unwrap_or_default())
                .collect();
            silent.sort_unstable();
            silent.dedup();
            if !silent.is_empty() {
                missing.push(format!("{name} for: {}", silent.join(",")));
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(format!("must specify {}", missing.join("; "))) }
    }

    /// What an object is charged for.
    pub(crate) fn usage(&self, object: &Value) -> ResourceList {
        match self {
            Self::Pods => pod(object),
            Self::Services => service(object),
            Self::VolumeClaims => volume_claim(object),
            Self::ResourceClaims => resource_claim(object),
            Self::Count(names) => names.iter().map(|name| (name.clone(), Quantity::of(1))).collect(),
        }
    }
}

/// Whether this limits what is asked for of a resource that is not Kubernetes' own.
fn is_extended(name: &str) -> bool {
    name.starts_with("requests.")
        && (name.contains('/') && !name.contains("kubernetes.io/")
            || name.starts_with("requests.deviceclass.resource.kubernetes.io/"))
}

/// Pods are counted until they are gone, and charged for what they ask for until they have ended.
fn pod(pod: &Value) -> ResourceList {
    let mut usage = ResourceList::from([("count/pods".to_owned(), Quantity::of(1))]);
    if matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) {
        return usage;
    }
    usage.insert("pods".into(), Quantity::of(1));
    for (name, amount) in pod_resources::charged(pod, Amounts::Requests) {
        let is_short =
            matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
        usage.insert(format!("requests.{name}"), amount);
        if is_short {
            usage.insert(name, amount);
        }
    }
    for (name, amount) in pod_resources::charged(pod, Amounts::Limits) {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            usage.insert(format!("limits.{name}"), amount);
        }
    }
    usage
}

fn service(service: &Value) -> ResourceList {
    let spec = &service["spec"];
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let own = ports.iter().filter(|port| port["nodePort"].as_i64().is_some_and(|port| port != 0)).count();
    let (node_ports, balancers) = match spec["type"].as_str().unwrap_or_default() {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" if spec["allocateLoadBalancerNodePorts"] == false => (own, 1),
        "LoadBalancer" => (ports.len(), 1),
        _ => (0, 0),
    };
    let node_ports = i64::try_from(node_ports).unwrap_or(i64::MAX);
    [
        ("count/services", 1),
        ("services", 1),
        ("services.nodeports", node_ports),
        ("services.loadbalancers", balancers),
    ]
    .map(|(name, number)| (name.to_owned(), Quantity::of(number)))
    .into()
}

fn volume_claim(claim: &Value) -> ResourceList {
    let one = |name: &str| (name.to_owned(), Quantity::of(1));
    let mut usage = ResourceList::from([one("persistentvolumeclaims"), one("count/persistentvolumeclaims")]);
    let class = class(claim);
    if !class.is_empty() {
        usage.extend([one(&format!("{class}{STORAGE_CLASS}persistentvolumeclaims"))]);
    }
    let Some(mut size) = pod_resources::quantity(&claim["spec"]["resources"]["requests"]["storage"]) else {
        return usage;
    };
    // A claim that was to grow and could not is charged for what it was given.
    if let Some(given) = pod_resources::quantity(&claim["status"]["allocatedResources"]["storage"])
        && given.compare(&size) == Some(std::cmp::Ordering::Greater)
    {
        size = given;
    }
    let size = size.rounded_up();
    usage.insert("requests.storage".into(), size);
    if !class.is_empty() {
        usage.insert(format!("{class}{STORAGE_CLASS}requests.storage"), size);
    }
    usage
}

fn resource_claim(claim: &Value) -> ResourceList {
    let name = "count/resourceclaims.resource.k8s.io".to_owned();
    let mut usage = ResourceList::from([(name, Quantity::of(1))]);
    let devices = |request: &Value| {
        let number = match request["allocationMode"].as_str() {
            Some("ExactCount") => request["count"].as_i64().unwrap_or_default(),
            Some("All") => MOST_DEVICES,
            _ => 0,
        };
        (format!("{}{DEVICE_CLASS}", request["deviceClassName"].as_str().unwrap_or_default()), number)
    };
    for request in claim["spec"]["devices"]["requests"].as_array().into_iter().flatten() {
        let mut most = std::collections::BTreeMap::new();
        let ways = request["firstAvailable"].as_array().filter(|ways| !ways.is_empty());
        match (ways, &request["exactly"]) {
            (Some(ways), _) => {
                for (name, number) in ways.iter().map(devices) {
                    let known = most.entry(name).or_insert(0);
                    *known = number.max(*known);
                }
            }
            (None, exactly) if exactly.is_object() => most.extend([devices(exactly)]),
            _ => {}
        }
        let most = most.into_iter().map(|(name, number)| (name, Quantity::of(number))).collect();
        pod_resources::add(&mut usage, &most);
    }
    usage
}
