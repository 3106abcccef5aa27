//! A token: what it says, how it is written, signed and read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use watchkeeper_go::base64::RAW_URL;
use watchkeeper_rbac::account_user;

use super::AccountTokens;

/// How far apart clocks may be.
pub(super) const LEEWAY: Duration = Duration::from_secs(60);

/// What kube-apiserver says when a signature is not right, or has conditions that it does not know.
const NOT_VERIFIED: &str = "go-jose/go-jose: error in cryptographic primitive";

/// What a token says, once its signature is verified.
pub(super) struct Claims(pub(super) Value);

/// An object that a token names.
#[derive(Clone, Copy)]
pub(super) struct Reference<'a> {
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
}

impl Claims {
    /// The namespace of the ServiceAccount.
    pub(super) fn namespace(&self) -> &str {
        self.0["kubernetes.io"]["namespace"].as_str().unwrap_or_default()
    }

    pub(super) fn reference(&self, kind: &str) -> Option<Reference<'_>> {
        let reference = self.0["kubernetes.io"].get(kind).filter(|reference| reference.is_object())?;
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        Some(Reference { name: text("name"), uid: text("uid") })
    }

    pub(super) fn id(&self) -> &str {
        self.0["jti"].as_str().unwrap_or_default()
    }

    /// Whom the token is meant for; one that says nothing is meant for its issuer.
    fn audiences(&self) -> Vec<&str> {
        match &self.0["aud"] {
            Value::String(audience) => vec![audience],
            audiences => audiences.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
        }
    }

    /// Refuses a token outside of its time, and one that does not say when it ends: this server never issued such a token.
    fn check_time(&self, now: SystemTime) -> Result<(), String> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let (begin, end, issued) = (self.time("nbf")?, self.time("exp")?, self.time("iat")?);
        let end = end.ok_or("exp claim is missing")?;
        let latest = now.saturating_add(LEEWAY.as_secs());
        if begin.is_some_and(|begin| latest < begin) {
            return Err("service account token is not valid yet".into());
        }
        if now > end.saturating_add(LEEWAY.as_secs()) {
            return Err("service account token has expired".into());
        }
        if issued.is_some_and(|issued| latest < issued) {
            return Err("service account token is issued in the future".into());
        }
        Ok(())
    }

    /// A time in seconds since 1970; an error if there is something else in its place.
    fn time(&self, field: &str) -> Result<Option<u64>, String> {
        match &self.0[field] {
            Value::Null => Ok(None),
            Value::Number(seconds) => Ok(seconds.as_f64().map(|seconds| seconds as u64)),
            _ => Err("go-jose/go-jose/jwt: expected number value to unmarshal NumericDate".into()),
        }
    }

    /// Refuses a token whose subject is not the ServiceAccount that it names.
    fn check_subject(&self) -> Result<(), String> {
        let account = self.reference("serviceaccount").ok_or("service account token names no account")?;
        match self.0["sub"] == account_user(self.namespace(), account.name).as_str() {
            true => Ok(()),
            false => Err("sub claim is invalid".into()),
        }
    }
}

impl AccountTokens {
    /// Writes and signs a token; `None` if there is no key to do it with.
    pub(crate) fn sign(&self, mut claims: Value) -> Option<String> {
        let signer = self.signer.as_ref()?;
        claims["iss"] = self.issuer.as_str().into();
        let header = json!({"alg": signer.verifier.algorithm.name(), "kid": signer.verifier.id});
        let encode = |value: &Value| RAW_URL.encode(value.to_string());
        let message = format!("{}.{}", encode(&header), encode(&claims));
        let signature = signer.sign(message.as_bytes())?;
        Some(format!("{message}.{}", RAW_URL.encode(signature)))
    }

    /// Reads a token. `None` if it is none of ours; the error says why one of ours is not accepted.
    pub(super) fn verify(
        &self,
        token: &str,
        wanted: &[String],
        now: SystemTime,
    ) -> Option<Result<(Claims, Vec<String>), String>> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        // There is one text only for each token, so that nobody who remembers tokens is deceived.
        let decode = |text: &str| RAW_URL.strict().decode(text).ok().filter(|_| !text.contains(['\r', '\n']));
        let object = |text: &str| serde_json::from_slice::<Value>(&decode(text)?).ok();
        let claims = Claims(object(claims)?);
        if claims.0["iss"] != self.issuer.as_str() {
            return None;
        }
        let (header, signature) = (object(header)?, decode(signature)?);
        let key = header["kid"].as_str().unwrap_or_default();
        let algorithm = header["alg"].as_str().unwrap_or_default();
        // What must be understood is not: no extension is known here.
        if !header["crit"].is_null() {
            return Some(Err(NOT_VERIFIED.into()));
        }
        let mut keys =
            self.verifiers.iter().filter(|verifier| key.is_empty() || verifier.id == key).peekable();
        if keys.peek().is_none() {
            return Some(Err("invalid signature, no keys found".into()));
        }
        if !keys.any(|verifier| verifier.verifies(algorithm, message.as_bytes(), &signature)) {
            return Some(Err(NOT_VERIFIED.into()));
        }
        let told = claims.audiences();
        let told: Vec<&str> =
            if told.is_empty() { self.audiences.iter().map(String::as_str).collect() } else { told };
        let audiences: Vec<String> = told
            .iter()
            .filter(|audience| wanted.iter().any(|known| known == *audience))
            .map(|audience| (*audience).to_owned())
            .collect();
        if audiences.is_empty() {
            let list =
                |texts: &[&str]| texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(" ");
            let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
            return Some(Err(format!(
                "token audiences [{}] is invalid for the target audiences [{}]",
                list(&told),
                list(&wanted)
            )));
        }
        let checked = claims.check_time(now).and_then(|()| claims.check_subject());
        Some(checked.map(|()| (claims, audiences)))
    }

    /// Whom tokens have to be meant for that the server itself accepts.
    pub(crate) fn audiences(&self) -> &[String] {
        &self.audiences
    }
}
