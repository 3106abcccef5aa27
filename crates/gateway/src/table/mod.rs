//! The table: everything that a request needs to know, compiled and never changed.
//!
//! A [`Table`] is immutable. A change makes another one that shares all with the one before but the few nodes on the way to what
//! changed, so that it costs the same with ten routes and with ten thousand. A request takes the table that is current when it comes in and
//! keeps it until its last byte.
//!
//! Objects refer to each other by name, and names are looked up when a request needs them: that a backend changes is nothing that
//! routes have to be compiled again for.

mod action;
mod host;
mod listener;
mod rule;

pub use action::*;
pub use listener::*;
pub use rule::*;

use std::net::SocketAddr;
use std::sync::Arc;

use watchkeeper_core::Key;

use crate::ai::AiTable;
use crate::api::Api;
use crate::net::HostPattern;
pub use crate::policy::Attachment;
use crate::policy::Policy;
use crate::upstream::Backend;
use host::HostTable;

/// A compiled route.
#[derive(Debug)]
pub struct Route {
    /// What its rules have in common.
    pub head: Arc<RouteHead>,
    /// Its hosts.
    pub hosts: Box<[HostPattern]>,
    /// Its rules, one for each match.
    pub rules: Box<[Arc<Rule>]>,
}

/// Everything that requests need to know.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// How many tables came before it.
    pub generation: u64,
    /// Whether requests have to wait, because policies that may be for them are not known yet. They are answered with 503.
    pub is_withheld: bool,
    ports: imbl::OrdMap<SocketAddr, Arc<[Arc<Listener>]>>,
    exact: imbl::HashMap<Arc<str>, Arc<HostTable>>,
    /// By what names end in, beginning with a dot.
    below: imbl::HashMap<Arc<str>, Arc<HostTable>>,
    any: Arc<HostTable>,
    routes: imbl::OrdMap<Key, Arc<Route>>,
    backends: imbl::HashMap<Key, Arc<Backend>>,
    policies: imbl::HashMap<Attachment, Arc<[Arc<Policy>]>>,
    /// The APIs that routes belong to.
    apis: imbl::HashMap<Key, Arc<Api>>,
    /// What calls of models need to know.
    pub ai: Arc<AiTable>,
}

impl Table {
    /// The listeners by address, the most specific host name first.
    pub fn ports(&self) -> impl Iterator<Item = (&SocketAddr, &Arc<[Arc<Listener>]>)> {
        self.ports.iter()
    }

    /// The listeners of an address.
    pub fn port(&self, address: &SocketAddr) -> &[Arc<Listener>] {
        self.ports.get(address).map_or(&[], |listeners| listeners)
    }

    /// The listener of an address that a host is for.
    pub fn listener(&self, address: &SocketAddr, host: &str) -> Option<&Arc<Listener>> {
        self.port(address).iter().find(|listener| listener.hostname.contains(host))
    }

    /// All routes, by name.
    pub fn routes(&self) -> impl Iterator<Item = &Arc<Route>> {
        self.routes.values()
    }

    /// A route.
    pub fn route(&self, key: &Key) -> Option<&Arc<Route>> {
        self.routes.get(key)
    }

    /// All backends, in no order.
    pub fn backends(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.backends.values()
    }

    /// A backend.
    pub fn backend(&self, key: &Key) -> Option<&Arc<Backend>> {
        self.backends.get(key)
    }

    /// Whether there are any policies.
    pub fn has_policies(&self) -> bool {
        !self.policies.is_empty()
    }

    /// The policies that are attached to something.
    pub fn policies(&self, attachment: &Attachment) -> &[Arc<Policy>] {
        self.policies.get(attachment).map_or(&[], |policies| policies)
    }

    /// All policies with what they are attached to, in no order.
    pub fn attachments(&self) -> impl Iterator<Item = (&Attachment, &Arc<[Arc<Policy>]>)> {
        self.policies.iter()
    }

    /// The API that a route belongs to.
    pub fn api(&self, route: &Key) -> Option<&Arc<Api>> {
        if self.apis.is_empty() { None } else { self.apis.get(route) }
    }

    /// Says which API a route belongs to.
    pub(crate) fn put_api(&mut self, route: &Key, api: Option<Arc<Api>>) {
        match api {
            Some(api) => drop(self.apis.insert(route.clone(), api)),
            None => drop(self.apis.remove(route)),
        }
    }

    /// The rule that serves a request.
    pub fn find(&self, asked: &Asked<'_>) -> Option<&Arc<Rule>> {
        self.walk(asked, |rule| rule.matches(asked)).map(|(rule, _)| rule)
    }

    /// Goes through the rules whose host and path may be those of a request, in the order of precedence, until one is taken. Says
    /// which host led to it.
    pub fn walk<'a>(
        &'a self,
        asked: &Asked<'_>,
        mut take: impl FnMut(&'a Arc<Rule>) -> bool,
    ) -> Option<(&'a Arc<Rule>, HostPattern)> {
        let Asked { host, path, .. } = *asked;
        if let Some((name, table)) = self.exact.get_key_value(host)
            && let Some(found) = table.find(path, &mut take)
        {
            return Some((found, HostPattern::Exact(Arc::clone(name))));
        }
        if !self.below.is_empty() {
            // The first suffix is the longest.
            for (at, _) in host.bytes().enumerate().filter(|(at, byte)| *byte == b'.' && *at > 0) {
                if let Some((name, table)) = self.below.get_key_value(&host[at..])
                    && let Some(found) = table.find(path, &mut take)
                {
                    return Some((found, HostPattern::Below(Arc::clone(name))));
                }
            }
        }
        self.any.find(path, &mut take).map(|found| (found, HostPattern::Any))
    }

    /// The rules of other routes that match exactly what a rule of this route matches, with the rule.
    pub fn doubles<'a>(&'a self, route: &'a Route) -> Vec<(&'a Arc<Rule>, &'a Arc<Rule>)> {
        let mut doubles = Vec::new();
        for (host, rule) in route.places() {
            let Some(table) = self.host(host) else { continue };
            let others = table.slot(rule).iter().filter(|other| other.route.key != route.head.key);
            doubles.extend(others.filter(|other| rule.is_double(other)).map(|other| (rule, other)));
        }
        doubles
    }

    fn host(&self, host: &HostPattern) -> Option<&Arc<HostTable>> {
        match host {
            HostPattern::Exact(name) => self.exact.get(name),
            HostPattern::Below(suffix) => self.below.get(suffix),
            HostPattern::Any => Some(&self.any),
        }
    }

    /// Puts a route in the place of the one that there was.
    pub(crate) fn put_route(&mut self, route: Arc<Route>) {
        self.remove_route(&route.head.key);
        for (host, rule) in route.places() {
            self.change_host(host, |table| table.insert(rule));
        }
        self.routes.insert(route.head.key.clone(), route);
    }

    /// Removes a route.
    pub(crate) fn remove_route(&mut self, key: &Key) -> Option<Arc<Route>> {
        let route = self.routes.remove(key)?;
        for (host, rule) in route.places() {
            self.change_host(host, |table| table.remove(rule));
        }
        Some(route)
    }

    fn change_host(&mut self, host: &HostPattern, change: impl FnOnce(&mut HostTable)) {
        let (tables, name) = match host {
            HostPattern::Any => return change(Arc::make_mut(&mut self.any)),
            HostPattern::Exact(name) => (&mut self.exact, name),
            HostPattern::Below(suffix) => (&mut self.below, suffix),
        };
        let table = tables.entry(Arc::clone(name)).or_default();
        change(Arc::make_mut(table));
        if table.is_empty() {
            tables.remove(name);
        }
    }

    pub(crate) fn put_backend(&mut self, backend: Arc<Backend>) {
        self.backends.insert(backend.key.clone(), backend);
    }

    pub(crate) fn remove_backend(&mut self, key: &Key) {
        self.backends.remove(key);
    }

    /// Says which listeners there are on an address, most specific first.
    pub(crate) fn put_port(&mut self, address: SocketAddr, listeners: Vec<Arc<Listener>>) {
        if listeners.is_empty() {
            self.ports.remove(&address);
        } else {
            self.ports.insert(address, listeners.into());
        }
    }

    /// Says which policies are attached to something, in their order.
    pub(crate) fn put_policies(&mut self, attachment: Attachment, policies: Vec<Arc<Policy>>) {
        if policies.is_empty() {
            self.policies.remove(&attachment);
        } else {
            self.policies.insert(attachment, policies.into());
        }
    }
}

impl Route {
    /// Its rules, for each of its hosts.
    fn places(&self) -> impl Iterator<Item = (&HostPattern, &Arc<Rule>)> {
        self.hosts.iter().flat_map(|host| self.rules.iter().map(move |rule| (host, rule)))
    }
}
