//! Where programs find this server: the endpoints of the Service `default/kubernetes`.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::request::delete_options::DeleteOptions;
use crate::resource::ObjectRef;
use crate::server::{Error, Server};
use crate::status_error::StatusError;
use crate::write::Subresource;

/// The name of the Service, its Endpoints and its EndpointSlice, and the namespace they are in.
const NAME: (&str, &str) = ("default", "kubernetes");

/// The resources that say where the server is.
const ENDPOINTS: [(&str, &str); 2] = [("", "endpoints"), ("discovery.k8s.io", "endpointslices")];

impl Server {
    /// Says where the server is, or that it is nowhere to be found.
    pub(crate) async fn advertise(&self, address: Option<SocketAddr>) -> Result<(), Error> {
        *self.address.lock() = address;
        if self.options.read_only {
            return Ok(());
        }
        // Nobody else can reach a loopback address, and no endpoint may have one.
        let address = address.filter(|address| !address.ip().is_loopback() && !address.ip().is_unspecified());
        let advertised = match address {
            Some(address) => self.show(address).await,
            None => self.withdraw().await,
        };
        advertised.map_err(|failure| Error::Bootstrap {
            what: "endpoints of the service default/kubernetes".into(),
            why: failure.message,
        })
    }

    async fn show(&self, address: SocketAddr) -> Result<(), StatusError> {
        let (ip, port) = (address.ip().to_string(), address.port());
        let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
        let endpoints = json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {"name": NAME.1, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [{"addresses": [{"ip": ip}], "ports": ports}],
        });
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": NAME.1, "labels": {"kubernetes.io/service-name": NAME.1}},
            "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
            "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
            "ports": ports,
        });
        for ((group, plural), object) in ENDPOINTS.into_iter().zip([endpoints, slice]) {
            self.provide(group, plural, object).await?;
        }
        if let Some(service) = self.advertised("", "services") {
            let change = |service: &mut Value| service["spec"]["ports"][0]["targetPort"] = port.into();
            self.writer.modify(&service, Subresource::Main, change).await?;
        }
        Ok(())
    }

    /// Makes an object, or brings the one that is there up to date.
    async fn provide(&self, group: &str, plural: &str, object: Value) -> Result<(), StatusError> {
        let Some(place) = self.advertised(group, plural) else { return Ok(()) };
        let is_another_family = match self.storage.get(&place.key(), None).await?.entry {
            // The type of addresses cannot be changed.
            Some(entry) => place.resource.read(&entry)?.get("addressType") != object.get("addressType"),
            None => false,
        };
        if is_another_family {
            self.writer.delete(&place, &DeleteOptions::default()).await?;
        }
        match self.writer.create(group, "v1", plural, Some(NAME.0), object.clone()).await {
            Err(failure) if failure.reason == "AlreadyExists" => {}
            made => return made.map(drop),
        }
        let change = |current: &mut Value| {
            for (name, value) in object.as_object().into_iter().flatten() {
                match name.as_str() {
                    "metadata" => current["metadata"]["labels"] = value["labels"].clone(),
                    name => current[name] = value.clone(),
                }
            }
        };
        self.writer.modify(&place, Subresource::Main, change).await
    }

    async fn withdraw(&self) -> Result<(), StatusError> {
        for (group, plural) in ENDPOINTS {
            if let Some(place) = self.advertised(group, plural) {
                self.writer.delete(&place, &DeleteOptions::default()).await?;
            }
        }
        Ok(())
    }

    fn advertised(&self, group: &str, plural: &str) -> Option<ObjectRef> {
        let resource = self.registry().find(group, "v1", plural)?;
        Some(ObjectRef { resource, namespace: Some(NAME.0.into()), name: NAME.1.into() })
    }
}
