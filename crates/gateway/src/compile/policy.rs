use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use watchkeeper_core::Key;

use super::fields::Problems;
use crate::kinds::{GatewayPolicySpec, JwtPolicy, OpenApiPolicy, PolicyTargetKind, RateKey, RatePolicy};
use crate::net::Networks;
use crate::object::{Input, Problem};
use crate::policy::{
    Addresses, ApiKeys, Basic, Jwt, KeySet, OpenApi, Password, Policy, PolicyState, Rate, RateBy,
};
use crate::table::Attachment;

/// The largest OpenAPI document.
const DOCUMENT_BYTES: u64 = 4 << 20;

pub(super) fn compile(input: &Input, state: Arc<PolicyState>, base: &Path) -> Result<Policy, Vec<Problem>> {
    let spec: GatewayPolicySpec = input.checked()?;
    let mut problems = Problems::default();
    let key = &input.id.key;
    let namespace = key.namespace().unwrap_or_default();
    let mut attachments = Vec::new();
    for (at, target) in spec.targets.iter().enumerate() {
        let field = format!("spec.targets[{at}].name");
        match (target.kind, &target.name) {
            (PolicyTargetKind::Namespace, None) => attachments.push(Attachment::Namespace(namespace.into())),
            (PolicyTargetKind::Namespace, Some(_)) => {
                problems.add(field, "is not for Namespace: a policy is for its own namespace");
            }
            (_, None) => problems.add(field, "is missing"),
            (PolicyTargetKind::Listener, Some(name)) => {
                attachments.push(Attachment::Listener(Key::new(Some(namespace), name)));
            }
            (PolicyTargetKind::Route, Some(name)) => {
                attachments.push(Attachment::Route(Key::new(Some(namespace), name)));
            }
        }
    }
    attachments.sort();
    attachments.dedup();
    let mut networks = |field: &str, texts: &[String]| {
        Networks::parse(texts)
            .map_err(|(at, message)| problems.add(format!("spec.addresses.{field}[{at}]"), message))
            .unwrap_or_default()
    };
    let addresses = spec.addresses.as_ref().map(|addresses| Addresses {
        allow: networks("allow", &addresses.allow),
        deny: networks("deny", &addresses.deny),
    });
    let api_keys = spec.api_keys.as_ref().and_then(|policy| {
        let keys = policy.keys.iter().enumerate().filter_map(|(at, key)| {
            let field = format!("spec.apiKeys.keys[{at}].sha256");
            let digest = digest(&key.sha256).ok_or_else(|| "is not 64 hexadecimal digits".to_owned());
            Some((problems.note(field, digest)?, Arc::<str>::from(key.name.as_str())))
        });
        let keys = keys.collect();
        for (at, key) in policy.keys.iter().enumerate() {
            problems.header_value(&format!("spec.apiKeys.keys[{at}].name"), &key.name);
        }
        Some(ApiKeys { header: problems.header_name("spec.apiKeys.header", &policy.header)?, keys })
    });
    let basic = spec.basic.as_ref().map(|policy| {
        let users = policy.users.iter().enumerate().filter_map(|(at, user)| {
            let field = format!("spec.basic.users[{at}]");
            problems.header_value(&format!("{field}.name"), &user.name)?;
            let password = problems.note(format!("{field}.password"), Password::parse(&user.password))?;
            Some((user.name.clone(), password))
        });
        Basic { users: users.collect(), realm: policy.realm.replace(['"', '\\'], "") }
    });
    let openapi = spec.openapi.as_ref().and_then(|policy| openapi(&mut problems, policy, base));
    let jwt = spec.jwt.as_ref().and_then(|policy| jwt(&mut problems, policy, base));
    let rate = spec.rate.as_ref().map(|policy| rate(&mut problems, policy));
    problems.finish(Policy {
        key: key.clone(),
        attachments: attachments.into(),
        addresses,
        api_keys,
        basic,
        jwt,
        rate,
        openapi,
        is_unusable: false,
        state,
    })
}

/// A policy that never could be used, for as many of its targets as can be read.
pub(super) fn unusable(input: &Input, state: Arc<PolicyState>) -> Policy {
    let key = &input.id.key;
    let namespace = key.namespace().unwrap_or_default();
    let json = input.json.read();
    let targets = json.pointer("/spec/targets").and_then(Value::as_array);
    let read = |target: &Value| {
        let named = |name: &Value| Some(Key::new(Some(namespace), name.as_str()?));
        match target["kind"].as_str()? {
            "Namespace" => Some(Attachment::Namespace(namespace.into())),
            "Listener" => named(&target["name"]).map(Attachment::Listener),
            "Route" => named(&target["name"]).map(Attachment::Route),
            _ => None,
        }
    };
    let mut attachments: Vec<Attachment> = targets.into_iter().flatten().filter_map(read).collect();
    attachments.sort();
    attachments.dedup();
    Policy {
        key: key.clone(),
        attachments: attachments.into(),
        addresses: None,
        api_keys: None,
        basic: None,
        jwt: None,
        rate: None,
        openapi: None,
        is_unusable: true,
        state,
    }
}

pub(super) fn digest(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn jwt(problems: &mut Problems, policy: &JwtPolicy, base: &Path) -> Option<Jwt> {
    let (keys, url) = match (&policy.jwks, &policy.jwks_file, &policy.jwks_url) {
        (Some(text), None, None) => {
            (Some(problems.note("spec.jwt.jwks", KeySet::parse(text.as_bytes()))?), None)
        }
        (None, Some(file), None) => {
            let read = std::fs::read(base.join(file)).map_err(|error| format!("{file}: {error}"));
            let keys = read.and_then(|bytes| KeySet::parse(&bytes));
            (Some(problems.note("spec.jwt.jwksFile", keys)?), None)
        }
        (None, None, Some(url)) => {
            let uri =
                url.parse::<http::Uri>().ok().filter(|uri| uri.scheme().is_some() && uri.host().is_some());
            let uri =
                uri.ok_or_else(|| format!("{url:?} is not a URL such as https://example.com/jwks.json"));
            (None, Some(problems.note("spec.jwt.jwksUrl", uri)?))
        }
        _ => {
            problems.add("spec.jwt", "needs one of jwks, jwksFile and jwksUrl");
            return None;
        }
    };
    Some(Jwt {
        issuer: policy.issuer.clone(),
        audiences: policy.audiences.clone(),
        keys: keys.map(Arc::new),
        url,
    })
}

fn openapi(problems: &mut Problems, policy: &OpenApiPolicy, base: &Path) -> Option<OpenApi> {
    let (field, text) = match (&policy.document, &policy.document_file) {
        (Some(text), None) => ("spec.openapi.document", text.clone()),
        (None, Some(file)) => {
            let field = "spec.openapi.documentFile";
            let size = std::fs::metadata(base.join(file)).map(|metadata| metadata.len());
            if size.is_ok_and(|size| size > DOCUMENT_BYTES) {
                problems.add(field, format!("{file} has more than {DOCUMENT_BYTES} bytes"));
                return None;
            }
            let read = std::fs::read_to_string(base.join(file)).map_err(|error| format!("{file}: {error}"));
            (field, problems.note(field, read)?)
        }
        _ => {
            problems.add("spec.openapi", "needs one of document and documentFile");
            return None;
        }
    };
    let document = watchkeeper_schema::yaml::read(&text)
        .map_err(|misread| format!("line {}, column {}: {}", misread.line, misread.column, misread.error));
    let document = problems.note(field, document)?.value;
    let most = policy.max_body_bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(1 << 20);
    let prefix = policy.prefix.as_deref().unwrap_or_default();
    problems.note(field, OpenApi::parse(&document, prefix, policy.allow_unknown, most))
}

fn rate(problems: &mut Problems, policy: &RatePolicy) -> Rate {
    let per = problems.positive("spec.rate.per", policy.per.as_ref(), Duration::from_secs(1));
    let by = match (policy.by, &policy.header) {
        (RateKey::Header, Some(header)) => {
            problems.header_name("spec.rate.header", header).map_or(RateBy::All, RateBy::Header)
        }
        (RateKey::Header, None) => {
            problems.add("spec.rate.header", "is missing");
            RateBy::All
        }
        (_, Some(_)) => {
            problems.add("spec.rate.header", "is for by: Header");
            RateBy::All
        }
        (RateKey::Address, None) => RateBy::Address,
        (RateKey::Consumer, None) => RateBy::Consumer,
        (RateKey::All, None) => RateBy::All,
    };
    let requests = u64::try_from(policy.requests).unwrap_or(1).max(1);
    let burst = policy.burst.and_then(|burst| u64::try_from(burst).ok()).unwrap_or(requests).max(1);
    Rate::new(requests, per, burst, by)
}
