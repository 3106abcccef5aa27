//! `Gateway` objects to listeners.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use watchkeeper_core::Key;
use watchkeeper_wire::LabelSelector;

use super::super::Certificate;
use super::attach::Refused;
use crate::kinds::standard::{AllowedRoutes, GROUP, GatewaySpec, SecretRef, StandardListener};
use crate::kinds::{ForwardedHeaders, ListenerProtocol};
use crate::net::{HostPattern, Networks};
use crate::table::{HostCertificate, Listener, SocketSettings};

/// A namespace that cannot be: a listener whose routes are all from there has none.
const NOWHERE: &str = "";

/// A gateway of this controller.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CompiledGateway {
    pub(super) listeners: Vec<CompiledListener>,
    /// Where it listens, or why nowhere.
    pub(super) address: Option<Result<IpAddr, Refused>>,
}

/// What routes and statuses need to know of a listener.
#[derive(Debug, PartialEq)]
pub(super) struct CompiledListener {
    pub(super) name: String,
    /// Its key in the table.
    pub(super) key: Key,
    pub(super) port: u16,
    pub(super) hostname: HostPattern,
    /// Whether routes of kind `HTTPRoute` are for it.
    pub(super) takes_http: bool,
    /// The namespaces whose routes it serves; `None` for all.
    pub(super) namespaces: Option<Vec<String>>,
    /// Whether that depends on the labels of namespaces.
    pub(super) selects: bool,
    /// Why it cannot be used.
    pub(super) invalid: Option<Refused>,
    /// What it refers to and what is not there.
    pub(super) unresolved: Option<Refused>,
    /// Whether it is in the table.
    pub(super) is_served: bool,
}

impl CompiledListener {
    pub(super) fn allows(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|namespaces| namespaces.iter().any(|name| name == namespace))
    }

    /// The kinds of its routes, as its status has them.
    pub(super) fn supported_kinds(&self) -> Value {
        match self.takes_http {
            true => json!([{"group": GROUP, "kind": "HTTPRoute"}]),
            false => json!([]),
        }
    }
}

/// The key of a listener in the table.
pub(super) fn listener_key(gateway: &Key, listener: &str) -> Key {
    Key::new(gateway.namespace(), &format!("{}:{listener}", gateway.name()))
}

/// What a gateway needs to know of others.
pub(super) struct Around<'a> {
    /// The certificate of a Secret.
    pub(super) certificate: &'a dyn Fn(&Key) -> Certificate,
    /// Whether a gateway of this namespace may refer to a Secret of another.
    pub(super) is_granted: &'a dyn Fn(&Key) -> bool,
    /// The namespaces that a selector selects.
    pub(super) selected: &'a dyn Fn(&LabelSelector) -> Vec<String>,
    /// The address that takes the place of the one in the object.
    pub(super) moved: &'a dyn Fn(&Key) -> Option<SocketAddr>,
}

/// A gateway, its listeners for the table, and the Secrets that it refers to.
pub(super) struct Compiled {
    pub(super) gateway: CompiledGateway,
    pub(super) listeners: Vec<Listener>,
    pub(super) secrets: Vec<Key>,
}

pub(super) fn compile(
    key: &Key,
    created: Option<&Arc<str>>,
    spec: &GatewaySpec,
    address: Result<IpAddr, Refused>,
    around: &Around<'_>,
) -> Compiled {
    let mut compiled =
        Compiled { gateway: CompiledGateway::default(), listeners: Vec::new(), secrets: Vec::new() };
    for wanted in &spec.listeners {
        let mut state = CompiledListener {
            name: wanted.name.clone(),
            key: listener_key(key, &wanted.name),
            port: u16::try_from(wanted.port).unwrap_or(0),
            hostname: HostPattern::Any,
            takes_http: true,
            namespaces: None,
            selects: false,
            invalid: None,
            unresolved: None,
            is_served: false,
        };
        let protocol = protocol(wanted, &mut state);
        if let Some(text) = wanted.hostname.as_ref().filter(|text| !text.is_empty()) {
            match HostPattern::parse(text) {
                Ok(pattern) => state.hostname = pattern,
                Err(message) => {
                    refuse(&mut state.invalid, "UnsupportedValue", format!("hostname: {message}"));
                }
            }
        }
        allowed(key, wanted.allowed_routes.as_ref(), &mut state, around);
        let certificates = match protocol {
            Some(ListenerProtocol::HTTPS) => {
                certificates(key, wanted, &mut state, &mut compiled.secrets, around)
            }
            _ => Vec::new(),
        };
        let is_dark = protocol == Some(ListenerProtocol::HTTPS) && certificates.is_empty();
        if let (Some(protocol), None, false, Ok(address)) = (protocol, &state.invalid, is_dark, &address) {
            state.is_served = true;
            let bound = SocketAddr::new(*address, state.port);
            compiled.listeners.push(Listener {
                key: state.key.clone(),
                gateway: Some(key.clone()),
                created: created.cloned(),
                address: (around.moved)(&state.key).unwrap_or(bound),
                protocol,
                hostname: state.hostname.clone(),
                certificates: certificates.into(),
                namespaces: match &state.namespaces {
                    None => Box::default(),
                    Some(none) if none.is_empty() => [NOWHERE.to_owned()].into(),
                    Some(some) => some.as_slice().into(),
                },
                trusted: Networks::default(),
                forwarded: ForwardedHeaders::default(),
                max_body: None,
                socket: SocketSettings {
                    protocol,
                    connections: None,
                    streams: None,
                    idle: Duration::from_secs(75),
                    headers: Duration::from_secs(10),
                    proxy_protocol: false,
                },
            });
        }
        compiled.gateway.listeners.push(state);
    }
    compiled.gateway.address = Some(address);
    compiled
}

/// Notes the first thing that is wrong.
fn refuse(place: &mut Option<Refused>, reason: &'static str, message: impl Into<String>) {
    place.get_or_insert_with(|| Refused::new(reason, message));
}

fn protocol(wanted: &StandardListener, state: &mut CompiledListener) -> Option<ListenerProtocol> {
    let protocol = match wanted.protocol.as_str() {
        "HTTP" => ListenerProtocol::HTTP,
        "HTTPS" => ListenerProtocol::HTTPS,
        other => {
            state.takes_http = false;
            let message = format!("protocol: {other:?} is neither HTTP nor HTTPS");
            refuse(&mut state.invalid, "UnsupportedProtocol", message);
            return None;
        }
    };
    let mode = wanted.tls.as_ref().and_then(|tls| tls.mode.as_deref());
    if protocol == ListenerProtocol::HTTPS && mode.is_some_and(|mode| mode != "Terminate") {
        refuse(&mut state.invalid, "UnsupportedValue", "tls.mode: only Terminate is supported");
    }
    Some(protocol)
}

/// Which routes a listener takes.
fn allowed(
    gateway: &Key,
    allowed: Option<&AllowedRoutes>,
    state: &mut CompiledListener,
    around: &Around<'_>,
) {
    let own = || Some(vec![gateway.namespace().unwrap_or_default().to_owned()]);
    let namespaces = allowed.and_then(|allowed| allowed.namespaces.as_ref());
    state.namespaces = match namespaces.and_then(|namespaces| namespaces.from.as_deref()) {
        Some("All") => None,
        Some("None") => Some(Vec::new()),
        Some("Selector") => {
            state.selects = true;
            let selector = namespaces.and_then(|namespaces| namespaces.selector.as_ref());
            let selector = selector.and_then(|selector| serde_json::to_value(selector).ok());
            match LabelSelector::from_object(selector.as_ref()) {
                Ok(selector) => Some((around.selected)(&selector)),
                Err(message) => {
                    let message = format!("allowedRoutes.namespaces.selector: {message}");
                    refuse(&mut state.invalid, "UnsupportedValue", message);
                    Some(Vec::new())
                }
            }
        }
        _ => own(),
    };
    let kinds = allowed.map(|allowed| allowed.kinds.as_slice()).unwrap_or_default();
    let is_known = |kind: &crate::kinds::standard::RouteGroupKind| {
        kind.kind == "HTTPRoute" && kind.group.as_deref().unwrap_or(GROUP) == GROUP
    };
    if kinds.is_empty() || !state.takes_http {
        return;
    }
    state.takes_http = kinds.iter().any(is_known);
    if let Some(unknown) = kinds.iter().find(|kind| !is_known(kind)) {
        let message = format!("allowedRoutes.kinds: {} is not supported", unknown.kind);
        refuse(&mut state.unresolved, "InvalidRouteKinds", message);
    }
}

fn certificates(
    gateway: &Key,
    wanted: &StandardListener,
    state: &mut CompiledListener,
    secrets: &mut Vec<Key>,
    around: &Around<'_>,
) -> Vec<HostCertificate> {
    let references = wanted.tls.as_ref().map(|tls| tls.certificate_refs.as_slice()).unwrap_or_default();
    if references.is_empty() {
        refuse(&mut state.unresolved, "InvalidCertificateRef", "tls.certificateRefs: is empty");
    }
    let mut found = Vec::new();
    for (at, SecretRef { group, kind, name, namespace }) in references.iter().enumerate() {
        let field = format!("tls.certificateRefs[{at}]");
        if group.as_deref().unwrap_or_default() != "" || kind.as_deref().unwrap_or("Secret") != "Secret" {
            refuse(&mut state.unresolved, "InvalidCertificateRef", format!("{field}: is not a Secret"));
            continue;
        }
        let secret = Key::new(namespace.as_deref().or(gateway.namespace()), name);
        secrets.push(secret.clone());
        if secret.namespace() != gateway.namespace() && !(around.is_granted)(&secret) {
            let message = format!(
                "{field}: no ReferenceGrant allows Gateways of this namespace to use Secret {secret}"
            );
            refuse(&mut state.unresolved, "RefNotPermitted", message);
            continue;
        }
        let Certificate { served, problem } = (around.certificate)(&secret);
        found.extend(served.map(|certificate| HostCertificate { hosts: Box::default(), certificate }));
        if let Some(problem) = problem {
            refuse(&mut state.unresolved, "InvalidCertificateRef", format!("{field}: {problem}"));
        }
    }
    found
}
