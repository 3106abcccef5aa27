use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::header::HeaderValue;
use http::uri::Scheme;
use http::{HeaderName, Method, StatusCode};
use watchkeeper_core::Key;

use super::fields::Problems;
use crate::kinds::{
    Cors, FieldMatch, GatewayRouteSpec, HeaderChanges, PathChange, Redirect, Respond, RouteFilters,
    RouteMatch, RouteRetry, RouteRule,
};
use crate::net::HostPattern;
use crate::object::{Input, Problem};
use crate::stats::RouteStats;
use crate::table::{
    Action, Answer, Backends, Compression, CorsRules, HeaderEdits, NewPath, PathPattern, Retry, Route,
    RouteHead, Rule, Timeouts, ValuePattern,
};

/// Headers that are about one connection: filters may not touch them.
const FRAMING: [&str; 8] =
    ["connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// What a route is besides its spec.
pub(super) struct Source<'a> {
    /// Its key in the table.
    pub(super) key: &'a Key,
    pub(super) created: Option<&'a Arc<str>>,
    /// The listeners that serve it; `None` for all.
    pub(super) listeners: Option<Box<[Key]>>,
    /// The backend of a name.
    pub(super) backend: &'a dyn Fn(&str) -> Key,
    /// Whether it is of Gateway API, where rules without backends are allowed.
    pub(super) standard: bool,
    pub(super) stats: Arc<RouteStats>,
}

/// Compiles a route.
pub(super) fn compile(input: &Input, stats: Arc<RouteStats>) -> Result<Route, Vec<Problem>> {
    let spec: GatewayRouteSpec = input.checked()?;
    let key = &input.id.key;
    let namespace = key.namespace().unwrap_or_default();
    let listeners: Vec<Key> = spec.listeners.iter().map(|name| reference(namespace, name)).collect();
    let source = Source {
        key,
        created: input.created.as_ref(),
        listeners: if listeners.is_empty() { None } else { Some(listeners.into()) },
        backend: &|name| Key::new(Some(namespace), name),
        standard: false,
        stats,
    };
    compile_spec(&spec, source)
}

/// Compiles the spec of a route.
pub(super) fn compile_spec(spec: &GatewayRouteSpec, source: Source<'_>) -> Result<Route, Vec<Problem>> {
    let mut problems = Problems::default();
    let hosts = spec
        .hosts
        .iter()
        .enumerate()
        .filter_map(|(at, host)| problems.note(format!("spec.hosts[{at}]"), HostPattern::parse(host)));
    let mut hosts: Vec<HostPattern> = hosts.collect();
    hosts.sort();
    hosts.dedup();
    if spec.hosts.is_empty() {
        hosts.push(HostPattern::Any);
    }
    let head = Arc::new(RouteHead {
        key: source.key.clone(),
        created: source.created.cloned(),
        listeners: source.listeners.clone(),
        standard: source.standard,
        stats: Arc::clone(&source.stats),
    });
    let mut rules = Vec::new();
    for (at, rule) in spec.rules.iter().enumerate() {
        let field = format!("spec.rules[{at}]");
        let action = Arc::new(action(&mut problems, &field, &source, rule));
        let everything = [RouteMatch::default()];
        let matches = if rule.matches.is_empty() { &everything[..] } else { &rule.matches };
        for (number, wanted) in matches.iter().enumerate() {
            let field = format!("{field}.matches[{number}]");
            let index = (at as u16, number as u16); // the schema allows 64 of each
            rules.extend(compile_match(&mut problems, &field, wanted, &head, index, &action).map(Arc::new));
        }
    }
    problems.finish(Route { head, hosts: hosts.into(), rules: rules.into() })
}

/// `name`, or `namespace/name`.
pub(super) fn reference(namespace: &str, text: &str) -> Key {
    match text.split_once('/') {
        Some((namespace, name)) => Key::new(Some(namespace), name),
        None => Key::new(Some(namespace), text),
    }
}

fn compile_match(
    problems: &mut Problems,
    field: &str,
    wanted: &RouteMatch,
    head: &Arc<RouteHead>,
    index: (u16, u16),
    action: &Arc<Action>,
) -> Option<Rule> {
    let path = match &wanted.path {
        None => Some(PathPattern::Prefix("".into())),
        Some(path) => {
            let field = format!("{field}.path");
            match (&path.prefix, &path.exact, &path.regex) {
                (Some(prefix), None, None) => problems
                    .prefix(&format!("{field}.prefix"), prefix)
                    .map(|prefix| PathPattern::Prefix(prefix.into())),
                (None, Some(exact), None) => problems
                    .path(&format!("{field}.exact"), exact)
                    .map(|exact| PathPattern::Exact(exact.into())),
                (None, None, Some(regex)) => {
                    problems.regex(&format!("{field}.regex"), regex).map(PathPattern::Regex)
                }
                _ => {
                    problems.add(field, "needs one of prefix, exact and regex");
                    None
                }
            }
        }
    };
    let method = match &wanted.method {
        Some(text) => {
            let method = Method::from_bytes(text.as_bytes()).ok().filter(|method| {
                *method != Method::CONNECT && method.as_str().bytes().all(|byte| byte.is_ascii_uppercase())
            });
            Some(problems.note(
                format!("{field}.method"),
                method.ok_or_else(|| format!("{text:?} is not a method such as GET")),
            )?)
        }
        None => None,
    };
    let headers = wanted.headers.iter().enumerate().filter_map(|(at, header)| {
        let field = format!("{field}.headers[{at}]");
        let name = problems.header_name(&format!("{field}.name"), &header.name);
        let value = value(problems, &field, header);
        Some((name?, value?))
    });
    let headers = headers.collect();
    let query = wanted.query.iter().enumerate().filter_map(|(at, parameter)| {
        let value = value(problems, &format!("{field}.query[{at}]"), parameter)?;
        Some((parameter.name.as_str().into(), value))
    });
    let query = query.collect();
    Some(Rule {
        route: Arc::clone(head),
        index,
        path: path?,
        method,
        headers,
        query,
        action: Arc::clone(action),
    })
}

fn value(problems: &mut Problems, field: &str, wanted: &FieldMatch) -> Option<ValuePattern> {
    match (&wanted.value, &wanted.regex) {
        (None, None) => Some(ValuePattern::Present),
        (Some(value), None) => Some(ValuePattern::Exact(value.as_str().into())),
        (None, Some(regex)) => problems.regex(&format!("{field}.regex"), regex).map(ValuePattern::Regex),
        (Some(_), Some(_)) => {
            problems.add(field, "has both value and regex");
            None
        }
    }
}

fn action(problems: &mut Problems, field: &str, source: &Source<'_>, rule: &RouteRule) -> Action {
    let RouteRule { filters, backends, timeouts, retry, max_body_bytes, .. } = rule;
    let at = |name: &str| format!("{field}.filters.{name}");
    let RouteFilters {
        cors,
        respond,
        redirect,
        rewrite,
        request_headers,
        mirror,
        response_headers,
        compress,
    } = filters;
    let mut action = Action {
        cors: cors.as_ref().map(|cors| cors_rules(problems, &at("cors"), cors).into()),
        answer: answer(problems, field, rule, respond.as_ref(), redirect.as_ref()).map(Box::new),
        request_headers: edits(problems, &at("requestHeaders"), request_headers.as_ref()),
        response_headers: edits(problems, &at("responseHeaders"), response_headers.as_ref()),
        mirror: mirror.as_ref().map(|mirror| {
            Box::new(((source.backend)(&mirror.backend), u8::try_from(mirror.percent).unwrap_or(100)))
        }),
        compress: compress.as_ref().map(|compress| compression(compress).into()),
        max_body: max_body_bytes.and_then(|bytes| u64::try_from(bytes).ok()),
        ..Action::default()
    };
    if let Some(rewrite) = rewrite {
        if let Some(host) = &rewrite.host {
            action.host = problems.header_value(&at("rewrite.host"), host).map(Box::new);
        }
        action.path = new_path(problems, &at("rewrite.path"), rewrite.path.as_ref(), rule);
    }
    if action.answer.is_none() && backends.is_empty() && cors.is_none() && !source.standard {
        problems.add(format!("{field}.backends"), "is empty, and no filter answers (respond, redirect)");
    }
    if action.answer.is_some() && !backends.is_empty() && !source.standard {
        problems.add(format!("{field}.backends"), "are never asked: a filter answers (respond, redirect)");
    }
    action.backends = Backends::new(
        backends
            .iter()
            .map(|backend| ((source.backend)(&backend.name), u32::try_from(backend.weight).unwrap_or(0))),
    );
    let default = Timeouts::default();
    let mut timeout = |name: &str, text: Option<&String>, default: Option<Duration>| {
        let duration =
            problems.duration(&format!("{field}.timeouts.{name}"), text, default.unwrap_or(Duration::ZERO));
        Some(duration).filter(|duration| !duration.is_zero())
    };
    action.timeouts = Timeouts {
        request: timeout("request", timeouts.request.as_ref(), default.request),
        attempt: timeout("attempt", timeouts.attempt.as_ref(), default.attempt),
        idle: timeout("idle", timeouts.idle.as_ref(), default.idle),
    };
    if let Some(retry) = retry {
        action.retry = retries(problems, &format!("{field}.retry"), retry);
    }
    action
}

fn answer(
    problems: &mut Problems,
    field: &str,
    rule: &RouteRule,
    respond: Option<&Respond>,
    redirect: Option<&Redirect>,
) -> Option<Answer> {
    match (respond, redirect) {
        (None, None) => None,
        (Some(_), Some(_)) => {
            problems.add(format!("{field}.filters"), "has both respond and redirect");
            None
        }
        (Some(Respond { status, body, content_type }), None) => {
            let field = format!("{field}.filters.respond");
            let content_type = content_type.as_deref().unwrap_or("text/plain; charset=utf-8");
            Some(Answer::Fixed {
                status: status_code(*status),
                content_type: problems.header_value(&format!("{field}.contentType"), content_type)?,
                body: body.clone().into_bytes().into(),
            })
        }
        (None, Some(Redirect { scheme, host, port, path, status })) => {
            let field = format!("{field}.filters.redirect");
            if ![301, 302, 303, 307, 308].contains(status) {
                problems.add(format!("{field}.status"), "is not one of 301, 302, 303, 307 and 308");
            }
            let scheme = match scheme.as_deref() {
                None => None,
                Some("http") => Some(Scheme::HTTP),
                Some("https") => Some(Scheme::HTTPS),
                Some(other) => {
                    problems.add(format!("{field}.scheme"), format!("{other:?} is neither http nor https"));
                    None
                }
            };
            if let Some(host) = host {
                problems.note(format!("{field}.host"), HostPattern::parse(host));
            }
            Some(Answer::Redirect {
                status: status_code(*status),
                scheme,
                host: host.as_deref().map(Into::into),
                port: port.and_then(|port| u16::try_from(port).ok()),
                path: new_path(problems, &format!("{field}.path"), path.as_ref(), rule),
            })
        }
    }
}

fn status_code(number: i32) -> StatusCode {
    u16::try_from(number).ok().and_then(|number| StatusCode::from_u16(number).ok()).unwrap_or_default()
}

fn new_path(
    problems: &mut Problems,
    field: &str,
    change: Option<&PathChange>,
    rule: &RouteRule,
) -> Option<NewPath> {
    let change = change?;
    match (&change.full, &change.prefix) {
        (Some(full), None) => {
            problems.path(&format!("{field}.full"), full).map(|full| NewPath::Full(full.into()))
        }
        (None, Some(prefix)) => {
            let is_prefix =
                |wanted: &RouteMatch| wanted.path.as_ref().is_none_or(|path| path.prefix.is_some());
            if !rule.matches.iter().all(is_prefix) {
                problems.add(format!("{field}.prefix"), "needs matches whose paths are all prefixes");
            }
            problems.prefix(&format!("{field}.prefix"), prefix).map(|prefix| NewPath::Prefix(prefix.into()))
        }
        _ => {
            problems.add(field, "needs one of full and prefix");
            None
        }
    }
}

fn edits(problems: &mut Problems, field: &str, changes: Option<&HeaderChanges>) -> Option<Box<HeaderEdits>> {
    let HeaderChanges { set, add, remove } = changes?;
    let name = |problems: &mut Problems, field: &str, text: &str| {
        let name = problems.header_name(field, text)?;
        if FRAMING.contains(&name.as_str()) {
            problems.add(field, format!("{name} is about the connection, and cannot be changed here"));
            return None;
        }
        Some(name)
    };
    let pairs = |problems: &mut Problems, part: &str, pairs: &BTreeMap<String, String>| {
        let read = |(key, value): (&String, &String)| -> Option<(HeaderName, HeaderValue)> {
            let field = format!("{field}.{part}[{key}]");
            let name = name(problems, &field, key);
            let value = problems.header_value(&field, value);
            Some((name?, value?))
        };
        pairs.iter().filter_map(read).collect()
    };
    let (set, add) = (pairs(problems, "set", set), pairs(problems, "add", add));
    let remove = remove.iter().enumerate();
    let remove =
        remove.filter_map(|(at, text)| name(problems, &format!("{field}.remove[{at}]"), text)).collect();
    Some(Box::new(HeaderEdits { remove, set, add }))
}

fn cors_rules(problems: &mut Problems, field: &str, cors: &Cors) -> CorsRules {
    let any_origin = cors.origins.iter().any(|origin| origin == "*");
    if any_origin && cors.credentials {
        problems.add(format!("{field}.credentials"), "cannot be true for the origin *: name the origins");
    }
    let origins = cors.origins.iter().filter(|origin| *origin != "*").enumerate().map(|(at, origin)| {
        if !origin.contains("://") {
            problems.add(
                format!("{field}.origins[{at}]"),
                format!("{origin:?} is not an origin such as https://example.com"),
            );
        }
        match origin.split_once('*') {
            Some((before, after)) => (before.into(), Some(after.into())),
            None => (origin.as_str().into(), None),
        }
    });
    let origins = origins.collect();
    let mut list = |name: &str, values: &[String]| match values {
        [] => None,
        values => problems.header_value(&format!("{field}.{name}"), &values.join(", ")),
    };
    let all = |values: &[String]| values.iter().any(|value| value == "*");
    let methods = if all(&cors.methods) {
        None
    } else {
        let mut methods: Vec<String> = ["GET", "HEAD", "POST"].map(str::to_owned).to_vec();
        methods.extend(
            cors.methods.iter().filter(|method| !["GET", "HEAD", "POST"].contains(&method.as_str())).cloned(),
        );
        list("methods", &methods)
    };
    let headers = match all(&cors.headers) {
        true => None,
        false => Some(list("headers", &cors.headers).unwrap_or(HeaderValue::from_static(""))),
    };
    let expose = list("exposeHeaders", &cors.expose_headers);
    let max_age =
        problems.duration(&format!("{field}.maxAge"), cors.max_age.as_ref(), Duration::from_secs(5));
    CorsRules {
        any_origin,
        origins,
        methods,
        headers,
        expose,
        credentials: cors.credentials,
        max_age: max_age.as_secs().into(),
    }
}

fn compression(compress: &crate::kinds::Compress) -> Compression {
    const USUAL: [&str; 6] = [
        "text/",
        "application/json",
        "application/javascript",
        "application/xml",
        "image/svg+xml",
        "application/wasm",
    ];
    let types = match compress.types.as_slice() {
        [] => USUAL.map(Into::into).into(),
        types => types.iter().map(|kind| kind.as_str().into()).collect(),
    };
    Compression {
        types,
        min_bytes: compress.min_bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(1_024),
    }
}

fn retries(problems: &mut Problems, field: &str, retry: &RouteRetry) -> Retry {
    let statuses: Vec<u16> = match retry.statuses.as_slice() {
        [] => vec![502, 503, 504],
        statuses => statuses.iter().filter_map(|status| u16::try_from(*status).ok()).collect(),
    };
    Retry {
        attempts: u32::try_from(retry.attempts).unwrap_or(0),
        after_sending: true,
        statuses: statuses.into(),
        non_idempotent: retry.non_idempotent,
        backoff: problems.duration(
            &format!("{field}.backoff"),
            retry.backoff.as_ref(),
            Duration::from_millis(25),
        ),
    }
}
