//! What a Service is given: a cluster IP, and node ports.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::ops::Range;

use serde_json::{Value, json};
use watchkeeper_schema::{FieldError, Path};

use super::{Allocator, Holdings, Refusal, Reservation, Writer};
use crate::object::meta;
use crate::resource::Resource;
use crate::status_error::StatusError;

/// The addresses of Services, in CIDR notation.
pub(crate) const BLOCK: &str = "10.0.0.0/16";

/// The same as numbers, without the first and the last, which are not allocated.
const ADDRESSES: Range<u32> = Ipv4Addr::new(10, 0, 0, 1).to_bits()..Ipv4Addr::new(10, 0, 255, 255).to_bits();

/// So many addresses at the begin of the range are left for those who ask for one of them, as long as there are others.
const CHOSEN_ADDRESSES: u32 = 256;

/// The address of the server itself.
pub(crate) const FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// The ports that nodes give to Services.
const NODE_PORTS: Range<u32> = 30_000..32_768;

/// So many ports at the begin of the range are left for those who ask for one of them, as long as there are others.
const CHOSEN_PORTS: u32 = 86;

/// An allocator of all that Services can be given.
pub(crate) fn allocator() -> Allocator {
    Allocator::new((ADDRESSES, CHOSEN_ADDRESSES), (NODE_PORTS, CHOSEN_PORTS))
}

/// Why a Service does not get what it needs.
enum Problem {
    Invalid(FieldError),
    Internal(String),
    Untyped(String),
}

impl Writer {
    /// Gives a Service what it asks for, or what is free. What it gets is reserved for it.
    ///
    /// The Service must have been prepared: what the old one has and the new one does not mention is in it already.
    pub(crate) fn allocate(
        &self,
        resource: &Resource,
        service: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<Option<Reservation>, StatusError> {
        if !resource.is_core("services") {
            return Ok(None);
        }
        let mut reservation = self.allocator.reserve(dry_run);
        give(service, old, &mut reservation).map_err(|problem| match problem {
            Problem::Invalid(error) => {
                StatusError::invalid(resource.kind_subject(), meta::name(service), &[error])
            }
            Problem::Internal(message) => StatusError::internal(message),
            Problem::Untyped(message) => StatusError::untyped(message),
        })?;
        Ok(Some(reservation))
    }
}

fn give(service: &mut Value, old: Option<&Value>, reservation: &mut Reservation) -> Result<(), Problem> {
    let name = meta::name(service).to_owned();
    let Some(spec @ Value::Object(_)) = service.get_mut("spec") else { return Ok(()) };
    if spec["type"] == "ExternalName" {
        return Ok(());
    }
    let before = old.map(Holdings::of).unwrap_or_default();
    address(&name, spec, old.map(|old| &old["spec"]), reservation)?;
    if matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
        let gives_any = spec["type"] == "NodePort" || spec["allocateLoadBalancerNodePorts"] != false;
        match old {
            None => new_ports(spec, gives_any, reservation)?,
            Some(_) => changed_ports(spec, gives_any, &before, reservation)?,
        }
    }
    if spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local" {
        health_check_port(spec, &before, reservation)?;
    }
    Ok(())
}

fn is_unset(spec: &Value, field: &str) -> bool {
    spec.get(field).is_none_or(|value| value.is_null() || value.as_array().is_some_and(Vec::is_empty))
}

/// Gives a Service its address. One that has an address keeps it; whether it may ask for another is for validation to say.
fn address(
    name: &str,
    spec: &mut Value,
    old: Option<&Value>,
    reservation: &mut Reservation,
) -> Result<(), Problem> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let known = old.filter(|old| old["type"] != "ExternalName").map(|old| text(&old["clusterIP"]));
    let known = known.filter(|known| !known.is_empty());
    let asked = spec["clusterIP"].as_str().or(spec["clusterIPs"][0].as_str()).unwrap_or_default().to_owned();
    let address = match asked.as_str() {
        "" => match reservation.any_address() {
            Ok(address) => address.to_string(),
            Err(refusal) => {
                let why = format!("failed to allocate a serviceIP for Service {name:?}: {refusal}");
                return Err(Problem::Internal(why));
            }
        },
        "None" => asked,
        _ if known.is_some() => asked,
        _ => {
            let refusal = match asked.parse() {
                Ok(address) => reservation.take_address(address),
                Err(_) => Err(Refusal::OutOfRange),
            };
            refusal.map_err(|refusal| refused_address(&asked, refusal))?;
            asked
        }
    };
    spec["clusterIP"] = address.as_str().into();
    let is_other = known.is_some_and(|known| known != address);
    if is_unset(spec, "clusterIPs")
        || is_other && old.is_some_and(|old| old["clusterIPs"] == spec["clusterIPs"])
    {
        spec["clusterIPs"] = json!([address]);
    }
    if is_unset(spec, "ipFamilies") {
        spec["ipFamilies"] = json!([if address.contains(':') { "IPv6" } else { "IPv4" }]);
    }
    if is_unset(spec, "ipFamilyPolicy") {
        spec["ipFamilyPolicy"] = "SingleStack".into();
    }
    Ok(())
}

fn refused_address(asked: &str, refusal: Refusal) -> Problem {
    let why = match refusal {
        Refusal::OutOfRange => "the provided network does not match the current range",
        Refusal::Taken | Refusal::Full => "provided IP is already allocated",
    };
    let at = Path::root().child("spec").child("clusterIPs");
    Problem::Invalid(FieldError::invalid(
        &at,
        json!([asked]),
        format!("failed to allocate IP {asked}: {why}"),
    ))
}

/// The ports of a new Service: those it asks for, and one for all protocols of a port.
fn new_ports(spec: &mut Value, gives_any: bool, reservation: &mut Reservation) -> Result<(), Problem> {
    let Some(ports) = spec.get_mut("ports").and_then(Value::as_array_mut) else { return Ok(()) };
    let asked: Vec<(Option<i64>, i64)> =
        ports.iter().map(|port| (port["port"].as_i64(), node_port(port))).collect();
    let mut given: HashMap<Option<i64>, i64> = HashMap::new();
    for (index, port) in ports.iter_mut().enumerate() {
        let (number, own) = asked[index];
        if own == 0 && !gives_any {
            continue;
        }
        // One that is asked for later by another protocol of the same port is as good.
        let shared = asked[index..].iter().find(|(other, node)| *other == number && *node != 0);
        let wanted = match given.get(&number) {
            Some(known) if own == 0 || own == *known => {
                port["nodePort"] = (*known).into();
                continue;
            }
            Some(_) => own,
            None => shared.map_or(0, |(_, node)| *node),
        };
        let taken = if wanted == 0 { any_port(reservation)? } else { take_port(index, wanted, reservation)? };
        port["nodePort"] = taken.into();
        given.entry(number).or_insert(taken);
    }
    Ok(())
}

/// The ports of a Service that had some before: it keeps those, and gets others where it has none.
fn changed_ports(
    spec: &mut Value,
    gives_any: bool,
    before: &Holdings,
    reservation: &mut Reservation,
) -> Result<(), Problem> {
    let mut seen: Vec<(String, i64)> = Vec::new();
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for (index, port) in ports.into_iter().flatten().enumerate() {
        let asked = node_port(port);
        let number = match asked {
            0 if !gives_any => continue,
            0 => any_port(reservation)?,
            _ => {
                let is_had = u32::try_from(asked).is_ok_and(|asked| before.ports.contains(&asked));
                if !is_had && !seen.iter().any(|(_, number)| *number == asked) {
                    take_port(index, asked, reservation)?;
                }
                asked
            }
        };
        port["nodePort"] = number.into();
        let both = (port["protocol"].as_str().unwrap_or_default().to_owned(), number);
        if seen.contains(&both) {
            return Err(Problem::Untyped(format!("duplicate nodePort: {{{} {}}}", both.0, both.1)));
        }
        seen.push(both);
    }
    Ok(())
}

/// Where nodes say whether they have endpoints of a Service whose traffic stays on the node.
fn health_check_port(
    spec: &mut Value,
    before: &Holdings,
    reservation: &mut Reservation,
) -> Result<(), Problem> {
    match spec["healthCheckNodePort"].as_i64().unwrap_or_default() {
        0 => {
            let failed = |refusal| format!("failed to allocate a HealthCheck NodePort 0: {refusal}");
            let port = reservation.any_port().map_err(|refusal| Problem::Internal(failed(refusal)))?;
            spec["healthCheckNodePort"] = port.into();
        }
        asked if u32::try_from(asked).is_ok_and(|asked| before.ports.contains(&asked)) => {}
        asked => reservation.take_port(asked).map_err(|refusal| {
            let why = refused_port(refusal);
            Problem::Internal(format!("failed to allocate requested HealthCheck NodePort {asked}: {why}"))
        })?,
    }
    Ok(())
}

fn node_port(port: &Value) -> i64 {
    port["nodePort"].as_i64().unwrap_or_default()
}

fn any_port(reservation: &mut Reservation) -> Result<i64, Problem> {
    let failed = |refusal| Problem::Internal(format!("failed to allocate a nodePort: {refusal}"));
    reservation.any_port().map(i64::from).map_err(failed)
}

/// Takes a port of the nodes that was asked for at this place of the list.
fn take_port(index: usize, port: i64, reservation: &mut Reservation) -> Result<i64, Problem> {
    reservation.take_port(port).map_err(|refusal| {
        let at = Path::root().child("spec").child("ports").index(index).child("nodePort");
        Problem::Invalid(FieldError::invalid(&at, port, refused_port(refusal)))
    })?;
    Ok(port)
}

fn refused_port(refusal: Refusal) -> String {
    let (first, last) = (NODE_PORTS.start, NODE_PORTS.end - 1);
    match refusal {
        Refusal::OutOfRange => {
            format!("provided port is not in the valid range. The range of valid ports is {first}-{last}")
        }
        Refusal::Taken => "provided port is already allocated".into(),
        Refusal::Full => refusal.to_string(),
    }
}
