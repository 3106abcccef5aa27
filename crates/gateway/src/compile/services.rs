use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use watchkeeper_core::Key;
use watchkeeper_front::ServerCertificate;
use watchkeeper_go::base64;

use crate::object::{Input, InputKind, ObjectId};

/// The label of an EndpointSlice that names its Service.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// The endpoints of Services, as EndpointSlices tell them.
#[derive(Debug, Default)]
pub(super) struct Services {
    /// The names of the ports of Services, by number.
    ports: HashMap<Key, Vec<ServicePort>>,
    /// The slices of each Service.
    slices: HashMap<Key, BTreeMap<Key, Slice>>,
    /// The Service of each slice.
    owners: HashMap<Key, Key>,
}

/// A port of a Service.
#[derive(Debug)]
struct ServicePort {
    number: u16,
    name: String,
    /// What is spoken there, if the Service says it.
    protocol: Option<String>,
}

#[derive(Debug, Default)]
struct Slice {
    /// Name and number.
    ports: Vec<(String, u16)>,
    addresses: Vec<String>,
}

impl Services {
    /// Takes a Service or a slice; says which Services are concerned.
    pub(super) fn put(&mut self, input: &Input) -> Vec<Key> {
        let (key, json) = (&input.id.key, input.json.read());
        if input.id.kind == InputKind::Service {
            self.ports.insert(key.clone(), service_ports(&json));
            return vec![key.clone()];
        }
        let mut concerned = self.remove(&input.id);
        let label = json.pointer("/metadata/labels").and_then(|labels| labels.get(SERVICE_LABEL));
        if let Some(name) = label.and_then(Value::as_str) {
            let service = Key::new(key.namespace(), name);
            self.slices.entry(service.clone()).or_default().insert(key.clone(), slice(&json));
            self.owners.insert(key.clone(), service.clone());
            concerned.push(service);
        }
        concerned.dedup();
        concerned
    }

    /// Forgets a Service or a slice; says which Services are concerned.
    pub(super) fn remove(&mut self, id: &ObjectId) -> Vec<Key> {
        if id.kind == InputKind::Service {
            self.ports.remove(&id.key);
            return vec![id.key.clone()];
        }
        let Some(service) = self.owners.remove(&id.key) else { return Vec::new() };
        if let Some(slices) = self.slices.get_mut(&service) {
            slices.remove(&id.key);
            if slices.is_empty() {
                self.slices.remove(&service);
            }
        }
        vec![service]
    }

    /// Whether there is a Service with this port.
    pub(super) fn has_port(&self, service: &Key, port: u16) -> bool {
        self.port(service, port).is_some()
    }

    /// Whether HTTP/2 without TLS is spoken on a port of a Service.
    pub(super) fn speaks_http2(&self, service: &Key, port: u16) -> bool {
        self.port(service, port).is_some_and(|port| port.protocol.as_deref() == Some("kubernetes.io/h2c"))
    }

    fn port(&self, service: &Key, port: u16) -> Option<&ServicePort> {
        self.ports.get(service)?.iter().find(|known| known.number == port)
    }

    /// The servers of a port of a Service, as `address:port`, in their order.
    pub(super) fn addresses(&self, service: &Key, port: u16) -> Vec<String> {
        let name = self.port(service, port).map(|port| &port.name);
        let mut found = Vec::new();
        for slice in self.slices.get(service).into_iter().flat_map(BTreeMap::values) {
            // Without the Service, a slice with one port is not ambiguous.
            let target = match (name, slice.ports.as_slice()) {
                (Some(name), ports) => ports.iter().find(|(port, _)| port == name).map(|(_, number)| *number),
                (None, [(_, only)]) => Some(*only),
                (None, _) => None,
            };
            let Some(target) = target else { continue };
            found.extend(slice.addresses.iter().map(|address| match address.contains(':') {
                true => format!("[{address}]:{target}"),
                false => format!("{address}:{target}"),
            }));
        }
        found.sort();
        found.dedup();
        found
    }
}

fn number(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|number| u16::try_from(number).ok())
}

fn name(value: &Value) -> String {
    value["name"].as_str().unwrap_or_default().to_owned()
}

fn service_ports(service: &Value) -> Vec<ServicePort> {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array);
    let read = |port: &Value| {
        let protocol = port["appProtocol"].as_str().map(str::to_owned);
        Some(ServicePort { number: number(&port["port"])?, name: name(port), protocol })
    };
    ports.into_iter().flatten().filter_map(read).collect()
}

fn slice(slice: &Value) -> Slice {
    let ports = slice["ports"].as_array().into_iter().flatten();
    let ports = ports.filter_map(|port| Some((name(port), number(&port["port"])?))).collect();
    let is_ready = |endpoint: &&Value| endpoint["conditions"]["ready"].as_bool().unwrap_or(true);
    let endpoints = slice["endpoints"].as_array().into_iter().flatten().filter(is_ready);
    // Of the addresses of an endpoint, the first counts.
    let addresses =
        endpoints.filter_map(|endpoint| endpoint["addresses"].get(0)?.as_str().map(str::to_owned));
    Slice { ports, addresses: addresses.collect() }
}

/// The certificate with its key in a Secret. Says nothing of what is in it.
pub(super) fn certificate(secret: &Value) -> Result<ServerCertificate, String> {
    let part = |name: &str| {
        let coded = secret["data"].get(name).and_then(Value::as_str);
        let decoded = coded.and_then(|coded| base64::decode(coded).ok());
        let plain =
            || secret["stringData"].get(name).and_then(Value::as_str).map(|text| text.as_bytes().to_vec());
        decoded.or_else(plain).ok_or_else(|| format!("the Secret has no {name}"))
    };
    ServerCertificate::from_pem(&part("tls.crt")?, &part("tls.key")?).map_err(|error| error.to_string())
}
