use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, Method, Uri};
use serde_json::{Value, json};

use crate::kinds::ListenerProtocol;
use crate::net::HostPattern;
use crate::proxy::path;
use crate::table::{Answer, Asked, Attachment, Listener, Rule, Table};

/// A request that is only imagined.
#[derive(Clone, Debug)]
pub struct Question {
    /// The method.
    pub method: Method,
    /// The URL, with scheme and host.
    pub url: Uri,
    /// Headers.
    pub headers: HeaderMap,
}

/// What would become of a request, and why.
#[derive(Debug)]
pub struct Explained {
    /// The method and the URL.
    pub asked: String,
    /// The listener.
    pub listener: Option<String>,
    /// The route that serves it.
    pub served: Option<Served>,
    /// Rules that were looked at before it and do not match, with the reason.
    pub passed: Vec<(String, String)>,
    /// Rules that do not serve it, after those that were looked at before, with the reason: less specific ones, those of other paths, those of
    /// other hosts.
    pub others: Vec<(String, String)>,
    /// How many more of these there are.
    pub more: usize,
    /// Why it is not served.
    pub refused: Option<String>,
}

/// How many rules are named that do not serve a request.
const MOST_OTHERS: usize = 20;

/// Which rule serves a request.
#[derive(Debug)]
pub struct Served {
    /// The route and its rule.
    pub rule: String,
    /// What led to it.
    pub because: String,
    /// What is done, in words.
    pub does: Vec<String>,
}

/// Says what would become of a request.
pub fn explain(table: &Table, question: &Question) -> Explained {
    let Question { method, url, headers } = question;
    let mut explained = Explained {
        asked: format!("{method} {url}"),
        listener: None,
        served: None,
        passed: Vec::new(),
        others: Vec::new(),
        more: 0,
        refused: None,
    };
    let host = url.host().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    let path = match path::normalised(if url.path().is_empty() { "/" } else { url.path() }) {
        Ok(path) => path,
        Err(_) => {
            explained.refused = Some("400: the path has dot segments, a backslash or a bad escape".into());
            return explained;
        }
    };
    let Some(listener) = listener(table, url, &host) else {
        explained.refused = Some("no listener is for this scheme, port and host".into());
        return explained;
    };
    explained.listener = Some(format!("{} ({})", listener.key, listener.address));
    let asked = Asked { listener, host: &host, path: &path, query: url.query(), method, headers };
    let mut walked: Vec<&Arc<Rule>> = Vec::new();
    let found = table.walk(&asked, |rule| {
        walked.push(rule);
        rule.matches(&asked)
    });
    let before = if found.is_some() { walked.len() - 1 } else { walked.len() };
    explained.passed = walked[..before].iter().filter_map(|rule| reason(rule, &asked)).collect();
    match found {
        None => explained.refused = Some("404: no route is for this request".into()),
        Some((rule, ref host)) => {
            explained.served = Some(Served {
                rule: name(rule),
                because: because(rule, host),
                does: does(table, listener, rule),
            });
        }
    }
    others(table, &asked, walked, &mut explained);
    explained
}

/// Why a rule whose host and path may be those of a request does not match.
fn reason(rule: &Rule, asked: &Asked<'_>) -> Option<(String, String)> {
    Some((name(rule), rule.mismatch(asked)?.to_string()))
}

/// Names the rules that were not looked at, or would have been looked at later, in the order of how near they were.
fn others(table: &Table, asked: &Asked<'_>, looked_at: Vec<&Arc<Rule>>, explained: &mut Explained) {
    let mut seen: HashSet<*const Rule> = looked_at.into_iter().map(Arc::as_ptr).collect();
    let mut later = Vec::new();
    table.walk(asked, |rule| {
        if seen.insert(Arc::as_ptr(rule)) {
            later.push(
                reason(rule, asked).unwrap_or_else(|| (name(rule), "matches, and is less specific".into())),
            );
        }
        false
    });
    let (mut paths, mut hosts) = (Vec::new(), Vec::new());
    for route in table.routes() {
        let is_host = route.hosts.iter().any(|host| host.contains(asked.host));
        for rule in route.rules.iter().filter(|rule| !seen.contains(&Arc::as_ptr(rule))) {
            match is_host {
                true => paths.push((name(rule), format!("the path is not {}", rule.path))),
                false => {
                    let names: Vec<String> = route.hosts.iter().map(ToString::to_string).collect();
                    hosts.push((name(rule), format!("the host is not {}", names.join(" or "))));
                }
            }
        }
    }
    explained.others = later.into_iter().chain(paths).chain(hosts).collect();
    explained.more = explained.others.len().saturating_sub(MOST_OTHERS);
    explained.others.truncate(MOST_OTHERS);
}

fn listener<'a>(table: &'a Table, url: &Uri, host: &str) -> Option<&'a Listener> {
    let protocol =
        if url.scheme_str() == Some("https") { ListenerProtocol::HTTPS } else { ListenerProtocol::HTTP };
    let fits = |listener: &&Arc<Listener>| {
        listener.protocol == protocol
            && listener.hostname.contains(host)
            && url
                .port_u16()
                .is_none_or(|port| listener.address.port() == port || listener.address.port() == 0)
    };
    let mut all = table.ports().flat_map(|(_, listeners)| listeners.iter()).filter(fits);
    all.next().map(|listener| &**listener)
}

fn name(rule: &Rule) -> String {
    format!("{} rules[{}].matches[{}]", rule.route.key, rule.index.0, rule.index.1)
}

fn because(rule: &Rule, host: &HostPattern) -> String {
    let mut parts = vec![format!("host {host}"), format!("path {}", rule.path)];
    parts.extend(rule.method.as_ref().map(|method| format!("method {method}")));
    parts.extend(rule.headers.iter().map(|(name, value)| format!("header {name} {value}")));
    parts.extend(rule.query.iter().map(|(name, value)| format!("query {name} {value}")));
    parts.join(", ")
}

fn does(table: &Table, listener: &Listener, rule: &Rule) -> Vec<String> {
    let route = &rule.route.key;
    let attachments = [
        Attachment::Listener(listener.key.clone()),
        Attachment::Namespace(route.namespace().unwrap_or_default().into()),
        Attachment::Route(route.clone()),
    ];
    let policies = attachments.iter().flat_map(|attachment| table.policies(attachment));
    let mut does: Vec<String> = policies
        .map(|policy| match policy.is_unusable {
            true => format!("answers 500: policy {} cannot be used", policy.key),
            false => format!("has to satisfy policy {}", policy.key),
        })
        .collect();
    match rule.action.answer.as_deref() {
        Some(Answer::Fixed { status, body, .. }) => {
            does.push(format!("answers {} with {} bytes", status.as_u16(), body.len()));
        }
        Some(Answer::Redirect { status, .. }) => does.push(format!("redirects with {}", status.as_u16())),
        None => {}
    }
    for (key, weight) in rule.action.backends.iter() {
        does.push(match table.backend(key) {
            None => format!("backend {key} (weight {weight}): does not exist"),
            Some(backend) => {
                let available =
                    backend.endpoints.iter().filter(|endpoint| endpoint.state.is_available()).count();
                let all = backend.endpoints.len();
                format!("backend {key} (weight {weight}): {available} of {all} endpoints available")
            }
        });
    }
    does
}

impl Explained {
    /// All of it as JSON.
    pub fn to_json(&self) -> Value {
        let named = |rules: &[(String, String)]| -> Vec<Value> {
            rules.iter().map(|(rule, why)| json!({"rule": rule, "reason": why})).collect()
        };
        json!({
            "request": self.asked,
            "listener": self.listener,
            "served": self.served.as_ref().map(|served| json!({
                "rule": served.rule, "because": served.because, "does": served.does,
            })),
            "passed": named(&self.passed),
            "others": named(&self.others),
            "moreOthers": self.more,
            "refused": self.refused,
        })
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.asked)?;
        if let Some(listener) = &self.listener {
            writeln!(f, "listener  {listener}")?;
        }
        for (rule, why) in &self.passed {
            writeln!(f, "not       {rule}: {why}")?;
        }
        if let Some(served) = &self.served {
            writeln!(f, "route     {}: {}", served.rule, served.because)?;
            for does in &served.does {
                writeln!(f, "          {does}")?;
            }
        }
        for (rule, why) in &self.others {
            writeln!(f, "not       {rule}: {why}")?;
        }
        if self.more > 0 {
            writeln!(f, "          and {} more", self.more)?;
        }
        if let Some(refused) = &self.refused {
            writeln!(f, "refused   {refused}")?;
        }
        Ok(())
    }
}
