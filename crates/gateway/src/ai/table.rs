use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName};
use parking_lot::Mutex;
use regex::Regex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use watchkeeper_ai::mcp::joined;
use watchkeeper_ai::{Dialect, Expression, Ledger, Limit, Prices, Unit};
use watchkeeper_core::Key;

use super::cache::Cache;
use super::content::ContentLog;
use super::mcp::{McpGateway, McpServer};
use super::prompt::Prompt;
use super::provider_key::ProviderKey;
use super::webhook::Webhook;
use crate::kinds::AiDialect;
use crate::upstream::Backend;

/// All that calls of models need to know. A clone shares everything.
#[derive(Clone, Debug, Default)]
pub struct AiTable {
    gateways: imbl::HashMap<Key, Arc<AiGateway>>,
    /// By namespace and name of the model.
    models: imbl::OrdMap<Key, Arc<Model>>,
    /// By namespace, and digest.
    keys: imbl::HashMap<(Arc<str>, [u8; 32]), Arc<AiKey>>,
    /// By gateway and name, the last version last.
    prompts: imbl::HashMap<(Key, String), Arc<[Arc<Prompt>]>>,
    /// By namespace.
    tenants: imbl::HashMap<Arc<str>, Arc<Tenant>>,
    policies: imbl::HashMap<Key, Arc<AiPolicy>>,
    mcp: imbl::HashMap<Key, Arc<McpGateway>>,
}

/// What all keys of a namespace share.
#[derive(Debug)]
pub struct Tenant {
    /// Which.
    pub key: Key,
    /// Whether all calls are refused.
    pub is_suspended: bool,
    /// How much.
    pub limits: Box<[Limit]>,
    /// What was used.
    pub ledger: Arc<Mutex<Ledger>>,
    /// Cancelled when it is suspended and its streams are to be cut.
    pub cut: CancellationToken,
}

/// A compiled AIGatewayConfig.
#[derive(Debug)]
pub struct AiGateway {
    /// Which.
    pub key: Key,
    /// Whether clients need no key.
    pub is_open: bool,
    /// Its providers, by name.
    pub providers: HashMap<String, Arc<Provider>>,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// When to try again.
    pub retry: Retry,
    /// Bytes that a request may carry.
    pub max_body: usize,
    /// How often clients that wait get a comment.
    pub keep_alive: Option<Duration>,
}

/// A provider of models.
#[derive(Debug)]
pub struct Provider {
    /// Its name.
    pub name: Arc<str>,
    /// What it speaks.
    pub dialect: AiDialect,
    /// Where it is.
    pub backend: Backend,
    /// What it is shown.
    pub key: ProviderKey,
    /// Headers that it gets besides.
    pub headers: HeaderMap,
    /// Whether it serves responses of OpenAI itself.
    pub has_responses: bool,
    /// Whether it is asked for usage in streams.
    pub stream_usage: bool,
}

impl Provider {
    /// Notes whether it did well: one that fails too often is left out for a while.
    pub(super) fn note(&self, ok: bool) {
        // A provider has one address.
        if let Some(endpoint) = self.backend.endpoints.first() {
            self.backend.note(&endpoint.state, ok);
        }
    }

    /// The dialect that it is asked in by a client of this one.
    pub fn speaks(&self, client: Dialect) -> Option<Dialect> {
        match (self.dialect, client) {
            (AiDialect::OpenAI, Dialect::OpenAiEmbeddings | Dialect::GeminiEmbeddings) => {
                Some(Dialect::OpenAiEmbeddings)
            }
            (AiDialect::Gemini, Dialect::OpenAiEmbeddings | Dialect::GeminiEmbeddings) => {
                Some(Dialect::GeminiEmbeddings)
            }
            (AiDialect::Anthropic, Dialect::OpenAiEmbeddings | Dialect::GeminiEmbeddings) => None,
            (AiDialect::OpenAI, Dialect::OpenAiResponses) if self.has_responses => {
                Some(Dialect::OpenAiResponses)
            }
            (AiDialect::OpenAI, _) => Some(Dialect::OpenAiChat),
            (AiDialect::Anthropic, _) => Some(Dialect::Anthropic),
            (AiDialect::Gemini, _) => Some(Dialect::Gemini),
        }
    }
}

/// How long things may take; `None` for ever.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// To the first token, or to all of an answer.
    pub first_token: Option<Duration>,
    /// From one piece to the next.
    pub between_tokens: Option<Duration>,
}

/// When to try again.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// How often.
    pub attempts: u32,
    /// How long to wait before the same provider is asked again.
    pub backoff: Duration,
}

/// A compiled ModelContextMapping.
#[derive(Debug)]
pub struct Model {
    /// Which.
    pub key: Key,
    /// When it was created.
    pub created: Option<Arc<str>>,
    /// The name by which clients call it.
    pub name: Arc<str>,
    /// Who serves it, by priority.
    pub targets: Box<[Target]>,
    /// Which target of a priority gets a request.
    pub split: Split,
    /// What it costs.
    pub prices: Option<Prices>,
    /// How much it writes at most.
    pub max_output: u64,
    /// What changes requests.
    pub request: Option<Expression>,
    /// What changes answers.
    pub response: Option<Expression>,
}

/// Who serves a model.
#[derive(Debug)]
pub struct Target {
    /// The provider.
    pub provider: String,
    /// The name of the model there.
    pub model: Arc<str>,
    /// Its share.
    pub weight: u32,
    /// Larger comes later.
    pub priority: u32,
}

/// Which target of a priority gets a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// Any, by weight.
    Random,
    /// The same for the same key.
    Key,
    /// The same for the same value of a header.
    Header(HeaderName),
}

impl Model {
    /// Whether a gateway has a provider that serves it.
    pub fn is_served_by(&self, gateway: &AiGateway) -> bool {
        let mut targets = self.targets.iter().filter(|target| target.weight > 0);
        targets.any(|target| gateway.providers.contains_key(&target.provider))
    }

    /// The targets in the order in which they are asked. Of one priority, the first is drawn by weight with this number, the others follow by weight.
    pub fn order(&self, drawn: u64) -> Vec<&Target> {
        let mut ordered = Vec::with_capacity(self.targets.len());
        let mut rest = &*self.targets;
        while let Some(first) = rest.first() {
            let end = rest.partition_point(|target| target.priority <= first.priority);
            let (group, later) = rest.split_at(end);
            rest = later;
            let mut group: Vec<&Target> = group.iter().filter(|target| target.weight > 0).collect();
            let total: u64 = group.iter().map(|target| u64::from(target.weight)).sum();
            if total > 0 {
                let mut left = drawn % total;
                let at = group.iter().position(|target| match left.checked_sub(target.weight.into()) {
                    Some(less) => {
                        left = less;
                        false
                    }
                    None => true,
                });
                ordered.push(group.remove(at.unwrap_or(0)));
            }
            group.sort_by_key(|target| std::cmp::Reverse(target.weight));
            ordered.extend(group);
        }
        ordered
    }
}

/// A compiled LLMGatewayPolicy.
#[derive(Debug)]
pub struct AiPolicy {
    /// Which.
    pub key: Key,
    /// The gateways that it is for; none for all of its namespace.
    pub gateways: Box<[String]>,
    /// The models that may be called; none for all.
    pub models: Box<[String]>,
    /// The tools that may be used; none for none.
    pub tools: Box<[String]>,
    /// The limits of each key.
    pub key_limits: Box<[Limit]>,
    /// The limits of all keys together.
    pub limits: Box<[Limit]>,
    /// What all keys have used.
    pub ledger: Arc<Mutex<Ledger>>,
    /// What is looked for.
    pub guards: Box<[Guard]>,
    /// Answers to requests that were answered before.
    pub cache: Option<Arc<Cache>>,
    /// What of requests and answers is kept in records.
    pub content: Option<Arc<ContentLog>>,
}

impl AiPolicy {
    /// Whether its keys may call a model, as far as it says.
    pub fn may_call(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|pattern| fits(pattern, model))
    }

    /// Whether it limits what calls cost.
    pub fn limits_cost(&self) -> bool {
        limits_cost(&self.key_limits) || limits_cost(&self.limits)
    }
}

/// Whether one of the limits is of cost.
pub(crate) fn limits_cost(limits: &[Limit]) -> bool {
    limits.iter().any(|limit| limit.unit == Unit::Money)
}

/// Something that is looked for.
#[derive(Debug)]
pub struct Guard {
    /// What clients are told.
    pub name: String,
    /// Whether it is looked for in answers, not in requests.
    pub on_response: bool,
    /// How.
    pub look: Look,
}

/// How something is looked for.
#[derive(Debug)]
pub enum Look {
    /// It is found anywhere in a text.
    Pattern(Regex),
    /// A service is asked.
    Webhook(Box<Webhook>),
}

/// A key of a client.
#[derive(Debug)]
pub struct AiKey {
    /// Whose it is.
    pub name: Arc<str>,
    /// The policy that has it.
    pub policy: Arc<AiPolicy>,
    /// The models that it may call; none for all that the policy allows.
    pub models: Box<[String]>,
    /// The tools that it may use; none for all that the policy allows.
    pub tools: Box<[String]>,
    /// Until when it can be used, in seconds since 1970.
    pub expires: Option<u64>,
    /// What it has used.
    pub ledger: Arc<Mutex<Ledger>>,
    /// Cancelled when it is revoked and its streams are to be cut.
    pub revoked: CancellationToken,
}

impl AiKey {
    /// Whether it may call a model.
    pub fn may_call(&self, model: &str) -> bool {
        let own = &self.models;
        self.policy.may_call(model) && (own.is_empty() || own.iter().any(|pattern| fits(pattern, model)))
    }

    /// Whether it may use a tool.
    pub fn may_use(&self, tool: &str) -> bool {
        let allows = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, tool));
        allows(&self.policy.tools) && (self.tools.is_empty() || allows(&self.tools))
    }

    /// Whether there may be a tool of a server that it may use.
    pub fn may_use_some(&self, server: &str) -> bool {
        let prefix = joined(server, "");
        let allows = |patterns: &[String]| {
            patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(begin) => begin.starts_with(&*prefix) || prefix.starts_with(begin),
                None => pattern.starts_with(&*prefix),
            })
        };
        allows(&self.policy.tools) && (self.tools.is_empty() || allows(&self.tools))
    }

    /// Whether it is for a gateway.
    pub fn is_for(&self, gateway: &Key) -> bool {
        let gateways = &self.policy.gateways;
        gateways.is_empty() || gateways.iter().any(|name| name == gateway.name())
    }
}

/// Whether a name is that of a pattern, which may end in an asterisk.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

impl AiTable {
    /// A gateway.
    pub fn gateway(&self, key: &Key) -> Option<&Arc<AiGateway>> {
        self.gateways.get(key)
    }

    /// All providers of all gateways, in no order.
    pub fn providers(&self) -> impl Iterator<Item = &Arc<Provider>> {
        self.gateways.values().flat_map(|gateway| gateway.providers.values())
    }

    /// All webhooks of all policies, in no order.
    pub fn webhooks(&self) -> impl Iterator<Item = &Webhook> {
        let guards = self.policies.values().flat_map(|policy| policy.guards.iter());
        guards.filter_map(|guard| match &guard.look {
            Look::Webhook(webhook) => Some(&**webhook),
            Look::Pattern(_) => None,
        })
    }

    /// The tools of an McpRoute.
    pub fn mcp(&self, key: &Key) -> Option<&Arc<McpGateway>> {
        self.mcp.get(key)
    }

    /// All servers of all McpRoutes, in no order.
    pub fn servers(&self) -> impl Iterator<Item = &McpServer> {
        self.mcp.values().flat_map(|gateway| gateway.servers.iter())
    }

    pub(crate) fn put_mcp(&mut self, gateway: Arc<McpGateway>) {
        self.mcp.insert(gateway.key.clone(), gateway);
    }

    pub(crate) fn remove_mcp(&mut self, key: &Key) {
        self.mcp.remove(key);
    }

    pub(crate) fn put_policy(&mut self, policy: Arc<AiPolicy>) {
        self.policies.insert(policy.key.clone(), policy);
    }

    /// All policies, in no order.
    pub(crate) fn policies(&self) -> impl Iterator<Item = &Arc<AiPolicy>> {
        self.policies.values()
    }

    /// A policy.
    pub(crate) fn policy(&self, key: &Key) -> Option<&Arc<AiPolicy>> {
        self.policies.get(key)
    }

    pub(crate) fn remove_policy(&mut self, key: &Key) {
        self.policies.remove(key);
    }

    /// The gateways of a namespace, in no order.
    pub fn gateways<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<AiGateway>> {
        self.gateways.values().filter(move |gateway| gateway.key.namespace() == Some(namespace))
    }

    /// A model of a namespace, by the name that clients use.
    pub fn model(&self, namespace: &str, name: &str) -> Option<&Arc<Model>> {
        self.models.get(&Key::new(Some(namespace), name))
    }

    /// The models of a namespace, by name.
    pub fn models<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<Model>> {
        let all = self.models.iter().filter(move |(key, _)| key.namespace() == Some(namespace));
        all.map(|(_, model)| model)
    }

    /// A key of a namespace, by its digest.
    pub fn key(&self, namespace: &str, digest: [u8; 32]) -> Option<&Arc<AiKey>> {
        let place: (Arc<str>, [u8; 32]) = (namespace.into(), digest);
        self.keys.get(&place)
    }

    /// What the keys of a namespace share.
    pub fn tenant(&self, namespace: &str) -> Option<&Arc<Tenant>> {
        self.tenants.get(namespace)
    }

    pub(crate) fn put_tenant(&mut self, namespace: &str, tenant: Option<Arc<Tenant>>) {
        match tenant {
            Some(tenant) => drop(self.tenants.insert(namespace.into(), tenant)),
            None => drop(self.tenants.remove(namespace)),
        }
    }

    /// A prompt of a gateway: this version of it, or the last.
    pub fn prompt(&self, gateway: &Key, name: &str, version: Option<&str>) -> Option<&Arc<Prompt>> {
        let versions = self.prompts.get(&(gateway.clone(), name.to_owned()))?;
        match version {
            Some(version) => versions.iter().find(|prompt| prompt.version == version),
            None => versions.last(),
        }
    }

    /// Says which versions of a prompt there are, the last one last.
    pub(crate) fn put_prompts(&mut self, gateway: &Key, name: &str, versions: Vec<Arc<Prompt>>) {
        let place = (gateway.clone(), name.to_owned());
        match versions.is_empty() {
            true => drop(self.prompts.remove(&place)),
            false => drop(self.prompts.insert(place, versions.into())),
        }
    }

    /// All of it as JSON, without any secret. Equal tables give equal text.
    pub(crate) fn dump(&self) -> Value {
        let gateway = |gateway: &Arc<AiGateway>| {
            let mut providers: Vec<String> = gateway
                .providers
                .values()
                .map(|provider| format!("{} {:?} key {:?}", provider.name, provider.dialect, provider.key))
                .collect();
            providers.sort();
            json!({"name": gateway.key.to_string(), "open": gateway.is_open, "providers": providers})
        };
        let model = |(name, model): (&Key, &Arc<Model>)| {
            let targets: Vec<String> = model
                .targets
                .iter()
                .map(|target| {
                    format!("{}/{} {} {}", target.provider, target.model, target.priority, target.weight)
                })
                .collect();
            json!({"name": name.to_string(), "mapping": model.key.to_string(), "targets": targets})
        };
        let mut gateways: Vec<Value> = self.gateways.values().map(gateway).collect();
        let mut keys: Vec<String> =
            self.keys.values().map(|key| format!("{} of {}", key.name, key.policy.key)).collect();
        let mut prompts: Vec<String> = self
            .prompts
            .values()
            .flat_map(|versions| versions.iter().map(|prompt| prompt.key.to_string()))
            .collect();
        gateways.sort_by_key(|gateway| gateway["name"].to_string());
        keys.sort();
        prompts.sort();
        let models: Vec<Value> = self.models.iter().map(model).collect();
        let mut tools: Vec<String> = self
            .mcp
            .values()
            .flat_map(|route| route.servers.iter().map(|server| format!("{} {}", route.key, server.name)))
            .collect();
        tools.sort();
        json!({"gateways": gateways, "models": models, "keys": keys, "prompts": prompts, "tools": tools})
    }

    pub(crate) fn put_gateway(&mut self, gateway: Arc<AiGateway>) {
        self.gateways.insert(gateway.key.clone(), gateway);
    }

    pub(crate) fn remove_gateway(&mut self, key: &Key) {
        self.gateways.remove(key);
    }

    /// Says which mapping a name stands for.
    pub(crate) fn put_model(&mut self, name: Key, model: Option<Arc<Model>>) {
        match model {
            Some(model) => drop(self.models.insert(name, model)),
            None => drop(self.models.remove(&name)),
        }
    }

    /// Says which key a digest stands for.
    pub(crate) fn put_key(&mut self, namespace: &str, digest: [u8; 32], key: Option<Arc<AiKey>>) {
        let place: (Arc<str>, [u8; 32]) = (namespace.into(), digest);
        match key {
            Some(key) => drop(self.keys.insert(place, key)),
            None => drop(self.keys.remove(&place)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(targets: &[(&str, u32, u32)]) -> Model {
        let targets = targets.iter().map(|(provider, weight, priority)| Target {
            provider: (*provider).to_owned(),
            model: "m".into(),
            weight: *weight,
            priority: *priority,
        });
        Model {
            key: Key::new(Some("default"), "m"),
            created: None,
            name: "m".into(),
            targets: targets.collect(),
            split: Split::Random,
            prices: None,
            max_output: 1,
            request: None,
            response: None,
        }
    }

    #[test]
    fn targets_are_drawn_by_weight_and_priority() {
        let model = model(&[("a", 3, 0), ("b", 1, 0), ("off", 0, 0), ("c", 1, 5)]);
        let order =
            |drawn| model.order(drawn).iter().map(|target| target.provider.as_str()).collect::<Vec<_>>();
        for drawn in 0..3 {
            assert_eq!(order(drawn), ["a", "b", "c"]);
        }
        assert_eq!(order(3), ["b", "a", "c"]);
        assert_eq!(order(u64::MAX), ["b", "a", "c"]);
    }

    #[test]
    fn patterns_end_in_an_asterisk() {
        assert!(fits("gpt-*", "gpt-5") && fits("*", "x") && fits("a", "a"));
        assert!(!fits("gpt-*", "gp") && !fits("a", "ab") && !fits("a*b", "ab"));
    }
}
