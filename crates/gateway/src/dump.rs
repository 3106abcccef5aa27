//! A table as JSON, in one order whatever the order of what it was made of.

use serde_json::{Value, json};

use crate::table::{Answer, Attachment, Listener, NewPath, Route, Rule, Table};
use crate::upstream::Backend;

/// The table as JSON. Equal tables give equal text; the generation is not part of it.
pub fn dump(table: &Table) -> Value {
    let listeners = table.ports().map(|(address, listeners)| {
        json!({"address": address.to_string(), "listeners": listeners.iter().map(|each| listener(each)).collect::<Vec<_>>()})
    });
    let mut backends: Vec<_> = table.backends().collect();
    backends.sort_by(|one, other| one.key.cmp(&other.key));
    let mut policies: Vec<_> = table.attachments().collect();
    policies.sort_by_key(|(attachment, _)| *attachment);
    let policies = policies.iter().map(|(attachment, policies)| {
        let name = |policy: &std::sync::Arc<crate::policy::Policy>| match policy.is_unusable {
            true => format!("{} (cannot be used: answers 500)", policy.key),
            false => policy.key.to_string(),
        };
        let names: Vec<String> = policies.iter().map(name).collect();
        let target = match attachment {
            Attachment::Listener(key) => format!("listener {key}"),
            Attachment::Namespace(name) => format!("namespace {name}"),
            Attachment::Route(key) => format!("route {key}"),
        };
        json!({"target": target, "policies": names})
    });
    json!({
        "ports": listeners.collect::<Vec<_>>(),
        "routes": table.routes().map(|each| route(table, each)).collect::<Vec<_>>(),
        "backends": backends.iter().map(|each| backend(each)).collect::<Vec<_>>(),
        "policies": policies.collect::<Vec<_>>(),
        "ai": table.ai.dump(),
    })
}

fn listener(listener: &Listener) -> Value {
    json!({
        "name": listener.key.to_string(),
        "protocol": format!("{:?}", listener.protocol),
        "hostname": listener.hostname.to_string(),
        "certificates": listener.certificates.len(),
    })
}

fn route(table: &Table, route: &Route) -> Value {
    let doubles: Vec<String> =
        table.doubles(route).iter().map(|(_, other)| other.route.key.to_string()).collect();
    json!({
        "name": route.head.key.to_string(),
        "created": route.head.created.as_deref(),
        "listeners": route.head.listeners.as_ref().map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>()),
        "hosts": route.hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "rules": route.rules.iter().map(|each| rule(each)).collect::<Vec<_>>(),
        "matches_the_same": doubles,
    })
}

fn rule(rule: &Rule) -> Value {
    let action = &rule.action;
    let answer = action.answer.as_deref().map(|answer| match answer {
        Answer::Fixed { status, body, .. } => json!({"status": status.as_u16(), "bytes": body.len()}),
        Answer::Redirect { status, host, .. } => {
            json!({"redirect": status.as_u16(), "host": host.as_deref()})
        }
    });
    let path = action.path.as_ref().map(|path| match path {
        NewPath::Full(path) => json!({"full": path}),
        NewPath::Prefix(path) => json!({"prefix": path}),
    });
    let backends: Vec<Value> = action
        .backends
        .iter()
        .map(|(key, weight)| json!({"name": key.to_string(), "weight": weight}))
        .collect();
    json!({
        "index": [rule.index.0, rule.index.1],
        "path": rule.path.to_string(),
        "method": rule.method.as_ref().map(|method| method.as_str()),
        "headers": rule.headers.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>(),
        "query": rule.query.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>(),
        "answer": answer,
        "rewrite": path,
        "backends": backends,
        "mirror": action.mirror.as_deref().map(|(key, percent)| format!("{key} {percent}%")),
        "timeouts": format!("{:?}", action.timeouts),
        "retries": action.retry.attempts,
    })
}

/// A backend with how its servers are.
pub(crate) fn backend(backend: &Backend) -> Value {
    let endpoints: Vec<Value> = backend
        .endpoints
        .iter()
        .map(|endpoint| json!({"address": &*endpoint.state.address, "weight": endpoint.weight}))
        .collect();
    json!({"name": backend.key.to_string(), "endpoints": endpoints, "path": backend.path})
}
