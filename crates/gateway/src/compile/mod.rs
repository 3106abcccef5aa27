//! Objects to a table.
//!
//! The [`Compiler`] takes one object at a time, in any order, and changes the [`Table`] by what depends on it.
//!
//! # What it promises
//!
//! - **The order does not matter.** The same objects give the same table, in whichever order, how often and from how many sources at a time
//!   they came. An object may refer to one that comes later, or never.
//! - **One bad object harms no other.** An object that cannot be used keeps its last good form, and [`Report`] says why.
//! - **A change costs what it changes**: its own rules, and the listeners and backends that refer to a Secret or a Service.
//! - **Conflicts are decided by age, then by name**, and both sides are told. Of one object in two sources, that of the first source counts.
//! - **State is not configuration.** What is counted and learned stays when an object is edited.

pub(crate) mod ai;
mod ai_prices;
mod ai_prompt;
mod api;
mod backend;
mod entry;
mod fields;
mod ledgers;
mod listener;
mod mcp;
mod policy;
mod report;
mod route;
mod services;
mod standard;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use watchkeeper_core::Key;
use watchkeeper_front::ServerCertificate;
use watchkeeper_informer::Object;

use crate::net::AddressPool;
use crate::object::{Input, InputKind, ObjectId, Problem};
use crate::policy::{Policy, PolicyState};
use crate::stats::RouteStats;
use crate::table::{Attachment, Listener, Table};
use entry::{Entry, Form, Notes};
pub use report::{Condition, Report};
use services::Services;
use standard::Standard;
pub(crate) use standard::with_sockets;

/// Makes a table of objects.
#[derive(Default)]
pub struct Compiler {
    settings: Settings,
    table: Table,
    objects: HashMap<ObjectId, Entry>,
    listeners: BTreeMap<Key, Arc<Listener>>,
    /// Listeners that cannot be where they want to be, and why.
    displaced: BTreeMap<Key, Problem>,
    policies: BTreeMap<Key, Arc<Policy>>,
    certificates: HashMap<Key, Certificate>,
    /// The pairs of files that listeners serve, by the names of certificate and key.
    pairs: HashMap<Key, listener::Pairs>,
    services: Services,
    backends: HashMap<Key, backend::Learned>,
    /// What was counted of routes that are not in the table for now.
    stats: HashMap<Key, Arc<RouteStats>>,
    policy_states: HashMap<Key, Arc<PolicyState>>,
    /// Who refers to what.
    secret_users: Users,
    service_users: Users,
    backend_users: Users,
    standard: Standard,
    ai: ai::AiObjects,
    apis: api::ApiObjects,
    touched: BTreeSet<ObjectId>,
    /// Whether the table is another than when this was asked last.
    changed: bool,
}

/// What is not in objects.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where files are that objects name.
    pub base: PathBuf,
    /// Listeners that listen elsewhere than their objects say.
    pub addresses: HashMap<Key, SocketAddr>,
    /// Where the Gateways of Gateway API listen that name no address. With several addresses, each Gateway gets one of its own.
    pub gateways: AddressPool,
    /// What budgets were charged with before, and the moment, in seconds since 1970, whose periods that is about.
    pub spent: crate::ai::records::Spent,
    /// See `spent`.
    pub spent_at: u64,
}

/// Where an object is: the number of its source, and its key there. The first place counts.
pub type Place = (usize, Key);

/// Numbers of places of the state file begin here, in the order of the sources whose objects it has: whatever a source says counts more.
pub(crate) const REMEMBERED: usize = usize::MAX / 2;

/// The number of the source that a place is of; also of one of the state file.
pub(crate) fn source_number(place: &Place) -> usize {
    match place.0.checked_sub(REMEMBERED) {
        Some(number) => number,
        None => place.0,
    }
}

/// Whether a source has under one place what it has, or had when the state file was written, under the other.
fn is_same_place(one: &Place, other: &Place) -> bool {
    source_number(one) == source_number(other) && one.1 == other.1
}

/// What tells that a file is another: time, length, and number on disk.
type FilePrint = (std::time::SystemTime, u64, u64);

fn print_of(file: &std::path::Path) -> Option<FilePrint> {
    let metadata = file.metadata().ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let number = 0;
    Some((metadata.modified().ok()?, metadata.len(), number))
}

/// A certificate of a Secret, or of two files.
#[derive(Clone, Debug, Default)]
struct Certificate {
    /// The last pair that fits together.
    served: Option<ServerCertificate>,
    /// Why what is there now is not served.
    problem: Option<String>,
}

impl Certificate {
    /// There is none.
    fn none(problem: String) -> Self {
        Self { served: None, problem: Some(problem) }
    }

    /// What was read, or if that cannot be used, what was served before.
    fn read(found: Result<ServerCertificate, String>, before: Option<ServerCertificate>) -> Self {
        match (found, before) {
            (Ok(found), _) => Self { served: Some(found), problem: None },
            (Err(problem), None) => Self::none(problem),
            (Err(problem), before) => {
                Self { served: before, problem: Some(format!("{problem}; the certificate before is served")) }
            }
        }
    }
}

/// Which objects refer to a name.
#[derive(Default)]
struct Users {
    by_name: HashMap<Key, BTreeSet<Key>>,
    by_user: HashMap<Key, Box<[Key]>>,
}

impl Users {
    /// Says what an object refers to now.
    fn set(&mut self, user: &Key, names: Vec<Key>) {
        for name in self.by_user.remove(user).unwrap_or_default() {
            if let Some(users) = self.by_name.get_mut(&name) {
                users.remove(user);
                if users.is_empty() {
                    self.by_name.remove(&name);
                }
            }
        }
        for name in &names {
            self.by_name.entry(name.clone()).or_default().insert(user.clone());
        }
        if !names.is_empty() {
            self.by_user.insert(user.clone(), names.into());
        }
    }

    fn of(&self, name: &Key) -> Vec<Key> {
        self.by_name.get(name).map(|users| users.iter().cloned().collect()).unwrap_or_default()
    }
}

impl Compiler {
    /// A compiler without objects.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// The table of what was told so far. Cheap: it shares everything.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Takes the state that a place has of an object now; `None` if it has none any more.
    pub fn apply(&mut self, place: &Place, id: &ObjectId, input: Option<Input>) {
        let entry = self.objects.entry(id.clone()).or_default();
        let before = entry.set(place, input);
        // A form that does not count: nothing to compile either.
        if entry.first().is_some_and(|first| first.place < *place) {
            self.touched.insert(id.clone());
            return;
        }
        // A status that was written, or another label: nothing to compile, but who waits for the report gets it.
        let after = entry.at(place).cloned();
        if let Some((before, after)) = before.zip(after)
            && before.input.means_the_same(&after.input)
        {
            // Of the two, which differ in bytes only, one is kept.
            if entry.notes().problems.is_empty()
                && let Some(good) = entry.good.as_mut().filter(|good| good.place == *place)
            {
                *good = after;
            }
            self.touched.insert(id.clone());
            return;
        }
        self.settle(id);
    }

    /// The object of a source that an informer has; `None` if it is of the state file.
    pub(crate) fn stored(&self, id: &ObjectId, source: usize) -> Option<&Object<Value>> {
        let mut candidates = self.objects.get(id)?.candidates().iter();
        candidates.find(|form| form.place.0 == source)?.input.json.object()
    }

    /// Whether a place has an object.
    pub(crate) fn has(&self, id: &ObjectId, place: &Place) -> bool {
        self.objects.get(id).is_some_and(|entry| entry.at(place).is_some())
    }

    /// All objects, in their order.
    pub fn objects(&self) -> Vec<ObjectId> {
        let mut all: Vec<ObjectId> = self.objects.keys().cloned().collect();
        all.sort();
        all
    }

    /// The forms that are in the table, with their places: what is to be kept for a start without sources.
    pub fn good(&self) -> Vec<(Place, Input)> {
        let good = self.objects.values().filter_map(|entry| entry.good.as_deref());
        good.map(|form| (form.place.clone(), form.input.clone())).collect()
    }

    /// The objects whose report may have changed since this was asked last.
    pub fn take_touched(&mut self) -> BTreeSet<ObjectId> {
        std::mem::take(&mut self.touched)
    }

    /// Has the reports of all objects be asked for again, and the table be published.
    pub fn touch_all(&mut self) {
        self.changed |= !self.objects.is_empty();
        self.touched.extend(self.objects.keys().cloned());
    }

    /// Whether anything was compiled since this was asked last: otherwise the table is the one that was published.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Takes objects anew whose files have changed. Says whether there were any.
    pub fn refresh_files(&mut self) -> bool {
        let changed =
            |entry: &Entry| entry.notes().files.iter().any(|(file, print)| print_of(file) != *print);
        let users: Vec<ObjectId> =
            self.objects.iter().filter(|(_, entry)| changed(entry)).map(|(id, _)| id.clone()).collect();
        for id in &users {
            self.settle(id);
        }
        !users.is_empty()
    }

    /// Brings the table up to what is known of an object.
    fn settle(&mut self, id: &ObjectId) {
        self.touched.insert(id.clone());
        self.changed = true;
        let Some(entry) = self.objects.get(id) else { return };
        let Some(form) = entry.first().cloned() else {
            self.remove(id);
            self.objects.remove(id);
            return;
        };
        let Form { place, input } = &*form;
        let files = input.files().into_iter().map(|file| self.settings.base.join(file));
        let mut notes =
            Notes { files: files.map(|file| (file.clone(), print_of(&file))).collect(), ..Notes::default() };
        let done = match id.kind {
            InputKind::Listener => self.put_listener(input),
            InputKind::Route => self.put_route(input),
            InputKind::Backend => self.put_backend(input),
            InputKind::Policy => self.put_policy(input),
            InputKind::AiGateway => self.put_ai_gateway(input),
            InputKind::Model => self.put_model(input),
            InputKind::LlmPolicy => self.put_llm_policy(input),
            InputKind::Prompt => self.put_prompt(input),
            InputKind::Mcp => self.put_mcp_route(input),
            InputKind::Api => self.put_api(input),
            InputKind::Subscription => self.put_subscription(input),
            InputKind::Tenant => self.put_tenant(input),
            InputKind::Secret => self.put_secret(input),
            InputKind::Service | InputKind::EndpointSlice => self.put_service(input),
            InputKind::GatewayClass => self.put_class(input),
            InputKind::Gateway => self.put_gateway(input),
            InputKind::HttpRoute => self.put_http_route(input),
            InputKind::ReferenceGrant => self.put_grant(input),
            InputKind::Namespace => self.put_namespace(input),
        };
        // The last good form is that of the source that counts, maybe from before a restart; what another one had is gone with it.
        let stale =
            |entry: &Entry| entry.good.as_ref().is_some_and(|good| !is_same_place(&good.place, place));
        if done.is_err() && self.objects.get(id).is_some_and(stale) {
            self.remove(id);
        }
        let Some(entry) = self.objects.get_mut(id) else { return };
        match done {
            Ok(Put { unresolved }) => {
                notes.unresolved = unresolved;
                entry.note(notes);
                entry.good = Some(form);
            }
            Err(problems) => {
                // What the last good form refers to is as it was.
                notes.problems = problems;
                notes.unresolved.clone_from(&entry.notes().unresolved);
                entry.note(notes);
                entry.good.take_if(|good| !is_same_place(&good.place, place));
                if let Some(good) = entry.good.as_mut().filter(|good| good.place != *place) {
                    *good = Arc::new(Form { place: place.clone(), input: good.input.clone() });
                }
                if id.kind == InputKind::Policy && entry.good.is_none() {
                    self.put_unusable_policy(input);
                }
            }
        }
    }

    /// Takes what was made of an object out of the table.
    fn remove(&mut self, id: &ObjectId) {
        let key = &id.key;
        match id.kind {
            InputKind::Listener => {
                self.secret_users.set(key, Vec::new());
                self.pairs.remove(key);
                if let Some(listener) = self.listeners.remove(key) {
                    self.place(&[listener.address]);
                }
                self.touch_policies(&Attachment::Listener(key.clone()));
            }
            InputKind::Route => {
                self.backend_users.set(key, Vec::new());
                if let Some(route) = self.table.remove_route(key) {
                    self.touch_doubles(&route);
                }
                self.touch_policies(&Attachment::Route(key.clone()));
            }
            InputKind::Backend => {
                self.service_users.set(key, Vec::new());
                self.backends.remove(key);
                self.table.remove_backend(key);
                self.touch(InputKind::Route, &self.backend_users.of(key));
            }
            InputKind::Policy => {
                self.policy_states.remove(key);
                if let Some(policy) = self.policies.remove(key) {
                    self.detach(&policy);
                }
            }
            InputKind::AiGateway => self.remove_ai_gateway(key),
            InputKind::Model => self.remove_model(key),
            InputKind::LlmPolicy => self.remove_llm_policy(key),
            InputKind::Prompt => self.remove_prompt(key),
            InputKind::Mcp => self.remove_mcp_route(key),
            InputKind::Api => self.remove_api(key),
            InputKind::Subscription => self.remove_subscription(key),
            InputKind::Tenant => self.remove_tenant(key),
            InputKind::Secret => {
                self.certificates.remove(key);
                self.remove_ai_secret(key);
                self.settle_secret_users(key);
            }
            InputKind::Service | InputKind::EndpointSlice => {
                let services = self.services.remove(id);
                self.settle_services(id.kind, services);
            }
            InputKind::GatewayClass => self.remove_class(key),
            InputKind::Gateway => self.remove_gateway(key),
            InputKind::HttpRoute => self.remove_http_route(key),
            InputKind::ReferenceGrant => self.remove_grant(key),
            InputKind::Namespace => self.remove_namespace(key),
        }
    }

    fn put_route(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let key = &input.id.key;
        let compiled = route::compile(input, self.stats(key));
        self.put_compiled_route(Arc::new(compiled?));
        Ok(Put::default())
    }

    /// What was counted of a route before.
    fn stats(&self, key: &Key) -> Arc<RouteStats> {
        let served = self.table.route(key).map(|route| &route.head.stats);
        served.or_else(|| self.stats.get(key)).cloned().unwrap_or_default()
    }

    fn put_compiled_route(&mut self, route: Arc<crate::table::Route>) {
        let key = &route.head.key;
        let mut names: Vec<Key> = Vec::new();
        for rule in &route.rules {
            names.extend(rule.action.backends.iter().map(|(key, _)| key.clone()));
            names.extend(rule.action.mirror.as_deref().map(|(key, _)| key.clone()));
        }
        names.sort();
        names.dedup();
        let unused = self.backend_users.by_user.get(key).cloned().unwrap_or_default();
        self.backend_users.set(key, names);
        self.drop_unused(&unused);
        if let Some(before) = self.table.route(key).cloned() {
            self.touch_doubles(&before);
        }
        self.stats.remove(key);
        self.table.put_route(Arc::clone(&route));
        self.touch_doubles(&route);
        self.touch_policies(&Attachment::Route(key.clone()));
    }

    fn put_backend(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let key = &input.id.key;
        let services = &self.services;
        let around = backend::Around {
            base: &self.settings.base,
            service: &|service, port| services.addresses(service, port),
        };
        let learned = self.backends.entry(key.clone()).or_default();
        let backend::Compiled { backend, service } = backend::compile(input, learned, &around)?;
        let mut unresolved = Vec::new();
        if backend.endpoints.is_empty() {
            unresolved.push(Problem::new("spec.service", "has no endpoints that are ready on this port"));
        }
        self.service_users.set(key, service.into_iter().collect());
        self.table.put_backend(Arc::new(backend));
        self.touch(InputKind::Route, &self.backend_users.of(key));
        Ok(Put { unresolved })
    }

    fn put_listener(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let key = &input.id.key;
        let certificates = &self.certificates;
        let around = listener::Around {
            base: &self.settings.base,
            secret: &|secret| {
                let found = certificates.get(secret).cloned();
                found.unwrap_or_else(|| Certificate::none(format!("there is no Secret {secret}")))
            },
            before: self.pairs.get(key),
            address: self.settings.addresses.get(key).copied(),
        };
        let listener::Compiled { listener, secrets, pairs, unresolved } = listener::compile(input, &around)?;
        self.secret_users.set(key, secrets);
        self.pairs.insert(key.clone(), pairs);
        let address = listener.address;
        let before = self.listeners.insert(key.clone(), Arc::new(listener));
        match before.filter(|before| before.address != address) {
            Some(before) => self.place(&[before.address, address]),
            None => self.place(&[address]),
        }
        self.touch_policies(&Attachment::Listener(key.clone()));
        Ok(Put { unresolved })
    }

    /// Says anew who listens on these addresses.
    fn place(&mut self, addresses: &[SocketAddr]) {
        for address in addresses {
            let mut there: Vec<&Arc<Listener>> =
                self.listeners.values().filter(|listener| listener.address == *address).collect();
            there.sort_by_key(|listener| {
                (listener.created.is_none(), listener.created.clone(), listener.key.clone())
            });
            let mut placed: Vec<Arc<Listener>> = Vec::new();
            for listener in there {
                let other = placed.first().filter(|first| first.protocol != listener.protocol);
                let other = other.or_else(|| placed.iter().find(|other| other.hostname == listener.hostname));
                let id = listener_id(listener);
                let problem = other.map(|other| {
                    Problem::new(
                        "spec.port",
                        format!("{address} is taken by the older listener {}", other.key),
                    )
                });
                let changed = match problem {
                    Some(problem) => {
                        self.displaced.insert(listener.key.clone(), problem.clone()) != Some(problem)
                    }
                    None => {
                        placed.push(Arc::clone(listener));
                        self.displaced.remove(&listener.key).is_some()
                    }
                };
                if changed {
                    self.touched.insert(id);
                }
            }
            placed.sort_by_key(|listener| {
                (std::cmp::Reverse(listener.hostname.specificity()), listener.hostname.clone())
            });
            self.table.put_port(*address, placed);
        }
        self.displaced.retain(|key, _| self.listeners.contains_key(key));
    }

    fn put_policy(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let key = &input.id.key;
        let state = Arc::clone(self.policy_states.entry(key.clone()).or_default());
        let policy = policy::compile(input, state, &self.settings.base)?;
        self.attach(Arc::new(policy));
        Ok(Put::default())
    }

    /// Has what a policy is for, that never could be used, refuse all requests: whom it would let in is not known.
    fn put_unusable_policy(&mut self, input: &Input) {
        let key = &input.id.key;
        let state = Arc::clone(self.policy_states.entry(key.clone()).or_default());
        self.attach(Arc::new(policy::unusable(input, state)));
    }

    /// Puts a policy in the place of the one that there was.
    fn attach(&mut self, policy: Arc<Policy>) {
        if let Some(before) = self.policies.insert(policy.key.clone(), Arc::clone(&policy)) {
            self.detach(&before);
        }
        self.touch_protected(&policy);
        for attachment in &policy.attachments {
            let mut there = self.table.policies(attachment).to_vec();
            let at = there.partition_point(|other| other.key < policy.key);
            there.insert(at, Arc::clone(&policy));
            self.table.put_policies(attachment.clone(), there);
        }
    }

    /// Listeners and routes say that a policy that is for them cannot be used.
    fn touch_protected(&mut self, policy: &Policy) {
        for attachment in policy.attachments.iter().filter(|_| policy.is_unusable) {
            match attachment {
                Attachment::Listener(key) => self.touch(InputKind::Listener, std::slice::from_ref(key)),
                Attachment::Route(key) => self.touch(InputKind::Route, std::slice::from_ref(key)),
                Attachment::Namespace(namespace) => {
                    let routes = self.table.routes().map(|route| &route.head).filter(|head| !head.standard);
                    let keys = routes.map(|head| head.key.clone());
                    let keys: Vec<Key> = keys.filter(|key| key.namespace() == Some(&**namespace)).collect();
                    self.touch(InputKind::Route, &keys);
                }
            }
        }
    }

    fn detach(&mut self, policy: &Policy) {
        self.touch_protected(policy);
        for attachment in &policy.attachments {
            let there = self.table.policies(attachment).iter();
            let there = there.filter(|other| other.key != policy.key).cloned().collect();
            self.table.put_policies(attachment.clone(), there);
        }
    }

    fn put_secret(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let (key, json) = (&input.id.key, input.json.read());
        if json.pointer("/data/tls.crt").is_none() && json.pointer("/stringData/tls.crt").is_none() {
            self.put_ai_secret(key, &json);
        }
        let before = self.certificates.get(key).and_then(|before| before.served.clone());
        // A pair that does not fit together leaves the one before in use.
        let found = Certificate::read(services::certificate(&json), before);
        self.certificates.insert(key.clone(), found);
        self.settle_secret_users(key);
        Ok(Put::default())
    }

    fn put_service(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let services = self.services.put(input);
        self.settle_services(input.id.kind, services);
        Ok(Put::default())
    }

    /// Takes anew what refers to Services: of a change of a slice, only backends hear.
    fn settle_services(&mut self, kind: InputKind, services: Vec<Key>) {
        for service in &services {
            let (own, of_services): (Vec<Key>, Vec<Key>) =
                self.service_users.of(service).into_iter().partition(|key| !key.name().contains(':'));
            self.settle_all(InputKind::Backend, &own);
            for backend in &of_services {
                self.put_service_backend(backend);
                self.touched.insert(ObjectId { kind: InputKind::Backend, key: backend.clone() });
            }
        }
        if kind == InputKind::Service {
            self.settle_service_routes(&services);
        }
    }

    fn settle_secret_users(&mut self, secret: &Key) {
        self.settle_all(InputKind::Listener, &self.secret_users.of(secret));
        self.settle_all(InputKind::Gateway, &self.standard.secrets_of(secret));
    }

    fn settle_all(&mut self, kind: InputKind, keys: &[Key]) {
        for key in keys {
            self.settle(&ObjectId { kind, key: key.clone() });
        }
    }

    fn touch(&mut self, kind: InputKind, keys: &[Key]) {
        self.touched.extend(keys.iter().map(|key| ObjectId { kind, key: key.clone() }));
    }

    /// Policies say whether what they are for is there.
    fn touch_policies(&mut self, attachment: &Attachment) {
        let policies = self.table.policies(attachment).iter();
        self.touched
            .extend(policies.map(|policy| ObjectId { kind: InputKind::Policy, key: policy.key.clone() }));
    }

    /// Routes that match the same are told of each other.
    fn touch_doubles(&mut self, route: &crate::table::Route) {
        let others = self.table.doubles(route).into_iter();
        let others =
            others.filter(|(_, other)| !other.route.standard).map(|(_, other)| other.route.key.clone());
        let others: Vec<Key> = others.collect();
        self.touch(InputKind::Route, &others);
    }
}

/// The object that a listener of the table is of.
pub(crate) fn listener_id(listener: &Listener) -> ObjectId {
    match &listener.gateway {
        Some(gateway) => ObjectId { kind: InputKind::Gateway, key: gateway.clone() },
        None => ObjectId { kind: InputKind::Listener, key: listener.key.clone() },
    }
}

/// What became of an object that can be used.
#[derive(Default)]
struct Put {
    unresolved: Vec<Problem>,
}
