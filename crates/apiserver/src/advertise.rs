//! Where programs find this server: the endpoints of the Service `default/kubernetes`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use watchkeeper_storage::{Commit, Range, Revision};

use crate::request::delete_options::DeleteOptions;
use crate::resource::ObjectRef;
use crate::server::{Error, Server};
use crate::status_error::StatusError;
use crate::write::Subresource;

/// The name of the Service, its Endpoints and its EndpointSlice, and the namespace they are in.
const NAME: (&str, &str) = ("default", "kubernetes");

/// The resources that say where the server is.
const ENDPOINTS: [(&str, &str); 2] = [("", "endpoints"), ("discovery.k8s.io", "endpointslices")];

/// Where servers that share a storage say that they are there: a key for each, with its address. No resource is stored there.
pub(crate) const SERVERS: &str = "/servers/";

/// What the task is called by which a server says that it is there, and the one by which the one that leads shows all of them.
const REGISTRATION: &str = "server-registration";
pub(crate) const TASK: &str = "server-endpoints";

/// How often a server says so, and after which time without it is taken for lost: as the lease of kube-apiserver does.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(10);
const LEASE_DURATION: Duration = Duration::from_secs(25);

/// How often the one that leads looks.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

impl Server {
    /// Says where the server is, or that it is nowhere to be found. If it is one of several, the one that leads shows all of them.
    pub(crate) async fn advertise(self: &Arc<Self>, address: Option<SocketAddr>) -> Result<(), Error> {
        *self.address.lock() = address;
        if self.options.read_only {
            return Ok(());
        }
        let address = reachable(address);
        if self.storage.is_shared() {
            if let Some(address) = address {
                self.spawn(REGISTRATION, move |server| register(server, address));
            }
            return Ok(());
        }
        let advertised = self.show(&address.into_iter().collect()).await;
        advertised.map_err(|failure| Error::Bootstrap {
            what: "endpoints of the service default/kubernetes".into(),
            why: failure.message,
        })
    }

    /// Says that this server is not there any more, if others would miss it.
    pub(crate) async fn sign_off(&self) {
        let address = reachable(*self.address.lock());
        if let Some(address) = address.filter(|_| self.storage.is_shared() && !self.options.read_only) {
            // If it cannot be said, it is noticed.
            let _ = self.storage.commit(Commit::new().delete(format!("{SERVERS}{address}"))).await;
        }
    }

    /// Shows these servers as the endpoints of the Service, or that there are none.
    async fn show(&self, servers: &BTreeSet<SocketAddr>) -> Result<(), StatusError> {
        let Some(first) = servers.first().copied() else { return self.withdraw().await };
        let mut by_port: BTreeMap<u16, Vec<String>> = BTreeMap::new();
        for server in servers.iter().filter(|server| server.is_ipv4() == first.is_ipv4()) {
            by_port.entry(server.port()).or_default().push(server.ip().to_string());
        }
        let ports = |port: u16| json!([{"name": "https", "port": port, "protocol": "TCP"}]);
        let subsets = by_port.iter().map(|(port, all)| {
            let addresses: Vec<Value> = all.iter().map(|ip| json!({"ip": ip})).collect();
            json!({"addresses": addresses, "ports": ports(*port)})
        });
        let endpoints = json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {"name": NAME.1, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": subsets.collect::<Vec<_>>(),
        });
        // A slice has one port: that of most servers.
        let most = by_port.iter().max_by_key(|(_, all)| all.len());
        let (port, all) = most.map_or((first.port(), Vec::new()), |(port, all)| (*port, all.clone()));
        let ready = all.iter().map(|ip| json!({"addresses": [ip], "conditions": {"ready": true}}));
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": NAME.1, "labels": {"kubernetes.io/service-name": NAME.1}},
            "addressType": if first.is_ipv4() { "IPv4" } else { "IPv6" },
            "endpoints": ready.collect::<Vec<_>>(),
            "ports": ports(port),
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

/// An address that other machines can reach: not a loopback address, which no endpoint may have either.
fn reachable(address: Option<SocketAddr>) -> Option<SocketAddr> {
    address.filter(|address| !address.ip().is_loopback() && !address.ip().is_unspecified())
}

/// Says again and again that a server is there.
async fn register(server: Arc<Server>, address: SocketAddr) {
    loop {
        let commit = Commit::new().put(format!("{SERVERS}{address}"), "");
        if let Err(error) = server.storage.commit(commit).await {
            tracing::debug!(%error, "server could not be registered");
        }
        tokio::time::sleep(RENEWAL_INTERVAL).await;
    }
}

/// Shows the servers that are there, and forgets those that are lost. To be run by the one that leads.
pub(crate) async fn show_servers(server: Arc<Server>) {
    let (mut seen, mut shown) = (Seen::default(), None);
    loop {
        // As far as this server knows: nobody needs to be asked for it.
        let now = Range::prefix(SERVERS).at(server.storage.stats().revision);
        if let Ok(page) = server.storage.range(now).await {
            let found = page
                .entries
                .iter()
                .filter_map(|entry| Some((entry.key.strip_prefix(SERVERS)?.parse().ok()?, entry.modified)));
            let (there, lost) = seen.look(found, Instant::now());
            for (address, modified) in lost {
                let key = format!("{SERVERS}{address}");
                // If it has just come back, it stays.
                let _ =
                    server.storage.commit(Commit::new().unchanged(key.as_str(), modified).delete(key)).await;
            }
            if shown.as_ref() != Some(&there) {
                match server.show(&there).await {
                    Ok(()) => shown = Some(there),
                    Err(failure) => {
                        tracing::warn!(failure = %failure.message, "endpoints of the service default/kubernetes could not be written");
                    }
                }
            }
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

/// When servers last said that they are there, by the clock of whoever looks.
#[derive(Default)]
struct Seen(BTreeMap<SocketAddr, (Revision, Instant)>);

impl Seen {
    /// Takes in the keys of servers with the revisions that wrote them. Gives the servers that are there, and those that have not said so for
    /// too long.
    fn look(
        &mut self,
        found: impl Iterator<Item = (SocketAddr, Revision)>,
        now: Instant,
    ) -> (BTreeSet<SocketAddr>, Vec<(SocketAddr, Revision)>) {
        let said = |(address, modified)| match self.0.get(&address) {
            Some((known, since)) if *known == modified => (address, (modified, *since)),
            _ => (address, (modified, now)),
        };
        self.0 = found.map(said).collect();
        let is_lost = |since: Instant| now.duration_since(since) >= LEASE_DURATION;
        let there = self.0.iter().filter(|(_, (_, since))| !is_lost(*since)).map(|(address, _)| *address);
        let lost = self.0.iter().filter(|(_, (_, since))| is_lost(*since));
        (there.collect(), lost.map(|(address, (modified, _))| (*address, *modified)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_says_nothing_for_long_is_lost_and_others_are_not() {
        let [one, other]: [SocketAddr; 2] =
            ["192.0.2.1:6443", "192.0.2.2:6443"].map(|text| text.parse().unwrap());
        let (mut seen, begin) = (Seen::default(), Instant::now());
        let (there, lost) = seen.look([(one, 1), (other, 2)].into_iter(), begin);
        assert_eq!((there.len(), lost.len()), (2, 0));
        let (there, lost) = seen.look([(one, 1), (other, 7)].into_iter(), begin + LEASE_DURATION);
        assert_eq!((there, lost), (BTreeSet::from([other]), vec![(one, 1)]));
        let (there, _) = seen.look([(one, 9), (other, 7)].into_iter(), begin + LEASE_DURATION);
        assert_eq!(there.len(), 2, "it has come back");
    }
}
