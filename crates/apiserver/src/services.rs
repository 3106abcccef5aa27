//! The addresses and ports of Services, which no two of them share.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use serde_json::{Value, json};
use watchkeeper_schema::{FieldError, Path};
use watchkeeper_storage::{Range, Storage};

use crate::failure::Failure;
use crate::meta;
use crate::resource::Resource;
use crate::server::Server;

/// The first address of the range, and how many there are. The first and the last are not given away.
const RANGE: (Ipv4Addr, u32) = (Ipv4Addr::new(10, 0, 0, 0), 1 << 16);

/// The address of the server itself.
pub(crate) const FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// The range, as others write it.
pub(crate) fn block() -> String {
    format!("{}/{}", RANGE.0, RANGE.1.leading_zeros() + 1)
}

/// The ports that nodes give to Services.
const NODE_PORTS: std::ops::Range<i64> = 30_000..32_768;

/// What other Services have.
#[derive(Default)]
struct Taken {
    addresses: HashSet<String>,
    ports: HashSet<i64>,
}

impl Server {
    /// Gives a Service what it asks for, or what is free. Whoever calls this has the turn.
    pub(crate) async fn allocate(
        &self,
        resource: &Resource,
        service: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), Failure> {
        if !resource.is_core("services") || !service["spec"].is_object() {
            return Ok(());
        }
        if let Some(old) = old {
            keep(service, old);
            unchanged(service, old)
                .map_err(|error| Failure::invalid(resource.kind_subject(), meta::name(service), &[error]))?;
        }
        if service["spec"]["type"] == "ExternalName" {
            return Ok(());
        }
        let taken = self.taken(resource, meta::uid(old.unwrap_or(service))).await?;
        address(service, &taken)
            .map_err(|error| Failure::invalid(resource.kind_subject(), meta::name(service), &[error]))?;
        if matches!(service["spec"]["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
            ports(service, taken.ports)
                .map_err(|error| Failure::invalid(resource.kind_subject(), meta::name(service), &[error]))?;
        }
        Ok(())
    }

    async fn taken(&self, resource: &Resource, own: &str) -> Result<Taken, Failure> {
        let mut taken = Taken::default();
        for entry in self.storage.range(Range::prefix(&resource.prefix)).await?.entries {
            let service = resource.read(&entry)?;
            if meta::uid(&service) == own {
                continue;
            }
            let addresses = service["spec"]["clusterIPs"].as_array().into_iter().flatten();
            taken.addresses.extend(addresses.filter_map(Value::as_str).map(str::to_owned));
            let ports = service["spec"]["ports"].as_array().into_iter().flatten();
            taken.ports.extend(ports.filter_map(|port| port["nodePort"].as_i64()));
        }
        Ok(taken)
    }
}

/// Keeps what a Service has, if a replacement does not say anything else.
fn keep(service: &mut Value, old: &Value) {
    let same = |field: &str| service["spec"].get(field).is_none();
    if service["spec"]["type"] == "ExternalName"
        || old["spec"]["type"] == "ExternalName"
        || !same("clusterIP")
    {
        return;
    }
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if same_or_empty(&service["spec"], field)
            && let Some(value) = old["spec"].get(field)
        {
            service["spec"][field] = value.clone();
        }
    }
    let before = old["spec"]["ports"].as_array().cloned().unwrap_or_default();
    for port in service["spec"]["ports"].as_array_mut().into_iter().flatten() {
        let known = before
            .iter()
            .find(|known| known["port"] == port["port"] && known["protocol"] == port["protocol"]);
        if let Some(number) = known.and_then(|known| known.get("nodePort"))
            && port.get("nodePort").is_none()
        {
            port["nodePort"] = number.clone();
        }
    }
}

/// Refuses another address than the one a Service has.
fn unchanged(service: &Value, old: &Value) -> Result<(), FieldError> {
    let address = |service: &Value| service["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    let (new, old, kind) = (address(service), address(old), &service["spec"]["type"]);
    if new.is_empty() || old.is_empty() || new == old || kind == "ExternalName" {
        return Ok(());
    }
    let at = Path::root().child("spec").child("clusterIPs").index(0);
    Err(FieldError::invalid(&at, json!([new]), "may not change once set"))
}

fn same_or_empty(spec: &Value, field: &str) -> bool {
    spec.get(field).is_none_or(|value| value.is_null())
}

fn address(service: &mut Value, taken: &Taken) -> Result<(), FieldError> {
    let spec = &mut service["spec"];
    let asked = spec["clusterIP"].as_str().or(spec["clusterIPs"][0].as_str()).unwrap_or_default().to_owned();
    let address = match asked.as_str() {
        "" => free(taken),
        "None" => asked,
        _ => {
            check(&asked, taken)?;
            asked
        }
    };
    spec["clusterIP"] = address.as_str().into();
    if same_or_empty(spec, "clusterIPs") {
        spec["clusterIPs"] = json!([address]);
    }
    if same_or_empty(spec, "ipFamilies") {
        spec["ipFamilies"] = json!([if address.contains(':') { "IPv6" } else { "IPv4" }]);
    }
    if same_or_empty(spec, "ipFamilyPolicy") {
        spec["ipFamilyPolicy"] = "SingleStack".into();
    }
    Ok(())
}

/// Refuses an address that is not ours to give, or not free.
fn check(asked: &str, taken: &Taken) -> Result<(), FieldError> {
    let within = asked
        .parse::<Ipv4Addr>()
        .is_ok_and(|address| address.to_bits().wrapping_sub(RANGE.0.to_bits()) < RANGE.1);
    let why = match (within, taken.addresses.contains(asked)) {
        (true, false) => return Ok(()),
        (true, true) => "provided IP is already allocated",
        (false, _) => "the provided network does not match the current range",
    };
    let at = Path::root().child("spec").child("clusterIPs");
    Err(FieldError::invalid(&at, json!([asked]), format!("failed to allocate IP {asked}: {why}")))
}

/// An address that nobody has.
fn free(taken: &Taken) -> String {
    let start = fastrand::u32(1..RANGE.1 - 1);
    let candidates = (start..RANGE.1 - 1).chain(1..start);
    let mut addresses = candidates.map(|offset| Ipv4Addr::from_bits(RANGE.0.to_bits() + offset).to_string());
    addresses.find(|address| !taken.addresses.contains(address)).unwrap_or_default()
}

/// Gives every port one of the nodes: what is asked for if it is free, and one for all protocols of a port.
fn ports(service: &mut Value, mut taken: HashSet<i64>) -> Result<(), FieldError> {
    let Some(ports) = service["spec"]["ports"].as_array_mut() else { return Ok(()) };
    let asked: Vec<(Option<i64>, i64)> = ports
        .iter()
        .map(|port| (port["port"].as_i64(), port["nodePort"].as_i64().unwrap_or_default()))
        .collect();
    let mut given: HashMap<Option<i64>, i64> = HashMap::new();
    for (index, port) in ports.iter_mut().enumerate() {
        let (number, own) = asked[index];
        let known = given.get(&number).copied();
        // One that is asked for later by another protocol of the same port is as good.
        let shared = asked[index..].iter().find(|(other, node)| *other == number && *node != 0);
        let wanted = match known {
            Some(known) if own == 0 || own == known => {
                port["nodePort"] = known.into();
                continue;
            }
            Some(_) => own,
            None => shared.map_or(0, |(_, node)| *node),
        };
        if wanted != 0 {
            allot(wanted, &mut taken).map_err(|why| {
                let at = Path::root().child("spec").child("ports").index(index).child("nodePort");
                FieldError::invalid(&at, wanted, why)
            })?;
            port["nodePort"] = wanted.into();
            given.insert(number, wanted);
            continue;
        }
        let start = fastrand::i64(NODE_PORTS);
        if let Some(free) =
            (start..NODE_PORTS.end).chain(NODE_PORTS.start..start).find(|port| taken.insert(*port))
        {
            port["nodePort"] = free.into();
            given.insert(number, free);
        }
    }
    Ok(())
}

/// Takes a port of the nodes that was asked for.
fn allot(port: i64, taken: &mut HashSet<i64>) -> Result<(), String> {
    if !NODE_PORTS.contains(&port) {
        let (first, last) = (NODE_PORTS.start, NODE_PORTS.end - 1);
        return Err(format!(
            "provided port is not in the valid range. The range of valid ports is {first}-{last}"
        ));
    }
    if taken.insert(port) { Ok(()) } else { Err("provided port is already allocated".into()) }
}
