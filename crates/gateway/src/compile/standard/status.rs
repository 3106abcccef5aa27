//! What became of Gateway API objects, as their statuses say it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Value, json};
use watchkeeper_core::Key;

use super::super::{Compiler, Condition, Entry, Report};
use super::Refused;
use super::gateway::{CompiledGateway, CompiledListener};
use crate::kinds::standard::CONTROLLER;
use crate::object::{InputKind, ObjectId};
use crate::table::Table;

/// What the gateway can do, in the words of the conformance suite, in their order.
const FEATURES: [&str; 24] = [
    "Gateway",
    "GatewayAddressEmpty",
    "GatewayHTTPListenerIsolation",
    "GatewayPort8080",
    "HTTPRoute",
    "HTTPRoute303RedirectStatusCode",
    "HTTPRoute307RedirectStatusCode",
    "HTTPRoute308RedirectStatusCode",
    "HTTPRouteBackendProtocolH2C",
    "HTTPRouteBackendProtocolWebSocket",
    "HTTPRouteBackendTimeout",
    "HTTPRouteDestinationPortMatching",
    "HTTPRouteHostRewrite",
    "HTTPRouteMethodMatching",
    "HTTPRouteNamedRouteRule",
    "HTTPRouteParentRefPort",
    "HTTPRoutePathRedirect",
    "HTTPRoutePathRewrite",
    "HTTPRoutePortRedirect",
    "HTTPRouteQueryParamMatching",
    "HTTPRouteRequestTimeout",
    "HTTPRouteResponseHeaderModification",
    "HTTPRouteSchemeRedirect",
    "ReferenceGrant",
];

impl Compiler {
    /// What became of an object of Gateway API; `None` if it is not for this controller.
    pub(in super::super) fn standard_report(&self, id: &ObjectId, entry: &Entry) -> Option<Report> {
        let form = entry.first()?;
        let mut report = Report::of_served(id.clone(), form.place.0, form.input.generation);
        let status = match id.kind {
            InputKind::GatewayClass => {
                let is_ours = self.standard.classes.iter().any(|class| class == id.key.name());
                is_ours.then(|| class_status(&report))?
            }
            InputKind::Gateway => self.gateway_status(self.standard.gateways.get(&id.key)?, &mut report),
            InputKind::HttpRoute => self.route_status(entry, &mut report)?,
            _ => return None,
        };
        report.status = Some(status);
        Some(report)
    }

    fn gateway_status(&self, gateway: &CompiledGateway, report: &mut Report) -> Value {
        let mut listeners = Vec::new();
        let mut not_valid = Vec::new();
        let mut served = 0;
        for listener in &gateway.listeners {
            let conflict = self.conflict(listener);
            let is_valid = listener.invalid.is_none() && conflict.is_none();
            if !is_valid || listener.unresolved.is_some() {
                not_valid.push(listener.name.as_str());
            }
            served += usize::from(listener.is_served && conflict.is_none());
            listeners.push(self.listener_status(listener, conflict, report.generation));
        }
        let any_valid = gateway
            .listeners
            .iter()
            .any(|listener| listener.invalid.is_none() && self.conflict(listener).is_none());
        if !not_valid.is_empty() {
            let message = format!("listeners with problems: {}", not_valid.join(", "));
            report.accepted = Condition { is_true: any_valid, reason: "ListenersNotValid", message };
        }
        let mut addresses = Vec::new();
        match &gateway.address {
            // All addresses of a machine are none that a client could be told.
            Some(Ok(address)) if address.is_unspecified() => {}
            Some(Ok(address)) => addresses.push(json!({"type": "IPAddress", "value": address.to_string()})),
            Some(Err(refused)) => {
                let is_wrong = refused.reason == "UnsupportedAddress";
                if is_wrong {
                    report.accepted = condition(refused);
                }
                let reason = if is_wrong { "Invalid" } else { "AddressNotAssigned" };
                report.programmed = condition(&Refused::new(reason, refused.message.clone()));
            }
            None => {}
        }
        if served == 0 && report.programmed.is_true {
            report.programmed = condition(&Refused::new("Invalid", "no listener can be served"));
        }
        json!({
            "addresses": addresses,
            "conditions": [
                as_json("Accepted", &report.accepted, report.generation),
                as_json("Programmed", &report.programmed, report.generation),
            ],
            "listeners": listeners,
        })
    }

    /// Why a listener cannot be where it wants to be.
    fn conflict(&self, listener: &CompiledListener) -> Option<Refused> {
        let displaced = self.displaced.get(&listener.key)?;
        let wanted = self.listeners.get(&listener.key)?;
        let there = self.table.port(&wanted.address).first();
        let reason = match there.is_some_and(|there| there.protocol != wanted.protocol) {
            true => "ProtocolConflict",
            false => "HostnameConflict",
        };
        Some(Refused::new(reason, displaced.message.clone()))
    }

    fn listener_status(
        &self,
        listener: &CompiledListener,
        conflict: Option<Refused>,
        generation: i64,
    ) -> Value {
        let accepted = listener.invalid.as_ref().or(conflict.as_ref());
        let is_served = listener.is_served && conflict.is_none();
        let programmed = match is_served {
            true => Condition::good("Programmed"),
            false => condition(&Refused::new("Invalid", "the listener is not served")),
        };
        let accepted = accepted.map_or(Condition::good("Accepted"), condition);
        let resolved = listener.unresolved.as_ref().map_or(Condition::good("ResolvedRefs"), condition);
        let conflicted = match conflict {
            Some(conflict) => Condition { is_true: true, reason: conflict.reason, message: conflict.message },
            None => Condition { is_true: false, reason: "NoConflicts", message: String::new() },
        };
        json!({
            "name": listener.name,
            "supportedKinds": listener.supported_kinds(),
            "attachedRoutes": self.standard.attached.get(&listener.key).copied().unwrap_or(0),
            "conditions": [
                as_json("Accepted", &accepted, generation),
                as_json("Conflicted", &conflicted, generation),
                as_json("Programmed", &programmed, generation),
                as_json("ResolvedRefs", &resolved, generation),
            ],
        })
    }

    fn route_status(&self, entry: &Entry, report: &mut Report) -> Option<Value> {
        let state = self.standard.routes.get(&report.id.key)?;
        let wrong = Condition::of("UnsupportedValue", &entry.notes().problems);
        let resolved = state.unresolved.as_ref().map_or(Condition::good("ResolvedRefs"), condition);
        let mut parents = Vec::new();
        for (parent, attached) in &state.parents {
            let accepted = match (attached, &wrong) {
                (Err(refused), _) => condition(refused),
                (Ok(_), Some(wrong)) => wrong.clone(),
                (Ok(_), None) => Condition::good("Accepted"),
            };
            parents.push(json!({
                "parentRef": parent,
                "controllerName": CONTROLLER,
                "conditions": [
                    as_json("Accepted", &accepted, report.generation),
                    as_json("ResolvedRefs", &resolved, report.generation),
                ],
            }));
            if report.accepted.is_true {
                report.accepted = accepted;
            }
        }
        report.resolved = resolved;
        if !report.accepted.is_true {
            let message = match entry.good.is_some() && wrong.is_some() {
                true => "an older generation of the object is served",
                false => "the object is not served by all gateways that it names",
            };
            report.programmed = condition(&Refused::new("Invalid", message));
        }
        Some(json!({"parents": parents}))
    }
}

fn class_status(report: &Report) -> Value {
    let features: Vec<Value> = FEATURES.iter().map(|name| json!({"name": name})).collect();
    json!({
        "conditions": [as_json("Accepted", &report.accepted, report.generation)],
        "supportedFeatures": features,
    })
}

fn condition(refused: &Refused) -> Condition {
    Condition { is_true: false, reason: refused.reason, message: refused.message.clone() }
}

/// A condition as JSON, without the time of its last transition.
fn as_json(name: &str, condition: &Condition, generation: i64) -> Value {
    json!({
        "type": name,
        "status": if condition.is_true { "True" } else { "False" },
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": generation,
    })
}

/// What became of a Gateway, with what became of its sockets.
pub(crate) fn with_sockets(
    mut report: Report,
    table: &Table,
    ports: &BTreeMap<SocketAddr, Result<SocketAddr, String>>,
) -> Report {
    let Some(status) = &mut report.status else { return report };
    let mut all = table.ports().flat_map(|(address, there)| there.iter().map(move |each| (address, each)));
    let mut failed: Vec<(Key, String)> = Vec::new();
    let mut any = false;
    for (address, listener) in all.by_ref().filter(|(_, each)| each.gateway.as_ref() == Some(&report.id.key))
    {
        match ports.get(address) {
            Some(Err(reason)) => failed.push((listener.key.clone(), reason.clone())),
            _ => any = true,
        }
    }
    let generation = report.generation;
    for (key, reason) in &failed {
        let name = key.name().rsplit_once(':').map_or("", |(_, name)| name);
        let listeners = status["listeners"].as_array_mut().into_iter().flatten();
        for listener in listeners.filter(|listener| listener["name"] == name) {
            let refused = condition(&Refused::new("PortUnavailable", reason.clone()));
            set_condition(&mut listener["conditions"], as_json("Accepted", &refused, generation));
            let refused = condition(&Refused::new("Invalid", reason.clone()));
            set_condition(&mut listener["conditions"], as_json("Programmed", &refused, generation));
        }
    }
    if let Some((_, reason)) = failed.first().filter(|_| report.programmed.is_true && !any) {
        report.programmed = condition(&Refused::new("AddressNotUsable", reason.clone()));
        set_condition(&mut status["conditions"], as_json("Programmed", &report.programmed, generation));
    }
    report
}

fn set_condition(conditions: &mut Value, new: Value) {
    for condition in conditions.as_array_mut().into_iter().flatten() {
        if condition["type"] == new["type"] {
            *condition = new.clone();
        }
    }
}
