//! What makes a request another one, by one part of it or by its spelling.

use super::draft::{Draft, PARTS, VERBS, any_user, pick};
use super::kind::{KINDS, NAMESPACES};
use super::random::Random;

/// Methods, the usual ones first.
const METHODS: [&str; 11] =
    ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "FOO", "get", "Delete"];

/// What may be added to a query.
const QUERIES: [&str; 16] = [
    "watch=true",
    "watch=1",
    "watch=0",
    "watch=false",
    "watch=",
    "watch=yes",
    "watch=0&watch=1",
    "watch=1&watch=0",
    "Watch=1",
    "fieldSelector=metadata.name%3Da",
    "fieldSelector=metadata.name%3Db",
    "fieldSelector=metadata.name%3Da%2Cmetadata.namespace%3Dx",
    "labelSelector=paths%3D1",
    "resourceVersion=0",
    "limit=1",
    "pretty=true",
];

/// Bodies that belong to no request. None is read as options that are empty without being an object.
const BODIES: [&str; 5] =
    ["", "{}", "[]", "garbage", r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"fresh"}}"#];

/// Changes one part of a request.
pub(super) fn part(random: &mut Random, draft: &mut Draft) {
    match random.below(17) {
        0 => draft.method = pick(random, &METHODS[..5]),
        1 => draft.method = pick(random, &METHODS),
        2 => {
            let verb = pick(random, &VERBS);
            if draft.name.is_none() {
                draft.name = Some("a".to_owned());
            }
            draft.set_verb(random, verb);
        }
        3 => {
            // Another resource in the same place, with the same names.
            let kind = &KINDS[random.below(KINDS.len())];
            (draft.root, draft.resource, draft.kind) = (kind.root(), kind.plural.to_owned(), kind);
        }
        4 => draft.namespace = Some(random.pick(&["x", "y", "default", "nosuch"]).to_owned()),
        5 => draft.name = Some(random.pick(&["a", "b", "x", "y", "nosuch", "A", "."]).to_owned()),
        6 => draft.subresource = Some(pick(random, &PARTS).to_owned()),
        7 if draft.subresource.is_some() => draft.subresource = None,
        7 => draft.subresource = Some(pick(random, &PARTS).to_owned()),
        8 => draft.prefix = Some("watch"),
        9 => draft.prefix = Some(random.pick(&["watch", "proxy"])),
        10 => {
            // An empty name, in front of a subresource.
            draft.name = None;
            if draft.subresource.is_none() {
                draft.subresource = Some(pick(random, &PARTS).to_owned());
            }
        }
        11 => {
            // A namespace in a namespace.
            draft.root = KINDS[0].root();
            (draft.kind, draft.resource) = (&KINDS[0], KINDS[0].plural.to_owned());
            draft.namespace = Some(random.pick(&NAMESPACES).to_owned());
            if draft.name.is_some() {
                draft.name = Some(random.pick(&NAMESPACES).to_owned());
            }
        }
        12 => {
            draft.namespace = match &draft.namespace {
                Some(_) if random.chance(70) => None,
                _ => Some(random.pick(&["x", "y", ""]).to_owned()),
            }
        }
        13 => {
            let last = draft.root.len() - 1;
            let place = random.below(draft.root.len());
            match random.below(3) {
                0 => draft.root[last] = random.pick(&["v1beta1", "v2", "", "V1"]).to_owned(),
                1 => {
                    draft.root[place] =
                        random.pick(&["api", "apis", "apps", "example.com", "nosuch", ""]).to_owned();
                }
                _ => draft.root = KINDS[random.below(KINDS.len())].root(),
            }
        }
        14 => {
            for _ in 0..=random.below(2) {
                draft.rest.push(random.pick(&["status", "scale", "x", "", "a"]).to_owned());
            }
        }
        15 => draft.user = any_user(random),
        _ => draft.query.push(pick(random, &QUERIES).to_owned()),
    }
}

/// Gives a request a body or a media type that does not belong to it.
pub(super) fn body(random: &mut Random, draft: &mut Draft) {
    if random.chance(60) {
        draft.body = pick(random, &BODIES).to_owned();
    }
    if random.chance(30) {
        draft.content_type =
            random.pick(&["", "text/plain", "application/yaml", "application/merge-patch+json"]);
    }
}

/// Spells the path of some segments in another way.
pub(super) fn spelling(random: &mut Random, segments: &[String]) -> String {
    let mut segments = segments.to_vec();
    let place = random.below(segments.len());
    let later = place.max(1);
    match random.below(10) {
        0 => segments.insert(random.below(segments.len() + 1), String::new()),
        1 => segments.insert(place, random.pick(&[".", "..", "%2e", "%2e%2e", "%2E."]).to_owned()),
        2 => {
            if let Some(last) = segments.last_mut() {
                *last = random.pick(&[".", "..", "%2e%2e", "%00", "a%20b", "a;b=c", "%3Fwatch=1"]).to_owned();
            }
        }
        3 | 4 => {
            segments[place] = segments[place]
                .bytes()
                .map(|byte| match random.chance(40) {
                    true => format!("%{byte:02x}"),
                    false => char::from(byte).to_string(),
                })
                .collect();
        }
        5 | 6 if segments.len() > 1 => {
            let tail = segments.remove(later.min(segments.len() - 1));
            let slash = random.pick(&["%2f", "%2F"]);
            let head = later.min(segments.len()) - 1;
            segments[head] = format!("{}{slash}{tail}", segments[head]);
        }
        7 => segments.extend(vec![String::new(); 1 + random.below(2)]),
        8 => {
            // Back out of a segment that is not there.
            segments.insert(place, "nosuch".to_owned());
            segments.insert(place + 1, random.pick(&["..", "%2e%2e", ".%2E"]).to_owned());
        }
        _ => segments[place] = segments[place].to_uppercase(),
    }
    format!("/{}", segments.join("/"))
}

/// Paths that are no resources.
const OTHERS: [&str; 34] = [
    "/",
    "/api",
    "/apis",
    "/api/v1",
    "/api/v2",
    "/apis/apps",
    "/apis/apps/v1",
    "/apis/nosuch",
    "/apis/nosuch/v1",
    "/apis/example.com",
    "/apis/example.com/v1",
    "/version",
    "/healthz",
    "/healthz/ping",
    "/livez",
    "/readyz",
    "/readyz/ping",
    "/metrics",
    "/logs",
    "/logs/a",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/api/v1",
    "/.well-known/openid-configuration",
    "/openid/v1/jwks",
    "/nosuch",
    "/nosuch/api/v1/pods",
    "/version/",
    "/healthz/",
    "//healthz",
    "/healthz/../metrics",
    "/healthz/%2e%2e/metrics",
    "/HEALTHZ",
    "/api/v1/watch",
];

/// A method and the path of something that is no resource.
pub(super) fn other(random: &mut Random) -> (&'static str, String) {
    let method = if random.chance(55) { "GET" } else { pick(random, &METHODS) };
    let path = pick(random, &OTHERS);
    let escaped = random.chance(10) && path.len() > 2;
    let spelled = if escaped { path.replacen('e', "%65", 1) } else { path.to_owned() };
    (method, if random.chance(10) { spelled + "/" } else { spelled })
}
