//! Where the Service of a webhook is served.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use watchkeeper_storage::{Entry, Range, Revision};

use super::WebhookClient;
use crate::object::meta;
use crate::resource::Resource;

const SERVICE_NAME: &str = "kubernetes.io/service-name";

impl WebhookClient {
    /// Whether the address of a Service was given, and is not looked up.
    pub(crate) fn is_given(&self, namespace: &str, name: &str) -> bool {
        self.service_addresses.contains_key(&format!("{namespace}/{name}"))
    }

    /// The host and the port of one that serves a port of a Service: a ready endpoint, any of several. The error is as upstream
    /// words it.
    pub(crate) async fn endpoint(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<(String, u16), String> {
        if let Some(address) = self.service_addresses.get(&format!("{namespace}/{name}")) {
            return Ok((address.ip().to_string(), address.port()));
        }
        let service = self.service(namespace, name).await?.ok_or(format!("service {name:?} not found"))?;
        let spec = &service["spec"];
        if spec["type"] == "ExternalName" {
            return Ok((spec["externalName"].as_str().unwrap_or_default().to_owned(), port));
        }
        let mut ports = spec["ports"].as_array().into_iter().flatten();
        let Some(wanted) = ports.find(|one| one["port"] == port) else {
            return Err(format!("no service port {port} found for service {name:?}"));
        };
        let endpoints = self.endpoints(namespace, name, wanted["name"].as_str().unwrap_or_default()).await?;
        match endpoints.len() {
            0 => Err(format!("no endpoints available for service {name:?}")),
            count => Ok(endpoints[fastrand::usize(..count)].clone()),
        }
    }

    /// Everybody who is ready to serve a port of a Service.
    async fn endpoints(
        &self,
        namespace: &str,
        service: &str,
        port: &str,
    ) -> Result<Vec<(String, u16)>, String> {
        let slices = self.registrar.current().find("discovery.k8s.io", "v1", "endpointslices");
        let slices = slices.ok_or("EndpointSlices are not served")?;
        let prefix = slices.prefix_in(Some(namespace));
        let page = self.storage.range(Range::prefix(&prefix)).await.map_err(|error| error.to_string())?;
        let known = self.services.slices(namespace);
        let parsed: Result<Slices, String> = page
            .entries
            .iter()
            .map(|entry| {
                let parsed = match known.get(&entry.key).filter(|slice| slice.modified == entry.modified) {
                    Some(slice) => Arc::clone(slice),
                    None => Arc::new(Slice::read(&slices, entry)?),
                };
                Ok((entry.key.clone(), parsed))
            })
            .collect();
        let parsed = Arc::new(parsed?);
        self.services.keep_slices(namespace, &parsed);
        let of_service = parsed.values().filter(|slice| slice.service == service);
        Ok(of_service.flat_map(|slice| slice.ready(port)).collect())
    }

    async fn service(&self, namespace: &str, name: &str) -> Result<Option<Arc<Value>>, String> {
        let services =
            self.registrar.current().find("", "v1", "services").ok_or("Services are not served")?;
        let key = services.key(Some(namespace), name);
        let found = self.storage.get(&key, None).await;
        let Some(entry) = found.map_err(|error| error.to_string())?.entry else { return Ok(None) };
        if let Some(known) = self.services.service(&entry) {
            return Ok(Some(known));
        }
        let service = Arc::new(services.read(&entry).map_err(|error| error.to_string())?);
        self.services.keep_service(&entry, &service);
        Ok(Some(service))
    }
}

/// How many namespaces and Services are remembered.
const MOST_SERVICES: usize = 200;

/// A Service, and the revision at which it was written.
type ParsedService = (Revision, Arc<Value>);

/// Services and EndpointSlices as they were read last. They are looked up with every call, and read again only when they have changed.
#[derive(Default)]
pub(super) struct ParsedServices {
    services: Mutex<HashMap<Box<str>, ParsedService>>,
    /// By namespace.
    slices: Mutex<HashMap<String, Arc<Slices>>>,
}

/// The EndpointSlices of a namespace, by key.
type Slices = HashMap<Box<str>, Arc<Slice>>;

impl ParsedServices {
    fn service(&self, entry: &Entry) -> Option<Arc<Value>> {
        let services = self.services.lock();
        let (modified, service) = services.get(&entry.key)?;
        (*modified == entry.modified).then(|| Arc::clone(service))
    }

    fn keep_service(&self, entry: &Entry, service: &Arc<Value>) {
        let mut services = self.services.lock();
        if services.len() >= MOST_SERVICES {
            services.clear();
        }
        services.insert(entry.key.clone(), (entry.modified, Arc::clone(service)));
    }

    fn slices(&self, namespace: &str) -> Arc<Slices> {
        self.slices.lock().get(namespace).cloned().unwrap_or_default()
    }

    fn keep_slices(&self, namespace: &str, slices: &Arc<Slices>) {
        let mut namespaces = self.slices.lock();
        if namespaces.len() >= MOST_SERVICES && !namespaces.contains_key(namespace) {
            namespaces.clear();
        }
        namespaces.insert(namespace.to_owned(), Arc::clone(slices));
    }
}

/// What an EndpointSlice says.
struct Slice {
    modified: Revision,
    /// The Service that it is of; empty if it does not say.
    service: String,
    /// Numbers by name.
    ports: Vec<(String, u16)>,
    /// The addresses of the endpoints that are ready.
    addresses: Vec<String>,
}

impl Slice {
    fn read(resource: &Resource, entry: &Entry) -> Result<Self, String> {
        let slice = resource.read(entry).map_err(|error| error.to_string())?;
        let label = meta::get(&slice, "labels").and_then(|labels| labels.get(SERVICE_NAME)?.as_str());
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let port = |port: Value| {
            let number = u16::try_from(port["port"].as_u64()?).ok()?;
            Some((port["name"].as_str().unwrap_or_default().to_owned(), number))
        };
        let ready = |endpoint: &Value| endpoint["conditions"]["ready"].as_bool().unwrap_or(true);
        let endpoints = list(&slice["endpoints"]).into_iter().filter(ready);
        let addresses = endpoints.flat_map(|endpoint| list(&endpoint["addresses"]));
        Ok(Self {
            modified: entry.modified,
            service: label.unwrap_or_default().to_owned(),
            ports: list(&slice["ports"]).into_iter().filter_map(port).collect(),
            addresses: addresses.filter_map(|address| Some(address.as_str()?.to_owned())).collect(),
        })
    }

    /// Those that are ready to serve a port.
    fn ready(&self, port: &str) -> impl Iterator<Item = (String, u16)> {
        let number = self.ports.iter().find(|(name, _)| name == port).map(|(_, number)| *number);
        number
            .into_iter()
            .flat_map(|number| self.addresses.iter().map(move |address| (address.clone(), number)))
    }
}
