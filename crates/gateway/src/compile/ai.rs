//! AIGatewayConfigs, ModelContextMappings and LLMGatewayPolicies.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use watchkeeper_ai::{Amounts, Expression, Ledger, Limit, Money, Period, Prices, Unit};
use watchkeeper_core::Key;
use watchkeeper_go::{Time, base64};

use super::fields::{Problems, REGEX_BYTES, REGEX_LENGTH};
use super::ledgers::Ledgers;
use super::policy::digest;
use super::route::reference;
use super::{Compiler, Put, Users, backend};
use crate::ai::records::Spent;
use crate::ai::{
    AiGateway, AiKey, AiPolicy, Cache, ContentLog, Guard, Look, Model, Prompt, Provider, ProviderKey, Retry,
    Seldom, Split, Target, Timeouts, Webhook, now,
};
use crate::kinds::{
    AIGatewayConfigSpec, AiAccess, AiDialect, AiProvider, AiProviderKey, Guardrail, GuardrailFailure,
    GuardrailOn, GuardrailWebhook, LLMGatewayPolicySpec, LlmContent, LlmContentLog, LlmLimit, LlmLimitBy,
    LlmPeriod, LlmRedaction, ModelContextMappingSpec, ModelSplitBy,
};
use crate::net::HostPattern;
use crate::object::{Input, InputKind, ObjectId, Problem};
use crate::packed_json::PackedJson;
use crate::table::{Action, NewPath, PathPattern, Route, RouteHead, Rule};
use crate::upstream::Backend;

/// The type of Secrets with keys of providers.
pub(crate) const PROVIDER_KEY: &str = "gateway.watchkeeper.dev/provider-key";
/// Bytes that a request may carry if nobody said.
const BODY: usize = 8 << 20;
/// Bytes of all answers that are kept if nobody said.
const CACHE: usize = 16 << 20;
/// Bytes of a text that webhooks are asked about if nobody said.
const WEBHOOK: usize = 1 << 20;
/// Bytes of a request, and of an answer, that are kept in records if nobody said.
const CONTENT: usize = 16 << 10;
/// How much a model writes if nobody said, in tokens.
const OUTPUT: u64 = 4_096;

/// What is known of calls of models.
#[derive(Default)]
pub(super) struct AiObjects {
    /// Entries of Secrets that are no certificates.
    secrets: HashMap<Key, BTreeMap<String, Vec<u8>>>,
    secret_users: Users,
    /// Policies whose webhooks get an entry of a Secret.
    policy_secret_users: Users,
    /// McpRoutes whose servers get an entry of a Secret.
    pub(super) mcp_secret_users: Users,
    /// What is learned of providers, by gateway and name.
    learned: HashMap<(Key, String), backend::Learned>,
    /// What is learned of webhooks, by policy and name of the guardrail.
    learned_webhooks: HashMap<(Key, String), backend::Learned>,
    /// What is learned of servers of tools, by McpRoute and name.
    pub(super) learned_servers: HashMap<(Key, String), backend::Learned>,
    models: BTreeMap<Key, Arc<Model>>,
    pub(super) prompts: BTreeMap<Key, Arc<Prompt>>,
    policies: BTreeMap<Key, Compiled>,
    ledgers: Ledgers,
}

struct Compiled {
    keys: Vec<([u8; 32], Arc<AiKey>)>,
    cut_streams: bool,
}

/// The name that the rules of a gateway have among routes. No GatewayRoute can have it.
pub(super) fn route_key(key: &Key) -> Key {
    Key::new(key.namespace(), &format!("AIGatewayConfig:{}", key.name()))
}

impl Compiler {
    pub(super) fn put_ai_gateway(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let key = &input.id.key;
        let spec: AIGatewayConfigSpec = input.checked()?;
        let mut problems = Problems::default();
        let mut put = Put::default();
        let mut secrets = Vec::new();
        let mut providers = HashMap::new();
        for (at, wanted) in spec.providers.iter().enumerate() {
            let field = format!("spec.providers[{at}]");
            if providers.contains_key(&wanted.name) {
                problems.add(format!("{field}.name"), "is there twice");
                continue;
            }
            let around = (&mut put, &mut secrets);
            if let Some(provider) = self.provider(&mut problems, &field, input, &spec, wanted, around) {
                providers.insert(wanted.name.clone(), Arc::new(provider));
            }
        }
        let timeouts = &spec.timeouts;
        let mut timeout = |name: &str, text: Option<&String>, default: Duration| {
            let duration = problems.duration(&format!("spec.timeouts.{name}"), text, default);
            Some(duration).filter(|duration| !duration.is_zero())
        };
        let compiled_timeouts = Timeouts {
            first_token: timeout("firstToken", timeouts.first_token.as_ref(), Duration::from_secs(120)),
            between_tokens: timeout(
                "betweenTokens",
                timeouts.between_tokens.as_ref(),
                Duration::from_secs(60),
            ),
        };
        let retry = Retry {
            attempts: u32::try_from(spec.retry.attempts).unwrap_or(0),
            backoff: problems.duration(
                "spec.retry.backoff",
                spec.retry.backoff.as_ref(),
                Duration::from_millis(250),
            ),
        };
        let keep_alive = spec
            .keep_alive
            .as_ref()
            .map(|text| problems.positive("spec.keepAlive", Some(text), Duration::from_secs(15)));
        let route = self.ai_route(&mut problems, input, &spec);
        let gateway = AiGateway {
            key: key.clone(),
            is_open: spec.access == AiAccess::Open,
            providers,
            timeouts: compiled_timeouts,
            retry,
            max_body: spec.max_body_bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(BODY),
            keep_alive,
        };
        let gateway = problems.finish(gateway)?;
        self.ai.learned.retain(|(owner, name), _| owner != key || gateway.providers.contains_key(name));
        self.ai.secret_users.set(key, secrets);
        if let Some(before) = self.table.route(&route_key(key)).cloned() {
            self.touch_doubles(&before);
        }
        let route = Arc::new(route);
        self.table.put_route(Arc::clone(&route));
        self.touch_doubles(&route);
        Arc::make_mut(&mut self.table.ai).put_gateway(Arc::new(gateway));
        self.touch_models(key.namespace());
        Ok(put)
    }

    /// The rules that lead to a gateway.
    fn ai_route(&mut self, problems: &mut Problems, input: &Input, spec: &AIGatewayConfigSpec) -> Route {
        let key = &input.id.key;
        let (head, hosts) = ai_head(self, problems, input, route_key(key), (&spec.listeners, &spec.hosts));
        let prefix = spec
            .prefix
            .as_ref()
            .and_then(|prefix| problems.prefix("spec.prefix", prefix))
            .unwrap_or_default();
        let rules = ["/v1", "/v1beta"].iter().enumerate().map(|(at, version)| {
            Arc::new(Rule {
                route: Arc::clone(&head),
                index: (0, at as u16), // there are two
                path: PathPattern::Prefix(format!("{prefix}{version}").into()),
                method: None,
                headers: Box::new([]),
                query: Box::new([]),
                action: Arc::new(Action {
                    path: Some(NewPath::Prefix((*version).into())),
                    ai: Some(key.clone()),
                    ..Action::default()
                }),
            })
        });
        Route { rules: rules.collect(), hosts: hosts.into(), head }
    }

    fn provider(
        &mut self,
        problems: &mut Problems,
        field: &str,
        input: &Input,
        spec: &AIGatewayConfigSpec,
        wanted: &AiProvider,
        (put, secrets): (&mut Put, &mut Vec<Key>),
    ) -> Option<Provider> {
        let usual = match wanted.dialect {
            AiDialect::OpenAI => "https://api.openai.com",
            AiDialect::Anthropic => "https://api.anthropic.com",
            AiDialect::Gemini => "https://generativelanguage.googleapis.com",
        };
        let mut as_backend = json!({
            "url": wanted.url.as_deref().unwrap_or(usual),
            "health": {"passive": {"failures": spec.health.failures, "maxEjectedPercent": 100}},
        });
        if let Some(wait) = &spec.health.eject_for {
            as_backend["health"]["passive"]["ejectFor"] = wait.as_str().into();
        }
        if let Some(connect) = &spec.timeouts.connect {
            as_backend["connectTimeout"] = connect.as_str().into();
        }
        if let Some(most) = wanted.max_requests {
            as_backend["limits"] = json!({"requests": most});
        }
        if let Some(file) = &wanted.ca_file {
            as_backend["tls"] = json!({"caFile": file});
        }
        let learned = self.ai.learned.entry((input.id.key.clone(), wanted.name.clone())).or_default();
        let backend = reached(problems, field, &input.id.key, as_backend, learned, &self.settings.base)?;
        let headers = headers(problems, field, &wanted.headers);
        let key = self.provider_key(problems, field, input, wanted.key.as_ref(), (put, secrets));
        Some(Provider {
            name: wanted.name.as_str().into(),
            dialect: wanted.dialect,
            backend,
            key,
            headers,
            has_responses: wanted.responses,
            stream_usage: wanted.stream_usage,
        })
    }

    pub(super) fn provider_key(
        &self,
        problems: &mut Problems,
        field: &str,
        input: &Input,
        named: Option<&AiProviderKey>,
        (put, secrets): (&mut Put, &mut Vec<Key>),
    ) -> ProviderKey {
        let Some(named) = named else { return ProviderKey::None };
        let (place, found) = match (&named.secret_name, &named.file) {
            (Some(name), None) => {
                let secret = Key::new(input.id.key.namespace(), name);
                let entry = named.secret_key.as_deref().unwrap_or("apiKey");
                let entries =
                    self.ai.secrets.get(&secret).ok_or_else(|| format!("there is no Secret {secret}"));
                let found = entries.and_then(|entries| {
                    entries.get(entry).cloned().ok_or_else(|| format!("Secret {secret} has no entry {entry}"))
                });
                secrets.push(secret);
                (format!("{field}.key.secretName"), found)
            }
            (None, Some(file)) => {
                let path: PathBuf = self.settings.base.join(file);
                let found = std::fs::read(&path).map_err(|error| format!("{file}: {error}"));
                (format!("{field}.key.file"), found)
            }
            _ => {
                problems.add(format!("{field}.key"), "needs one of secretName and file");
                return ProviderKey::Missing;
            }
        };
        let value = found.and_then(|bytes| {
            let value = HeaderValue::from_bytes(bytes.trim_ascii());
            value.map_err(|_| "is not a key: it has control characters".to_owned())
        });
        match value {
            Ok(mut value) => {
                value.set_sensitive(true);
                ProviderKey::Given(value)
            }
            Err(message) => {
                put.unresolved.push(Problem::new(place, message));
                ProviderKey::Missing
            }
        }
    }

    pub(super) fn remove_ai_gateway(&mut self, key: &Key) {
        self.ai.secret_users.set(key, Vec::new());
        self.ai.learned.retain(|(owner, _), _| owner != key);
        let named = route_key(key);
        if let Some(route) = self.table.remove_route(&named) {
            self.touch_doubles(&route);
        }
        Arc::make_mut(&mut self.table.ai).remove_gateway(key);
        self.touch_models(key.namespace());
    }

    /// Models say whether their providers are there.
    fn touch_models(&mut self, namespace: Option<&str>) {
        let models = self.ai.models.keys().filter(|key| key.namespace() == namespace);
        self.touched.extend(models.map(|key| ObjectId { kind: InputKind::Model, key: key.clone() }));
        self.touch_prompts(namespace);
    }

    pub(super) fn put_ai_secret(&mut self, key: &Key, secret: &Value) {
        let mut entries = BTreeMap::new();
        for (name, value) in secret["data"].as_object().into_iter().flatten() {
            if let Some(bytes) = value.as_str().and_then(|coded| base64::decode(coded).ok()) {
                entries.insert(name.clone(), bytes);
            }
        }
        for (name, value) in secret["stringData"].as_object().into_iter().flatten() {
            entries.extend(value.as_str().map(|text| (name.clone(), text.as_bytes().to_vec())));
        }
        self.ai.secrets.insert(key.clone(), entries);
        self.settle_all(InputKind::AiGateway, &self.ai.secret_users.of(key));
        self.settle_all(InputKind::LlmPolicy, &self.ai.policy_secret_users.of(key));
        self.settle_all(InputKind::Mcp, &self.ai.mcp_secret_users.of(key));
    }

    pub(super) fn remove_ai_secret(&mut self, key: &Key) {
        self.ai.secrets.remove(key);
        self.settle_all(InputKind::AiGateway, &self.ai.secret_users.of(key));
        self.settle_all(InputKind::LlmPolicy, &self.ai.policy_secret_users.of(key));
        self.settle_all(InputKind::Mcp, &self.ai.mcp_secret_users.of(key));
    }

    pub(super) fn put_model(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let model = Arc::new(model(input)?);
        let before = self.ai.models.insert(input.id.key.clone(), Arc::clone(&model));
        if before.as_ref().is_some_and(|before| before.prices.is_none()) {
            self.touch_cost_limits(model.key.namespace());
        }
        if let Some(before) = before.filter(|before| before.name != model.name) {
            self.name_model(&before);
        }
        self.name_model(&model);
        Ok(Put::default())
    }

    pub(super) fn remove_model(&mut self, key: &Key) {
        if let Some(model) = self.ai.models.remove(key) {
            self.name_model(&model);
        }
    }

    /// Says anew which mapping a name stands for: the oldest, then the first by name.
    fn name_model(&mut self, model: &Model) {
        let same = self.claims(model);
        let first = same.first().copied().cloned();
        let is_unpriced = same.iter().any(|claim| claim.prices.is_none()) || model.prices.is_none();
        let ids: Vec<ObjectId> =
            same.iter().map(|claim| ObjectId { kind: InputKind::Model, key: claim.key.clone() }).collect();
        self.touched.extend(ids);
        let name = Key::new(model.key.namespace(), &model.name);
        Arc::make_mut(&mut self.table.ai).put_model(name, first);
        self.touch_prompts(model.key.namespace());
        if is_unpriced {
            self.touch_cost_limits(model.key.namespace());
        }
    }

    /// The mappings of a namespace that have the same name, the one that counts first.
    fn claims(&self, model: &Model) -> Vec<&Arc<Model>> {
        let same = self.ai.models.values();
        let mut same: Vec<&Arc<Model>> = same
            .filter(|other| other.key.namespace() == model.key.namespace() && other.name == model.name)
            .collect();
        same.sort_by_key(|claim| (claim.created.is_none(), claim.created.clone(), claim.key.clone()));
        same
    }

    /// What is to be said of another mapping that has the name of this one.
    pub(super) fn displaced_model(&self, key: &Key) -> Option<Problem> {
        let model = self.ai.models.get(key)?;
        let first = self.claims(model).first().map(|first| first.key.clone())?;
        (first != *key).then(|| {
            Problem::new(
                "spec.model",
                format!("{:?} is taken by the older ModelContextMapping {first}", model.name),
            )
        })
    }

    /// The providers of a model that no gateway of its namespace has.
    pub(super) fn missing_providers(&self, key: &Key) -> Vec<Problem> {
        let Some(model) = self.ai.models.get(key) else { return Vec::new() };
        let mut missing = Vec::new();
        for (at, target) in model.targets.iter().enumerate() {
            let known = self.table.ai.gateways(key.namespace().unwrap_or_default());
            if !known.flat_map(|gateway| gateway.providers.keys()).any(|name| *name == target.provider) {
                let message =
                    format!("no AIGatewayConfig of this namespace has a provider {:?}", target.provider);
                missing.push(Problem::new(format!("spec.targets[{at}].provider"), message));
            }
        }
        missing
    }

    pub(super) fn put_llm_policy(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let key = &input.id.key;
        let spec: LLMGatewayPolicySpec = input.checked()?;
        let mut problems = Problems::default();
        let (key_limits, limits) = llm_limits(&mut problems, &spec.limits);
        let (mut put, mut secrets) = (Put::default(), Vec::new());
        let mut guards = Vec::new();
        for (at, wanted) in spec.guardrails.iter().enumerate() {
            let field = format!("spec.guardrails[{at}]");
            guards.extend(self.guard(&mut problems, &field, input, wanted, (&mut put, &mut secrets)));
        }
        let content = spec.content_log.as_ref().map(|wanted| Arc::new(content_log(&mut problems, wanted)));
        let cache = spec.cache.as_ref().map(|cache| {
            let ttl = problems.positive("spec.cache.ttl", Some(&cache.ttl), Duration::from_secs(600));
            let most = cache.max_bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(CACHE);
            Arc::new(Cache::new(ttl, most))
        });
        let mut names = HashSet::new();
        let mut wanted = Vec::new();
        for (at, virtual_key) in spec.keys.iter().enumerate() {
            let field = format!("spec.keys[{at}]");
            if !names.insert(&virtual_key.name) {
                problems.add(format!("{field}.name"), "is there twice");
            }
            let digested = digest(&virtual_key.sha256).ok_or_else(|| {
                "is not 64 hexadecimal digits; `watchkeeper gateway key` makes a key and prints them"
                    .to_owned()
            });
            let digested = problems.note(format!("{field}.sha256"), digested);
            let expires = virtual_key.expires.as_ref().and_then(|text| {
                let time = Time::parse(text)
                    .map_err(|_| format!("{text:?} is not a time such as 2027-01-01T00:00:00Z"));
                problems
                    .note(format!("{field}.expires"), time)
                    .map(|time| u64::try_from(time.seconds()).unwrap_or(0))
            });
            if let Some(digested) = digested.filter(|_| !virtual_key.suspended) {
                wanted.push((digested, virtual_key, expires));
            }
        }
        problems.finish(())?;
        let is_named = |name: &String| spec.guardrails.iter().any(|guard| guard.name == *name);
        self.ai.learned_webhooks.retain(|(owner, name), _| owner != key || is_named(name));
        self.ai.policy_secret_users.set(key, secrets);
        let policy = Arc::new(AiPolicy {
            key: key.clone(),
            gateways: spec.gateways.clone().into(),
            models: spec.models.clone().into(),
            tools: spec.tools.clone().into(),
            key_limits,
            limits,
            ledger: self.ledger(key, ""),
            guards: guards.into(),
            cache,
            content,
        });
        Arc::make_mut(&mut self.table.ai).put_policy(Arc::clone(&policy));
        let before = self.ai.policies.remove(key);
        let tokens: HashMap<[u8; 32], CancellationToken> = before
            .iter()
            .flat_map(|before| before.keys.iter().map(|(digest, key)| (*digest, key.revoked.clone())))
            .collect();
        let keys = wanted.into_iter().map(|(digested, virtual_key, expires)| {
            let compiled = AiKey {
                name: virtual_key.name.as_str().into(),
                policy: Arc::clone(&policy),
                models: virtual_key.models.clone().into(),
                tools: virtual_key.tools.clone().into(),
                expires,
                ledger: self.ledger(key, &virtual_key.name),
                // Streams that run under the form before are cut by the same token.
                revoked: tokens.get(&digested).cloned().unwrap_or_default(),
            };
            (digested, Arc::new(compiled))
        });
        let keys: Vec<([u8; 32], Arc<AiKey>)> = keys.collect();
        self.ai.policies.insert(key.clone(), Compiled { keys, cut_streams: spec.cut_streams });
        self.name_keys(key, before);
        Ok(put)
    }

    /// What a guardrail looks for.
    fn guard(
        &mut self,
        problems: &mut Problems,
        field: &str,
        input: &Input,
        wanted: &Guardrail,
        (put, secrets): (&mut Put, &mut Vec<Key>),
    ) -> Option<Guard> {
        let look = match (&wanted.pattern, &wanted.webhook) {
            (Some(pattern), None) => {
                Look::Pattern(found_anywhere(problems, &format!("{field}.pattern"), pattern)?)
            }
            (None, Some(webhook)) => {
                let place = (input.id.key.clone(), wanted.name.clone());
                let mut learned = self.ai.learned_webhooks.remove(&place).unwrap_or_default();
                let field = format!("{field}.webhook");
                let reached = self.webhook(problems, &field, input, webhook, (&mut learned, put, secrets));
                self.ai.learned_webhooks.insert(place, learned);
                Look::Webhook(Box::new(reached?))
            }
            _ => {
                problems.add(field, "needs one of pattern and webhook");
                return None;
            }
        };
        Some(Guard { name: wanted.name.clone(), on_response: wanted.on == GuardrailOn::Response, look })
    }

    fn webhook(
        &self,
        problems: &mut Problems,
        field: &str,
        input: &Input,
        wanted: &GuardrailWebhook,
        (learned, put, secrets): (&mut backend::Learned, &mut Put, &mut Vec<Key>),
    ) -> Option<Webhook> {
        let mut as_backend = json!({"url": wanted.url});
        if let Some(file) = &wanted.ca_file {
            as_backend["tls"] = json!({"caFile": file});
        }
        let timeout =
            problems.positive(&format!("{field}.timeout"), wanted.timeout.as_ref(), Duration::from_secs(2));
        let headers = headers(problems, field, &wanted.headers);
        let key = self.provider_key(problems, field, input, wanted.key.as_ref(), (put, secrets));
        let backend = reached(problems, field, &input.id.key, as_backend, learned, &self.settings.base)?;
        Some(Webhook {
            backend,
            key,
            headers,
            timeout,
            max_bytes: wanted.max_bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(WEBHOOK),
            fails_closed: wanted.failure_policy == GuardrailFailure::Fail,
            failed: Seldom::default(),
        })
    }

    pub(super) fn remove_llm_policy(&mut self, key: &Key) {
        let before = self.ai.policies.remove(key);
        self.ai.policy_secret_users.set(key, Vec::new());
        self.ai.learned_webhooks.retain(|(owner, _), _| owner != key);
        Arc::make_mut(&mut self.table.ai).remove_policy(key);
        // What was used stays known: an object that comes back begins where it ended.
        self.name_keys(key, before);
    }

    /// What a key has used, or a policy.
    pub(super) fn ledger(&mut self, policy: &Key, name: &str) -> Arc<Mutex<Ledger>> {
        let place = (policy.clone(), name.to_owned());
        let (spent, spent_at) = (&self.settings.spent, self.settings.spent_at);
        let begin = || {
            let mut ledger = Ledger::default();
            restore(&mut ledger, spent.get(&place), spent_at);
            ledger
        };
        self.ai.ledgers.get(place.clone(), now(), begin)
    }

    /// Says what budgets were charged with before a moment, after all: those that are known go on from there, too.
    pub(crate) fn restore_spent(&mut self, spent: Spent, at: u64) {
        for (owner, ledger) in self.ai.ledgers.all() {
            restore(&mut ledger.lock(), spent.get(owner), at);
        }
        (self.settings.spent, self.settings.spent_at) = (spent, at);
    }

    /// Says anew whose the keys of a policy are: of two policies with the same key, that of the first by name counts.
    fn name_keys(&mut self, policy: &Key, before: Option<Compiled>) {
        let namespace = policy.namespace().unwrap_or_default().to_owned();
        let cuts = self.ai.policies.get(policy).map(|now| now.cut_streams);
        let gone = before.iter().flat_map(|before| before.keys.iter());
        let now = self.ai.policies.get(policy).into_iter().flat_map(|now| now.keys.iter());
        let mut digests: Vec<[u8; 32]> = gone.chain(now).map(|(digest, _)| *digest).collect();
        digests.sort_unstable();
        digests.dedup();
        for digest in digests {
            let mut others =
                self.ai.policies.iter().filter(|(other, _)| other.namespace() == policy.namespace());
            let holder =
                others.find_map(|(_, compiled)| compiled.keys.iter().find(|(known, _)| *known == digest));
            let holder = holder.map(|(_, key)| Arc::clone(key));
            if holder.is_none() {
                let revoked =
                    before.iter().flat_map(|before| before.keys.iter()).find(|(known, _)| *known == digest);
                let cut = cuts.unwrap_or_else(|| before.as_ref().is_some_and(|before| before.cut_streams));
                if let Some((_, key)) = revoked.filter(|_| cut) {
                    key.revoked.cancel();
                }
            }
            Arc::make_mut(&mut self.table.ai).put_key(&namespace, digest, holder);
        }
    }
}

/// Adds to a ledger what was used before.
fn restore(ledger: &mut Ledger, used: Option<&[Amounts; Period::ALL.len()]>, at: u64) {
    for (used, period) in used.into_iter().flatten().zip(Period::ALL) {
        ledger.restore(at, period, *used);
    }
}

/// The head of the rules of an object that is a route of its own, and the hosts that it is for.
pub(super) fn ai_head(
    compiler: &mut Compiler,
    problems: &mut Problems,
    input: &Input,
    named: Key,
    (listeners, hosts): (&[String], &[String]),
) -> (Arc<RouteHead>, Vec<HostPattern>) {
    let namespace = named.namespace().unwrap_or_default().to_owned();
    let patterns = hosts.iter().enumerate();
    let patterns = patterns
        .filter_map(|(at, host)| problems.note(format!("spec.hosts[{at}]"), HostPattern::parse(host)));
    let mut patterns: Vec<HostPattern> = patterns.collect();
    patterns.sort();
    patterns.dedup();
    if hosts.is_empty() {
        patterns.push(HostPattern::Any);
    }
    let listeners: Vec<Key> = listeners.iter().map(|name| reference(&namespace, name)).collect();
    let head = Arc::new(RouteHead {
        stats: compiler.stats(&named),
        key: named,
        created: input.created.clone(),
        listeners: if listeners.is_empty() { None } else { Some(listeners.into()) },
        standard: false,
    });
    (head, patterns)
}

/// A server that is reached as a backend is, and what is wrong with it is what would be wrong with one.
pub(super) fn reached(
    problems: &mut Problems,
    field: &str,
    key: &Key,
    as_backend: Value,
    learned: &mut backend::Learned,
    base: &Path,
) -> Option<Backend> {
    let id = ObjectId { kind: InputKind::Backend, key: key.clone() };
    let json = json!({"metadata": {"name": key.name()}, "spec": as_backend});
    let as_input = Input { id, json: PackedJson::of(&json), created: None, generation: 0 };
    let around = backend::Around { base, service: &|_, _| Vec::new() };
    match backend::compile(&as_input, learned, &around) {
        Ok(compiled) => Some(compiled.backend),
        Err(wrong) => {
            for problem in wrong {
                let place = match problem.field.as_str() {
                    "spec.health.passive.ejectFor" => "spec.health.ejectFor".to_owned(),
                    "spec.connectTimeout" => "spec.timeouts.connect".to_owned(),
                    "spec.tls.caFile" => format!("{field}.caFile"),
                    other => other.replacen("spec", field, 1),
                };
                problems.add(place, problem.message);
            }
            None
        }
    }
}

/// Headers that a server gets besides. Some servers are shown their keys there.
pub(super) fn headers(problems: &mut Problems, field: &str, wanted: &BTreeMap<String, String>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in wanted {
        let field = format!("{field}.headers[{name}]");
        let pair = (problems.header_name(&field, name), problems.header_value(&field, value));
        if let (Some(name), Some(mut value)) = pair {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
    headers
}

/// An expression that is found anywhere in a text.
fn found_anywhere(problems: &mut Problems, field: &str, text: &str) -> Option<Regex> {
    if text.len() > REGEX_LENGTH {
        problems.add(field, format!("is longer than {REGEX_LENGTH} characters"));
        return None;
    }
    let pattern = RegexBuilder::new(text).size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES).build();
    let wrong = |_| "is not a regular expression, or takes too much memory".to_owned();
    problems.note(field, pattern.map_err(wrong))
}

fn content_log(problems: &mut Problems, wanted: &LlmContentLog) -> ContentLog {
    let patterns = wanted.redact.iter().enumerate();
    let patterns = patterns
        .filter_map(|(at, text)| found_anywhere(problems, &format!("spec.contentLog.redact[{at}]"), text))
        .collect();
    let has = |content| wanted.of.is_empty() || wanted.of.contains(&content);
    ContentLog {
        requests: has(LlmContent::Request),
        responses: has(LlmContent::Response),
        redacts: wanted.redaction == LlmRedaction::On,
        patterns,
        max_bytes: wanted.max_bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(CONTENT),
    }
}

fn model(input: &Input) -> Result<Model, Vec<Problem>> {
    let spec: ModelContextMappingSpec = input.checked()?;
    let mut problems = Problems::default();
    let split = match (spec.split.by, &spec.split.header) {
        (ModelSplitBy::Random, None) => Split::Random,
        (ModelSplitBy::Key, None) => Split::Key,
        (ModelSplitBy::Header, Some(header)) => {
            problems.header_name("spec.split.header", header).map_or(Split::Random, Split::Header)
        }
        (ModelSplitBy::Header, None) => {
            problems.add("spec.split.header", "is missing");
            Split::Random
        }
        (_, Some(_)) => {
            problems.add("spec.split.header", "is for by: Header");
            Split::Random
        }
    };
    let mut money = |field: &str, text: &String| -> Option<Money> {
        problems.note(format!("spec.prices.{field}"), text.parse::<Money>())
    };
    let prices = spec.prices.as_ref().and_then(|prices| {
        Some(Prices {
            input: money("input", &prices.input)?,
            output: money("output", &prices.output)?,
            cached: prices.cached_input.as_ref().and_then(|text| money("cachedInput", text)),
            cache_written: prices.cache_write.as_ref().and_then(|text| money("cacheWrite", text)),
        })
    });
    let targets = spec.targets.iter().map(|target| Target {
        provider: target.provider.clone(),
        model: target.model.as_deref().unwrap_or(&spec.model).into(),
        weight: u32::try_from(target.weight).unwrap_or(0),
        priority: u32::try_from(target.priority).unwrap_or(0),
    });
    let mut targets: Vec<Target> = targets.collect();
    targets.sort_by_key(|target| target.priority);
    if targets.iter().all(|target| target.weight == 0) {
        problems.add("spec.targets", "have no weight: nobody serves the model");
    }
    let mut expression = |field: &str, text: Option<&String>| {
        text.and_then(|text| problems.note(format!("spec.{field}"), Expression::read(text)))
    };
    let request = expression("request", spec.request.as_ref());
    let response = expression("response", spec.response.as_ref());
    problems.finish(Model {
        key: input.id.key.clone(),
        created: input.created.clone(),
        name: spec.model.as_str().into(),
        targets: targets.into(),
        split,
        prices,
        request,
        response,
        max_output: spec.max_output_tokens.and_then(|most| u64::try_from(most).ok()).unwrap_or(OUTPUT),
    })
}

/// The limits of each key, and those of all together.
pub(super) fn llm_limits(problems: &mut Problems, wanted: &[LlmLimit]) -> (Box<[Limit]>, Box<[Limit]>) {
    let (mut each, mut all) = (Vec::new(), Vec::new());
    for (at, limit) in wanted.iter().enumerate() {
        let field = format!("spec.limits[{at}]");
        let period = match limit.per {
            LlmPeriod::Minute => Period::Minute,
            LlmPeriod::Hour => Period::Hour,
            LlmPeriod::Day => Period::Day,
            LlmPeriod::Month => Period::Month,
        };
        let number = |number: Option<i64>| number.map(|number| u64::try_from(number).unwrap_or(0));
        let cost = limit
            .cost
            .as_ref()
            .and_then(|text| problems.note(format!("{field}.cost"), text.parse::<Money>()));
        let wanted = [
            (Unit::Requests, number(limit.requests)),
            (Unit::Tokens, number(limit.tokens)),
            (Unit::Money, cost.map(|cost| cost.0)),
        ];
        if wanted.iter().all(|(_, most)| most.is_none()) && limit.cost.is_none() {
            problems.add(field, "needs one of requests, tokens and cost");
        }
        let limits = wanted.into_iter().filter_map(|(unit, most)| Some(Limit { unit, period, most: most? }));
        match limit.by {
            LlmLimitBy::Key => each.extend(limits),
            LlmLimitBy::Policy => all.extend(limits),
        }
    }
    (each.into(), all.into())
}
