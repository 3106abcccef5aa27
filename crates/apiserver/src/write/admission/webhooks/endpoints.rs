//! Where the Service of a hook is served.

use serde_json::Value;
use watchkeeper_storage::Range;

use super::Webhooks;
use crate::object::meta;

const SERVICE_NAME: &str = "kubernetes.io/service-name";

impl Webhooks {
    /// The host and the port of one that serves a port of a Service: a ready endpoint, any of several. The error is as upstream
    /// words it.
    pub(super) async fn endpoint(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<(String, u16), String> {
        if let Some(address) = self.service_addresses.get(&format!("{namespace}/{name}")) {
            return Ok((address.ip().to_string(), address.port()));
        }
        let service =
            self.read("", "services", namespace, name).await.ok_or(format!("service {name:?} not found"))?;
        let spec = &service["spec"];
        if spec["type"] == "ExternalName" {
            return Ok((spec["externalName"].as_str().unwrap_or_default().to_owned(), port));
        }
        let mut ports = spec["ports"].as_array().into_iter().flatten();
        let Some(wanted) = ports.find(|one| one["port"] == port) else {
            return Err(format!("no service port {port} found for service {name:?}"));
        };
        let endpoints = self.endpoints(namespace, name, wanted["name"].as_str().unwrap_or_default()).await;
        match endpoints.len() {
            0 => Err(format!("no endpoints available for service {name:?}")),
            count => Ok(endpoints[fastrand::usize(..count)].clone()),
        }
    }

    /// Everybody who is ready to serve a port of a Service.
    async fn endpoints(&self, namespace: &str, service: &str, port: &str) -> Vec<(String, u16)> {
        let Some(slices) = self.registrar.current().find("discovery.k8s.io", "v1", "endpointslices") else {
            return Vec::new();
        };
        let prefix = slices.prefix_in(Some(namespace));
        let Ok(page) = self.storage.range(Range::prefix(&prefix)).await else { return Vec::new() };
        let mut found = Vec::new();
        for slice in page.entries.iter().filter_map(|entry| slices.read(entry).ok()) {
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
        found
    }

    async fn read(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let resource = self.registrar.current().find(group, "v1", plural)?;
        let entry = self.storage.get(&resource.key(Some(namespace), name), None).await.ok()?.entry?;
        resource.read(&entry).ok()
    }
}
