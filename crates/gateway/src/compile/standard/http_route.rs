//! `HTTPRoute` in the words of `GatewayRoute`.

use std::collections::BTreeMap;

use crate::kinds::standard::{
    BackendRef, HTTPCORSFilter, HTTPHeaderFilter, HTTPPathModifier, HTTPRequestMirrorFilter,
    HTTPRequestRedirectFilter, HTTPRouteFilter, HTTPRouteMatch, HTTPRouteRetry, HTTPRouteRule,
    HTTPValueMatch,
};
use crate::kinds::{
    Cors, FieldMatch, HeaderChanges, Mirror, PathChange, PathMatch, Redirect, Rewrite, RouteFilters,
    RouteMatch, RouteRetry, RouteRule, RouteTimeouts, WeightedBackend,
};
use crate::object::Problem;

/// Translates the rules of a route. `backend` gives the name of the backend for a reference. An error is what is not supported.
pub(super) fn translate(
    rules: &[HTTPRouteRule],
    backend: &mut dyn FnMut(&str, &BackendRef) -> String,
) -> Result<Vec<RouteRule>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut translated = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let field = format!("spec.rules[{at}]");
        let mut named = RouteRule {
            matches: rule.matches.iter().map(translate_match).collect(),
            filters: filters(&field, &rule.filters, backend, &mut problems),
            timeouts: rule.timeouts.as_ref().map(timeouts).unwrap_or_default(),
            retry: rule.retry.as_ref().map(retry),
            ..RouteRule::default()
        };
        for (number, reference) in rule.backend_refs.iter().enumerate() {
            let field = format!("{field}.backendRefs[{number}]");
            if !reference.filters.is_empty() {
                problems.push(Problem::new(
                    format!("{field}.filters"),
                    "are not supported: put them into the rule",
                ));
            }
            named.backends.push(WeightedBackend {
                name: backend(&field, &reference.backend),
                weight: reference.weight.unwrap_or(1),
            });
        }
        translated.push(named);
    }
    if problems.is_empty() { Ok(translated) } else { Err(problems) }
}

fn translate_match(wanted: &HTTPRouteMatch) -> RouteMatch {
    let path = wanted.path.as_ref().map(|path| {
        let value = Some(path.value.clone().unwrap_or_else(|| "/".to_owned()));
        match path.kind.as_deref() {
            Some("Exact") => PathMatch { exact: value, ..PathMatch::default() },
            Some("RegularExpression") => PathMatch { regex: value, ..PathMatch::default() },
            _ => PathMatch { prefix: value, ..PathMatch::default() },
        }
    });
    let mut query: Vec<FieldMatch> = Vec::new();
    for parameter in &wanted.query_params {
        if !query.iter().any(|known| known.name == parameter.name) {
            query.push(field_match(parameter));
        }
    }
    let mut headers: Vec<FieldMatch> = Vec::new();
    for header in &wanted.headers {
        if !headers.iter().any(|known| known.name.eq_ignore_ascii_case(&header.name)) {
            headers.push(field_match(header));
        }
    }
    RouteMatch { path, method: wanted.method.clone(), headers, query }
}

fn field_match(wanted: &HTTPValueMatch) -> FieldMatch {
    let value = Some(wanted.value.clone());
    match wanted.kind.as_deref() {
        Some("RegularExpression") => FieldMatch { name: wanted.name.clone(), regex: value, value: None },
        _ => FieldMatch { name: wanted.name.clone(), value, regex: None },
    }
}

fn filters(
    field: &str,
    wanted: &[HTTPRouteFilter],
    backend: &mut dyn FnMut(&str, &BackendRef) -> String,
    problems: &mut Vec<Problem>,
) -> RouteFilters {
    let mut filters = RouteFilters::default();
    for (at, filter) in wanted.iter().enumerate() {
        let field = format!("{field}.filters[{at}]");
        let repeated = match (filter.kind.as_str(), filter) {
            ("RequestHeaderModifier", HTTPRouteFilter { request_header_modifier: Some(changes), .. }) => {
                filters.request_headers.replace(header_changes(changes)).is_some()
            }
            ("ResponseHeaderModifier", HTTPRouteFilter { response_header_modifier: Some(changes), .. }) => {
                filters.response_headers.replace(header_changes(changes)).is_some()
            }
            ("RequestRedirect", HTTPRouteFilter { request_redirect: Some(wanted), .. }) => {
                filters.redirect.replace(redirect(wanted)).is_some()
            }
            ("URLRewrite", HTTPRouteFilter { url_rewrite: Some(wanted), .. }) => {
                let rewrite =
                    Rewrite { host: wanted.hostname.clone(), path: wanted.path.as_ref().map(new_path) };
                filters.rewrite.replace(rewrite).is_some()
            }
            ("RequestMirror", HTTPRouteFilter { request_mirror: Some(wanted), .. }) => {
                let name = backend(&format!("{field}.requestMirror.backendRef"), &wanted.backend_ref);
                filters.mirror.replace(Mirror { backend: name, percent: percent(wanted) }).is_some()
            }
            ("CORS", HTTPRouteFilter { cors: Some(wanted), .. }) => {
                filters.cors.replace(cors(wanted)).is_some()
            }
            (kind, _) => {
                problems.push(Problem::new(format!("{field}.type"), format!("{kind:?} is not supported")));
                false
            }
        };
        if repeated {
            problems.push(Problem::new(field, format!("a second {} is not supported", filter.kind)));
        }
    }
    if filters.redirect.is_some() && filters.rewrite.is_some() {
        problems.push(Problem::new(format!("{field}.filters"), "has both RequestRedirect and URLRewrite"));
    }
    filters
}

fn header_changes(wanted: &HTTPHeaderFilter) -> HeaderChanges {
    // Of two with one name, the first counts.
    let pairs = |headers: &[crate::kinds::standard::HTTPHeader]| {
        let mut pairs = BTreeMap::new();
        for header in headers {
            pairs.entry(header.name.to_ascii_lowercase()).or_insert_with(|| header.value.clone());
        }
        pairs
    };
    HeaderChanges { set: pairs(&wanted.set), add: pairs(&wanted.add), remove: wanted.remove.clone() }
}

fn redirect(wanted: &HTTPRequestRedirectFilter) -> Redirect {
    Redirect {
        scheme: wanted.scheme.clone(),
        host: wanted.hostname.clone(),
        port: wanted.port,
        path: wanted.path.as_ref().map(new_path),
        status: wanted.status_code.unwrap_or(302),
    }
}

fn new_path(wanted: &HTTPPathModifier) -> PathChange {
    match wanted.kind.as_str() {
        "ReplaceFullPath" => {
            let full = wanted.replace_full_path.clone().filter(|path| !path.is_empty());
            PathChange { full: Some(full.unwrap_or_else(|| "/".to_owned())), prefix: None }
        }
        _ => {
            let prefix = wanted.replace_prefix_match.clone().filter(|path| !path.is_empty());
            PathChange { full: None, prefix: Some(prefix.unwrap_or_else(|| "/".to_owned())) }
        }
    }
}

fn percent(wanted: &HTTPRequestMirrorFilter) -> i32 {
    let of = |numerator: i32, denominator: i32| {
        i32::try_from(100 * i64::from(numerator) / i64::from(denominator.max(1))).unwrap_or(100).clamp(0, 100)
    };
    match (wanted.percent, &wanted.fraction) {
        (Some(percent), _) => percent.clamp(0, 100),
        (None, Some(fraction)) => of(fraction.numerator, fraction.denominator.unwrap_or(100)),
        (None, None) => 100,
    }
}

fn cors(wanted: &HTTPCORSFilter) -> Cors {
    Cors {
        origins: wanted.allow_origins.clone(),
        methods: wanted.allow_methods.clone(),
        headers: wanted.allow_headers.clone(),
        expose_headers: wanted.expose_headers.clone(),
        credentials: wanted.allow_credentials.unwrap_or(false),
        max_age: wanted.max_age.map(|seconds| format!("{seconds}s")),
    }
}

fn timeouts(wanted: &crate::kinds::standard::HTTPRouteTimeouts) -> RouteTimeouts {
    RouteTimeouts { request: wanted.request.clone(), attempt: wanted.backend_request.clone(), idle: None }
}

fn retry(wanted: &HTTPRouteRetry) -> RouteRetry {
    RouteRetry {
        attempts: wanted.attempts.unwrap_or(1),
        statuses: wanted.codes.clone(),
        non_idempotent: true,
        backoff: wanted.backoff.clone(),
    }
}
