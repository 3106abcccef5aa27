//! Where the Service of a webhook is served.

use serde_json::Value;
use watchkeeper_storage::Range;

use super::WebhookClient;
use crate::object::meta;

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
        let mut found = Vec::new();
        for entry in &page.entries {
            let slice = slices.read(entry).map_err(|error| error.to_string())?;
            let label = meta::get(&slice, "labels").and_then(|labels| labels.get(SERVICE_NAME)?.as_str());
            if label != Some(service) {
                continue;
            }
            let mut ports = slice["ports"].as_array().into_iter().flatten();
            let number = ports.find(|one| one["name"].as_str().unwrap_or_default() == port);
            let number = number.and_then(|one| u16::try_from(one["port"].as_u64()?).ok());
            let Some(number) = number else { continue };
            let ready = |endpoint: &&Value| endpoint["conditions"]["ready"].as_bool().unwrap_or(true);
            for endpoint in slice["endpoints"].as_array().into_iter().flatten().filter(ready) {
                let addresses = endpoint["addresses"].as_array().into_iter().flatten();
                found.extend(addresses.filter_map(|address| Some((address.as_str()?.to_owned(), number))));
            }
        }
        Ok(found)
    }

    async fn service(&self, namespace: &str, name: &str) -> Result<Option<Value>, String> {
        let services =
            self.registrar.current().find("", "v1", "services").ok_or("Services are not served")?;
        let found = self.storage.get(&services.key(Some(namespace), name), None).await;
        let entry = found.map_err(|error| error.to_string())?.entry;
        entry.map(|entry| services.read(&entry).map_err(|error| error.to_string())).transpose()
    }
}
