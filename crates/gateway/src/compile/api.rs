//! ApiDefinitions, ApiSubscriptions and Tenants.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use watchkeeper_core::Key;
use watchkeeper_go::Time;

use super::ai::{llm_limits, route_key};
use super::fields::Problems;
use super::policy::digest;
use super::{Compiler, Put};
use crate::ai::Tenant;
use crate::ai::records::TENANT;
use crate::api::{Api, Subscriber};
use crate::kinds::{ApiDefinitionSpec, ApiState, ApiSubscriptionSpec, ApiSubscriptions, TenantSpec};
use crate::object::{Input, InputKind, ObjectId, Problem};

/// The APIs, and who wants to use them.
#[derive(Default)]
pub(super) struct ApiObjects {
    definitions: BTreeMap<Key, Definition>,
    subscriptions: BTreeMap<Key, Subscription>,
    /// What requests are checked by.
    compiled: BTreeMap<Key, Arc<Api>>,
    tenants: BTreeMap<Key, (Arc<Tenant>, bool)>,
    /// What cuts the streams of a namespace.
    cuts: HashMap<String, CancellationToken>,
}

struct Definition {
    spec: ApiDefinitionSpec,
    deprecated: Option<i64>,
    sunset: Option<String>,
}

struct Subscription {
    api: Key,
    consumer: Arc<str>,
    keys: Vec<[u8; 32]>,
    is_suspended: bool,
    is_approved: bool,
}

impl Definition {
    fn routes(&self, namespace: Option<&str>) -> Vec<Key> {
        let routes = self.spec.routes.iter().map(|name| Key::new(namespace, name));
        let gateways = self.spec.gateways.iter().map(|name| route_key(&Key::new(namespace, name)));
        routes.chain(gateways).collect()
    }

    fn admits(&self, subscription: &Subscription) -> bool {
        let approved = match self.spec.subscription {
            ApiSubscriptions::Open | ApiSubscriptions::Automatic => true,
            ApiSubscriptions::Approved => subscription.is_approved,
        };
        approved && !subscription.is_suspended
    }
}

impl Compiler {
    pub(super) fn put_api(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let key = &input.id.key;
        let spec: ApiDefinitionSpec = input.checked()?;
        let mut problems = Problems::default();
        let mut time = |field: &str, text: Option<&String>| {
            let text = text?;
            let time = Time::parse(text);
            let time = time.map_err(|_| format!("{text:?} is not a time such as 2027-01-01T00:00:00Z"));
            problems.note(format!("spec.{field}"), time)
        };
        let deprecated = time("deprecated", spec.deprecated.as_ref()).map(Time::seconds);
        let sunset = time("sunset", spec.sunset.as_ref()).map(http_date);
        if let Some(url) = &spec.successor {
            problems.header_value("spec.successor", url);
        }
        if spec.routes.is_empty() && spec.gateways.is_empty() {
            problems.add("spec.routes", "is empty, and spec.gateways too: the API has no routes");
        }
        let is_old = matches!(spec.state, ApiState::Deprecated | ApiState::Retired);
        if !is_old && (spec.sunset.is_some() || spec.deprecated.is_some()) {
            problems.add("spec.state", "is not Deprecated, though spec.deprecated or spec.sunset is there");
        }
        let definition = problems.finish(Definition { spec, deprecated, sunset })?;
        self.apis.definitions.insert(key.clone(), definition);
        self.name_api(key);
        Ok(Put::default())
    }

    pub(super) fn remove_api(&mut self, key: &Key) {
        self.apis.definitions.remove(key);
        if let Some(before) = self.apis.compiled.remove(key) {
            self.place_api(&before.routes);
        }
        self.touch_subscriptions(key);
    }

    /// Says anew which API routes belong to: of two that name one, the first by name.
    fn place_api(&mut self, routes: &[Key]) {
        for route in routes {
            let first = self.apis.compiled.values().find(|api| api.routes.contains(route)).cloned();
            self.table.put_api(route, first);
        }
    }

    /// Makes anew of a definition and its subscriptions what requests are checked by.
    fn name_api(&mut self, key: &Key) {
        let Some(definition) = self.apis.definitions.get(key) else { return };
        let spec = &definition.spec;
        let admitted = self.apis.subscriptions.values();
        let admitted =
            admitted.filter(|subscription| subscription.api == *key && definition.admits(subscription));
        let before = self.apis.compiled.get(key).and_then(|before| before.subscribers.as_ref());
        let subscribers: HashMap<[u8; 32], Subscriber> = admitted
            .flat_map(|subscription| {
                subscription.keys.iter().map(move |digest| {
                    let known = before.and_then(|before| before.get(digest));
                    // Streams that run under the form before are cut by the same token.
                    let revoked = known.map(|known| known.revoked.clone()).unwrap_or_default();
                    (*digest, Subscriber { consumer: Arc::clone(&subscription.consumer), revoked })
                })
            })
            .collect();
        let gone = before.into_iter().flatten().filter(|(digest, _)| !subscribers.contains_key(*digest));
        if spec.cut_streams {
            gone.for_each(|(_, subscriber)| subscriber.revoked.cancel());
        }
        let is_old = matches!(spec.state, ApiState::Deprecated | ApiState::Retired);
        let headers = match is_old {
            true => {
                Api::headers(definition.deprecated, definition.sunset.as_deref(), spec.successor.as_deref())
            }
            false => Box::default(),
        };
        let api = Arc::new(Api {
            key: key.clone(),
            routes: definition.routes(key.namespace()).into(),
            state: spec.state,
            headers,
            subscribers: (spec.subscription != ApiSubscriptions::Open).then_some(subscribers),
        });
        if let Some(before) = self.apis.compiled.insert(key.clone(), Arc::clone(&api)) {
            self.place_api(&before.routes);
        }
        self.place_api(&api.routes);
        self.touch_subscriptions(key);
    }

    fn touch_subscriptions(&mut self, api: &Key) {
        let all = self.apis.subscriptions.iter().filter(|(_, subscription)| subscription.api == *api);
        self.touched.extend(all.map(|(key, _)| ObjectId { kind: InputKind::Subscription, key: key.clone() }));
    }

    pub(super) fn put_subscription(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let key = &input.id.key;
        let spec: ApiSubscriptionSpec = input.checked()?;
        let mut problems = Problems::default();
        problems.header_value("spec.consumer", &spec.consumer);
        let keys = spec.keys.iter().enumerate().filter_map(|(at, text)| {
            let digested = digest(text).ok_or_else(|| "is not 64 hexadecimal digits".to_owned());
            problems.note(format!("spec.keys[{at}]"), digested)
        });
        let keys = keys.collect();
        let subscription = problems.finish(Subscription {
            api: Key::new(key.namespace(), &spec.api),
            consumer: spec.consumer.as_str().into(),
            keys,
            is_suspended: spec.suspended,
            is_approved: input.is_approved(),
        })?;
        let api = subscription.api.clone();
        let before = self.apis.subscriptions.insert(key.clone(), subscription);
        if let Some(before) = before.filter(|before| before.api != api) {
            self.name_api(&before.api);
        }
        self.name_api(&api);
        Ok(Put::default())
    }

    pub(super) fn remove_subscription(&mut self, key: &Key) {
        if let Some(before) = self.apis.subscriptions.remove(key) {
            self.name_api(&before.api);
        }
    }

    /// Why a subscription does not work, if it is not for a mistake of its own.
    pub(super) fn pending(&self, key: &Key) -> Option<&'static str> {
        let subscription = self.apis.subscriptions.get(key)?;
        let definition = self.apis.definitions.get(&subscription.api)?;
        match definition.admits(subscription) {
            true => None,
            false if subscription.is_suspended => Some("the subscription is suspended"),
            false => Some("the subscription waits for the condition Approved in its status"),
        }
    }

    /// What an API or a subscription refers to and what is not there.
    pub(super) fn missing_of_api(&self, id: &ObjectId) -> Vec<Problem> {
        let key = &id.key;
        let mut missing = Vec::new();
        if let Some(definition) = self.apis.definitions.get(key).filter(|_| id.kind == InputKind::Api) {
            for route in definition.routes(key.namespace()) {
                if self.table.route(&route).is_none() {
                    missing.push(Problem::new("spec.routes", format!("there is no route {route}")));
                }
            }
        }
        if let Some(subscription) =
            self.apis.subscriptions.get(key).filter(|_| id.kind == InputKind::Subscription)
            && !self.apis.definitions.contains_key(&subscription.api)
        {
            missing.push(Problem::new("spec.api", format!("there is no ApiDefinition {}", subscription.api)));
        }
        missing
    }

    pub(super) fn put_tenant(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let key = &input.id.key;
        let spec: TenantSpec = input.checked()?;
        let mut problems = Problems::default();
        let (mut limits, more) = llm_limits(&mut problems, &spec.limits);
        limits = limits.into_iter().chain(more).collect();
        problems.finish(())?;
        let ledger = self.ledger(&Key::new(key.namespace(), TENANT), "");
        let (is_suspended, cut) = (spec.suspended, CancellationToken::new());
        let tenant = Tenant { key: key.clone(), is_suspended, limits, ledger, cut };
        self.apis.tenants.insert(key.clone(), (Arc::new(tenant), spec.cut_streams));
        self.name_tenant(key.namespace());
        Ok(Put::default())
    }

    /// The Tenants of a namespace, in no order.
    pub(super) fn own_tenants<'a>(&'a self, namespace: Option<&'a str>) -> impl Iterator<Item = &'a Tenant> {
        let all = self.apis.tenants.values().map(|(tenant, _)| &**tenant);
        all.filter(move |tenant| tenant.key.namespace() == namespace)
    }

    pub(super) fn remove_tenant(&mut self, key: &Key) {
        self.apis.tenants.remove(key);
        self.name_tenant(key.namespace());
    }

    /// Of several Tenants of a namespace, all count: the limits of each, and one that is suspended suspends it.
    fn name_tenant(&mut self, namespace: Option<&str>) {
        let all = self.apis.tenants.values().filter(|(tenant, _)| tenant.key.namespace() == namespace);
        let all: Vec<&(Arc<Tenant>, bool)> = all.collect();
        let cut = self.apis.cuts.entry(namespace.unwrap_or_default().to_owned()).or_default();
        if all.iter().any(|(tenant, cuts)| tenant.is_suspended && *cuts) {
            cut.cancel();
            *cut = CancellationToken::new();
        }
        let joined = all.first().map(|(first, _)| Tenant {
            key: first.key.clone(),
            is_suspended: all.iter().any(|(tenant, _)| tenant.is_suspended),
            limits: all.iter().flat_map(|(tenant, _)| tenant.limits.iter().copied()).collect(),
            ledger: Arc::clone(&first.ledger),
            cut: cut.clone(),
        });
        Arc::make_mut(&mut self.table.ai).put_tenant(namespace.unwrap_or_default(), joined.map(Arc::new));
    }
}

/// A time as HTTP writes it: `Fri, 01 Jan 2027 00:00:00 GMT`.
fn http_date(time: Time) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = time.rfc3339();
    let weekday = DAYS[time.seconds().div_euclid(86_400).rem_euclid(7) as usize % 7];
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default().to_owned();
    let month = part(5..7).parse::<usize>().ok().and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    format!("{weekday}, {} {} {} {} GMT", part(8..10), month.unwrap_or(&"Jan"), part(0..4), part(11..19))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_http_has_them() {
        let date = |text: &str| http_date(Time::parse(text).unwrap());
        assert_eq!(date("1994-11-06T08:49:37Z"), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date("2027-01-01T00:00:00Z"), "Fri, 01 Jan 2027 00:00:00 GMT");
    }
}
