//! Ways into what a node runs, followed as far as objects lead. There is no node at their end.

use std::net::IpAddr;

use serde_json::Value;

use super::pods::check_container;
use crate::access::denial;
use crate::handlers::call::Call;
use crate::handlers::reply::Reply;
use crate::resource::ObjectRef;
use crate::server::Server;
use crate::status_error::StatusError;

impl Server {
    /// Refuses a request for a subresource that leads to a Pod, a Service or a Node, for the first reason that kube-apiserver would
    /// have, and if it would have none because nothing runs.
    pub(super) async fn connected(
        &self,
        call: &Call,
        place: &ObjectRef,
        subresource: &str,
    ) -> Result<Reply, StatusError> {
        let address = match subresource {
            "proxy" => Address::parse(place)?,
            _ => Address { name: &place.name, port: "" },
        };
        let is_service = place.resource.plural == "services";
        let object = if is_service { Value::Null } else { self.object(place, address.name).await? };
        let warnings = self.admit_connect(call, place, subresource).await?;
        let reached = self.reached(call, place, subresource, &address, &object).await;
        let failure = reached.err().unwrap_or_else(|| denial::no_node(place, subresource));
        Err(failure.with_more_warnings(&warnings))
    }

    /// Follows objects towards what runs, as far as they lead.
    async fn reached(
        &self,
        call: &Call,
        place: &ObjectRef,
        subresource: &str,
        address: &Address<'_>,
        object: &Value,
    ) -> Result<(), StatusError> {
        match (place.resource.plural.as_str(), subresource) {
            ("services", _) => self.check_endpoints(place, address).await?,
            ("pods", "proxy") if !has_global_address(object) => {
                return Err(StatusError::bad_request("address not allowed"));
            }
            ("pods", "exec" | "attach" | "portforward") => {
                if subresource != "portforward" {
                    check_container(object, call.query.get("container").unwrap_or_default())?;
                }
                if object["spec"]["nodeName"].as_str().is_none_or(str::is_empty) {
                    let message = format!("pod {} does not have a host assigned", place.name);
                    return Err(StatusError::bad_request(message));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Refuses a port that a Service does not have, and a Service that nothing is behind. As in kube-apiserver, the Service itself is
    /// of interest only if its port is given by number.
    async fn check_endpoints(&self, place: &ObjectRef, address: &Address<'_>) -> Result<(), StatusError> {
        let Address { name, port } = *address;
        let mut port = port.to_owned();
        if let Ok(number) = port.parse::<i64>() {
            let service = self.object(place, name).await?;
            let mut ports = service["spec"]["ports"].as_array().into_iter().flatten();
            let Some(found) = ports.find(|found| found["port"] == number) else {
                let message = format!("no service port {number} found for service {name:?}");
                return Err(StatusError::no_backend(message));
            };
            port = found["name"].as_str().unwrap_or_default().to_owned();
        }
        let Some(resource) = self.registry().find("", "v1", "endpoints") else {
            return Err(StatusError::internal("endpoints are not served"));
        };
        let of_service = ObjectRef { resource, namespace: place.namespace.clone(), name: name.to_owned() };
        let endpoints = match self.object(&of_service, name).await {
            // As there, it is the Service that is said to be missing.
            Err(error) if error.code == 404 => {
                return Err(StatusError::not_found(place.resource.subject(), name));
            }
            found => found?,
        };
        let subsets = endpoints["subsets"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_reachable = subsets.iter().any(|subset| {
            let mut ports = subset["ports"].as_array().into_iter().flatten();
            subset["addresses"].as_array().is_some_and(|addresses| !addresses.is_empty())
                && ports.any(|found| found["name"].as_str().unwrap_or_default() == port)
        });
        if is_reachable {
            return Ok(());
        }
        // As there, a Service with endpoints is called what it was called in the request.
        let called = if subsets.is_empty() { name } else { &place.name };
        Err(StatusError::no_backend(format!("no endpoints available for service {called:?}")))
    }

    /// The object of this name beside `place`.
    async fn object(&self, place: &ObjectRef, name: &str) -> Result<Value, StatusError> {
        let entry = self.get(&place.resource, place.namespace.as_deref(), name, None).await?;
        Ok(place.resource.read(&entry)?)
    }
}

/// What a proxy is asked to reach: `name`, `name:port` or `scheme:name:port`.
struct Address<'a> {
    name: &'a str,
    port: &'a str,
}

impl<'a> Address<'a> {
    fn parse(place: &'a ObjectRef) -> Result<Self, StatusError> {
        let parts: Vec<&str> = place.name.split(':').collect();
        let (scheme, name, port) = match *parts {
            [name] => ("", name, ""),
            [name, port] => ("", name, port),
            [scheme, name, port] => (scheme, name, port),
            _ => ("", "", ""),
        };
        if name.is_empty() || !matches!(scheme, "" | "http" | "https") {
            let kind = place.resource.kind.to_lowercase();
            return Err(StatusError::bad_request(format!("invalid {kind} request {:?}", place.name)));
        }
        Ok(Self { name, port })
    }
}

/// Whether a Pod has an address that may be reached from elsewhere.
fn has_global_address(pod: &Value) -> bool {
    let address = pod["status"]["podIPs"][0]["ip"].as_str().unwrap_or_default();
    match address.parse() {
        Ok(IpAddr::V4(address)) => {
            !(address.is_unspecified()
                || address.is_broadcast()
                || address.is_loopback()
                || address.is_multicast()
                || address.is_link_local())
        }
        Ok(IpAddr::V6(address)) => {
            !(address.is_unspecified()
                || address.is_loopback()
                || address.is_multicast()
                || address.is_unicast_link_local())
        }
        Err(_) => false,
    }
}
