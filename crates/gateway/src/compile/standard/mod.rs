//! Gateway API: `GatewayClass`, `Gateway`, `HTTPRoute` and `ReferenceGrant`, compiled into the same table as the gateway's own kinds.
//!
//! A listener of a Gateway becomes a listener of the table, called `GATEWAY:LISTENER`, which serves the routes that name it and no others. An
//! HTTPRoute becomes a route called `httproute:NAME`, a port of a Service that routes refer to a backend called `service:NAME:PORT`. Names of objects
//! have no colons, so that none of them can be that of an object of another kind.

mod attach;
mod gateway;
mod grants;
mod http_route;
mod status;

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::Value;
use watchkeeper_core::Key;

use super::{Certificate, Compiler, Put, Users, backend, route};
use crate::kinds::standard::{
    BackendRef, CONTROLLER, GatewayClassSpec, GatewaySpec, HTTPRouteSpec, ParentRef, ReferenceGrantSpec,
};
use crate::kinds::{BackendProtocol, BackendService, GatewayBackendSpec, GatewayRouteSpec, Spec};
use crate::net::HostPattern;
use crate::object::{Input, InputKind, ObjectId, Problem};
use crate::table::Attachment;
use attach::{Refused, attach, gateway_of};
use gateway::CompiledGateway;
use grants::Grants;

pub(crate) use status::with_sockets;

/// What is known of Gateway API objects.
#[derive(Default)]
pub(super) struct Standard {
    /// The classes of this controller.
    classes: Vec<String>,
    /// The gateways of these classes.
    gateways: BTreeMap<Key, CompiledGateway>,
    routes: HashMap<Key, RouteState>,
    grants: Grants,
    /// The labels of namespaces.
    namespaces: HashMap<String, BTreeMap<String, String>>,
    /// The addresses of gateways that name none.
    addresses: BTreeMap<Key, IpAddr>,
    /// How many routes each listener has.
    attached: HashMap<Key, usize>,
    /// Which routes refer to which gateways and Services, and which gateways to which Secrets.
    parents: Users,
    services: Users,
    secrets: Users,
}

impl Standard {
    /// The gateways that refer to a Secret.
    pub(super) fn secrets_of(&self, secret: &Key) -> Vec<Key> {
        self.secrets.of(secret)
    }
}

/// What became of a route.
#[derive(Debug, Default)]
struct RouteState {
    /// The gateways of this controller that it names, and the listeners that serve it or why there are none.
    parents: Vec<(ParentRef, Result<Vec<Key>, Refused>)>,
    /// What it refers to and what is not there.
    unresolved: Option<Refused>,
}

/// The key of a route in the table.
pub(super) fn route_key(key: &Key) -> Key {
    Key::new(key.namespace(), &format!("httproute:{}", key.name()))
}

/// The spec of an object. Fields that are not known are left out: the definitions of the project have more of them.
fn read<S: Spec>(input: &Input) -> Result<S, Vec<Problem>> {
    let spec = input.json.read().get_mut("spec").map(Value::take).unwrap_or_default();
    S::read(spec).map_err(|error| vec![Problem::new("spec", error.to_string())])
}

impl Compiler {
    pub(super) fn put_class(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let spec: GatewayClassSpec = read(input)?;
        let (name, known) = (input.id.key.name(), &mut self.standard.classes);
        let was = known.iter().any(|class| class == name);
        let is = spec.controller_name == CONTROLLER;
        known.retain(|class| class != name);
        if is {
            known.push(name.to_owned());
        }
        if is != was {
            self.settle_gateways(|_| true);
        }
        Ok(Put::default())
    }

    pub(super) fn remove_class(&mut self, key: &Key) {
        self.standard.classes.retain(|class| class != key.name());
        self.settle_gateways(|_| true);
    }

    /// Takes the gateways anew that this is true for.
    fn settle_gateways(&mut self, concerned: impl Fn(&CompiledGateway) -> bool) {
        let gateways = self.objects.keys().filter(|id| id.kind == InputKind::Gateway);
        let known = |key: &Key| self.standard.gateways.get(key).is_none_or(&concerned);
        let mut keys: Vec<Key> = gateways.map(|id| id.key.clone()).filter(|key| known(key)).collect();
        keys.sort();
        self.settle_all(InputKind::Gateway, &keys);
    }

    pub(super) fn put_namespace(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let json = input.json.read();
        let labels = json.pointer("/metadata/labels").and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        let labels =
            labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
        let before = self.standard.namespaces.insert(input.id.key.name().to_owned(), labels);
        if before.as_ref() != self.standard.namespaces.get(input.id.key.name()) {
            self.settle_gateways(selects);
        }
        Ok(Put::default())
    }

    pub(super) fn remove_namespace(&mut self, key: &Key) {
        self.standard.namespaces.remove(key.name());
        self.settle_gateways(selects);
    }

    pub(super) fn put_grant(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        self.standard.grants.put(&input.id.key, read::<ReferenceGrantSpec>(input)?);
        self.settle_granted(input.id.key.namespace());
        Ok(Put::default())
    }

    pub(super) fn remove_grant(&mut self, key: &Key) {
        self.standard.grants.remove(key);
        self.settle_granted(key.namespace());
    }

    /// Takes anew what refers to objects of a namespace whose grants have changed.
    fn settle_granted(&mut self, namespace: Option<&str>) {
        let users = |users: &Users| {
            let names = users.by_name.iter().filter(|(name, _)| name.namespace() == namespace);
            let mut keys: Vec<Key> = names.flat_map(|(_, users)| users.iter().cloned()).collect();
            keys.retain(|user| user.namespace() != namespace);
            keys.sort();
            keys.dedup();
            keys
        };
        let (gateways, routes) = (users(&self.standard.secrets), users(&self.standard.services));
        self.settle_all(InputKind::Gateway, &gateways);
        self.settle_all(InputKind::HttpRoute, &routes);
    }

    pub(super) fn put_gateway(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let key = &input.id.key;
        let spec: GatewaySpec = read(input)?;
        if !self.standard.classes.contains(&spec.gateway_class_name) {
            self.remove_gateway(key);
            return Ok(Put::default());
        }
        let address = self.address_of(key, &spec, input);
        let standard = &self.standard;
        let certificates = &self.certificates;
        let namespace = key.namespace().unwrap_or_default();
        let around = gateway::Around {
            certificate: &|secret| {
                let none = || format!("there is no Secret {secret} of type kubernetes.io/tls");
                certificates.get(secret).cloned().unwrap_or_else(|| Certificate::none(none()))
            },
            is_granted: &|secret| standard.grants.allow(("Gateway", namespace), "Secret", secret),
            selected: &|selector| {
                let all = standard.namespaces.iter();
                let selected = all
                    .filter(|(_, labels)| selector.matches_pairs(|key| labels.get(key).map(String::as_str)));
                let mut names: Vec<String> = selected.map(|(name, _)| name.clone()).collect();
                names.sort();
                names
            },
            moved: &|listener| self.settings.addresses.get(listener).copied(),
        };
        let compiled = gateway::compile(key, input.created.as_ref(), &spec, address, &around);
        let mut changed = Vec::new();
        let new: Vec<Key> = compiled.listeners.iter().map(|listener| listener.key.clone()).collect();
        for gone in self.listeners_of(key).into_iter().filter(|listener| !new.contains(listener)) {
            changed.extend(self.listeners.remove(&gone).map(|listener| listener.address));
        }
        for listener in compiled.listeners {
            changed.push(listener.address);
            let before = self.listeners.insert(listener.key.clone(), Arc::new(listener));
            changed.extend(before.map(|before| before.address));
        }
        changed.sort();
        changed.dedup();
        self.place(&changed);
        self.standard.secrets.set(key, compiled.secrets);
        let before = self.standard.gateways.insert(key.clone(), compiled.gateway);
        if before.as_ref() != self.standard.gateways.get(key) {
            self.settle_all(InputKind::HttpRoute, &self.standard.parents.of(key));
        }
        Ok(Put::default())
    }

    pub(super) fn remove_gateway(&mut self, key: &Key) {
        self.standard.secrets.set(key, Vec::new());
        self.standard.addresses.remove(key);
        let mut changed = Vec::new();
        for listener in self.listeners_of(key) {
            changed.extend(self.listeners.remove(&listener).map(|listener| listener.address));
        }
        self.place(&changed);
        if self.standard.gateways.remove(key).is_some() {
            self.settle_all(InputKind::HttpRoute, &self.standard.parents.of(key));
        }
    }

    /// The listeners of a gateway that are in the table.
    fn listeners_of(&self, gateway: &Key) -> Vec<Key> {
        let known = self.standard.gateways.get(gateway).map(|known| known.listeners.as_slice());
        let listeners = known.unwrap_or_default().iter();
        listeners.filter(|listener| listener.is_served).map(|listener| listener.key.clone()).collect()
    }

    /// The address of a gateway: the one that it names, or one of those that there are for gateways. Once it has one, it keeps it.
    fn address_of(&mut self, key: &Key, spec: &GatewaySpec, input: &Input) -> Result<IpAddr, Refused> {
        for address in &spec.addresses {
            let kind = address.kind.as_deref().unwrap_or("IPAddress");
            if kind != "IPAddress" {
                let message = format!("spec.addresses: the type {kind} is not supported");
                return Err(Refused::new("UnsupportedAddress", message));
            }
            if let Some(value) = address.value.as_ref().filter(|value| !value.is_empty()) {
                return value.parse().map_err(|_| {
                    let message = format!("spec.addresses: {value:?} is not an IP address");
                    Refused::new("UnsupportedAddress", message)
                });
            }
        }
        let (pool, known) = (&self.settings.gateways, &mut self.standard.addresses);
        if pool.len() == 1 {
            return Ok(pool.get(0));
        }
        if let Some(address) = known.get(key) {
            return Ok(*address);
        }
        let is_free = |address: &IpAddr| !known.values().any(|taken| taken == address);
        // After a restart, the one that it had.
        let json = input.json.read();
        let told = json.pointer("/status/addresses/0/value").and_then(Value::as_str);
        let told = told.and_then(|text| text.parse().ok()).filter(|address| pool.contains(*address));
        let mut hasher = DefaultHasher::new();
        key.to_string().hash(&mut hasher);
        let first = hasher.finish() % pool.len();
        let from = |at: u64| pool.get((first + at) % pool.len());
        let found = told.filter(is_free).or_else(|| (0..pool.len()).map(from).find(is_free));
        let found = found
            .ok_or_else(|| Refused::new("AddressNotAssigned", "all addresses for gateways are taken"))?;
        known.insert(key.clone(), found);
        Ok(found)
    }

    pub(super) fn put_http_route(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let key = &input.id.key;
        let namespace = key.namespace().unwrap_or_default();
        let spec: HTTPRouteSpec = read(input)?;
        let mut problems = Vec::new();
        let mut hosts = Vec::new();
        for (at, host) in spec.hostnames.iter().enumerate() {
            match HostPattern::parse(host) {
                Ok(host) => hosts.push(host),
                Err(message) => problems.push(Problem::new(format!("spec.hostnames[{at}]"), message)),
            }
        }
        let gateways: Vec<Key> =
            spec.parent_refs.iter().filter_map(|parent| gateway_of(parent, namespace)).collect();
        let mut state = RouteState::default();
        for parent in &spec.parent_refs {
            let gateway = gateway_of(parent, namespace);
            let Some(gateway) = gateway.and_then(|gateway| self.standard.gateways.get(&gateway)) else {
                continue;
            };
            state.parents.push((parent.clone(), attach(gateway, parent, namespace, &hosts)));
        }
        self.standard.parents.set(key, gateways);
        let mut services = Vec::new();
        let rules = http_route::translate(&spec.rules, &mut |field, reference| {
            self.resolve(key, field, reference, &mut services, &mut state.unresolved)
        });
        services.sort();
        services.dedup();
        self.standard.services.set(key, services);
        let listeners = state.listeners();
        self.note_attached(key, state);
        let table_key = route_key(key);
        if listeners.is_empty() {
            self.remove_standard_route(&table_key);
            return if problems.is_empty() { Ok(Put::default()) } else { Err(problems) };
        }
        let rules = match rules {
            Ok(rules) if problems.is_empty() => rules,
            Ok(_) => return Err(problems),
            Err(more) => return Err([problems, more].concat()),
        };
        let source = route::Source {
            key: &table_key,
            created: input.created.as_ref(),
            listeners: Some(listeners.into()),
            backend: &backend_key,
            standard: true,
            stats: self.stats(&table_key),
        };
        let own = GatewayRouteSpec { listeners: Vec::new(), hosts: spec.hostnames, rules };
        let route = route::compile_spec(&own, source)?;
        self.put_compiled_route(Arc::new(route));
        self.follow_service_backends(&table_key);
        Ok(Put::default())
    }

    pub(super) fn remove_http_route(&mut self, key: &Key) {
        self.standard.parents.set(key, Vec::new());
        self.standard.services.set(key, Vec::new());
        self.note_attached(key, RouteState::default());
        self.standard.routes.remove(key);
        self.remove_standard_route(&route_key(key));
        self.stats.remove(&route_key(key));
    }

    fn remove_standard_route(&mut self, key: &Key) {
        let backends = self.backend_users.by_user.get(key).cloned().unwrap_or_default();
        self.backend_users.set(key, Vec::new());
        if let Some(route) = self.table.remove_route(key) {
            self.stats.insert(key.clone(), Arc::clone(&route.head.stats));
            self.touch_doubles(&route);
            self.touch_policies(&Attachment::Route(key.clone()));
        }
        self.drop_unused(&backends);
    }

    /// Notes what became of a route, and counts the routes of its listeners.
    fn note_attached(&mut self, key: &Key, state: RouteState) {
        let before = self.standard.routes.get(key).map(RouteState::listeners).unwrap_or_default();
        let after = state.listeners();
        for listener in after.iter().filter(|listener| !before.contains(listener)) {
            *self.standard.attached.entry(listener.clone()).or_default() += 1;
        }
        for listener in before.iter().filter(|listener| !after.contains(listener)) {
            if let Some(count) = self.standard.attached.get_mut(listener) {
                *count -= 1;
                if *count == 0 {
                    self.standard.attached.remove(listener);
                }
            }
        }
        if before != after {
            let gateways = before.iter().chain(&after).filter_map(|listener| {
                let name = listener.name().rsplit_once(':')?.0;
                Some(ObjectId { kind: InputKind::Gateway, key: Key::new(listener.namespace(), name) })
            });
            self.touched.extend(gateways.collect::<Vec<_>>());
        }
        self.standard.routes.insert(key.clone(), state);
    }

    /// The name of the backend for a reference. A reference that leads nowhere has one that is none: its requests are answered with 500.
    fn resolve(
        &self,
        route: &Key,
        field: &str,
        reference: &BackendRef,
        services: &mut Vec<Key>,
        unresolved: &mut Option<Refused>,
    ) -> String {
        let mut refuse = |reason, message: String| {
            unresolved.get_or_insert_with(|| Refused::new(reason, format!("{field}: {message}")));
            String::new()
        };
        let (group, kind) = (reference.group.as_deref().unwrap_or_default(), reference.kind.as_deref());
        if !group.is_empty() || kind.unwrap_or("Service") != "Service" {
            return refuse(
                "InvalidKind",
                format!("{} is not supported: it is not a Service", kind.unwrap_or_default()),
            );
        }
        let service = Key::new(reference.namespace.as_deref().or(route.namespace()), &reference.name);
        services.push(service.clone());
        let namespace = route.namespace().unwrap_or_default();
        if service.namespace() != route.namespace()
            && !self.standard.grants.allow(("HTTPRoute", namespace), "Service", &service)
        {
            let message =
                format!("no ReferenceGrant allows HTTPRoutes of this namespace to use Service {service}");
            return refuse("RefNotPermitted", message);
        }
        let port = reference.port.and_then(|port| u16::try_from(port).ok()).unwrap_or(0);
        if !self.services.has_port(&service, port) {
            return refuse("BackendNotFound", format!("there is no Service {service} with port {port}"));
        }
        format!("{}/service:{}:{port}", service.namespace().unwrap_or_default(), service.name())
    }

    /// Has the table have a backend for each port of a Service that a route refers to, and for no others.
    fn follow_service_backends(&mut self, route: &Key) {
        for key in self.backend_users.by_user.get(route).cloned().unwrap_or_default() {
            if self.table.backend(&key).is_none() {
                self.put_service_backend(&key);
            }
        }
    }

    /// Removes backends of Services that no route refers to any more.
    pub(super) fn drop_unused(&mut self, backends: &[Key]) {
        for key in backends.iter().filter(|key| key.name().starts_with("service:")) {
            if self.backend_users.by_name.contains_key(key) {
                continue;
            }
            self.service_users.set(key, Vec::new());
            self.backends.remove(key);
            self.table.remove_backend(key);
            self.touched.insert(ObjectId { kind: InputKind::Backend, key: key.clone() });
        }
    }

    /// Compiles the backend of a port of a Service.
    pub(super) fn put_service_backend(&mut self, key: &Key) {
        let Some((name, port)) = service_of(key) else { return };
        let service = Key::new(key.namespace(), name);
        let spec = GatewayBackendSpec {
            service: Some(BackendService { name: name.to_owned(), port: i32::from(port) }),
            protocol: match self.services.speaks_http2(&service, port) {
                true => BackendProtocol::HTTP2,
                false => BackendProtocol::HTTP1,
            },
            ..GatewayBackendSpec::default()
        };
        let services = &self.services;
        let around = backend::Around {
            base: &self.settings.base,
            service: &|service, port| services.addresses(service, port),
        };
        let learned = self.backends.entry(key.clone()).or_default();
        // Nothing in it can be wrong.
        if let Ok(compiled) = backend::compile_spec(key, spec, learned, &around) {
            self.service_users.set(key, compiled.service.into_iter().collect());
            self.table.put_backend(Arc::new(compiled.backend));
        }
    }

    /// Takes anew what refers to Services that have changed.
    pub(super) fn settle_service_routes(&mut self, services: &[Key]) {
        for service in services {
            self.settle_all(InputKind::HttpRoute, &self.standard.services.of(service));
        }
    }
}

/// Whether a gateway has listeners for namespaces with certain labels.
fn selects(gateway: &CompiledGateway) -> bool {
    gateway.listeners.iter().any(|listener| listener.selects)
}

/// `NAMESPACE/NAME` as a key. What has no namespace is the key of no backend.
fn backend_key(name: &str) -> Key {
    match name.split_once('/') {
        Some((namespace, name)) => Key::new(Some(namespace), name),
        None => Key::new(None, "service:none:0"),
    }
}

/// The name and the port of the Service whose backend this is.
fn service_of(backend: &Key) -> Option<(&str, u16)> {
    let (name, port) = backend.name().strip_prefix("service:")?.rsplit_once(':')?;
    backend.namespace()?;
    Some((name, port.parse().ok()?))
}

impl RouteState {
    /// The listeners that serve the route.
    fn listeners(&self) -> Vec<Key> {
        let attached = self.parents.iter().filter_map(|(_, attached)| attached.as_ref().ok());
        let mut listeners: Vec<Key> = attached.flatten().cloned().collect();
        listeners.sort();
        listeners.dedup();
        listeners
    }
}
