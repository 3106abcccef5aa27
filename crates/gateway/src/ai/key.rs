use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::endpoint::parameter;

/// What keys begin with, so that scanners of secrets can find them.
const PREFIX: &str = "wk-";

/// Makes a key of 256 bits of chance, and its digest for an LLMGatewayPolicy.
///
/// # Errors
///
/// If the system has no chance to offer.
pub fn new_key() -> Result<(String, String), String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system has no random numbers".to_owned())?;
    let key = format!("{PREFIX}{}", hex(&bytes));
    let digested = hex(digest(&SHA256, key.as_bytes()).as_ref());
    Ok((key, digested))
}

/// The digest of the key that a client shows: as a bearer, as the headers of Anthropic and Google, or as Google's parameter.
pub(crate) fn given_key(headers: &HeaderMap, query: Option<&str>) -> Option<[u8; 32]> {
    let of = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, rest) = value.as_bytes().split_at_checked(b"bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"bearer ").then_some(rest)
    });
    let parameter = query.and_then(|query| parameter(query, "key"));
    let given =
        bearer.or(of("x-api-key")).or(of("x-goog-api-key")).or(parameter.as_deref().map(str::as_bytes))?;
    digest(&SHA256, given.trim_ascii()).as_ref().try_into().ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
