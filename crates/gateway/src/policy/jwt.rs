use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use http::header::{AUTHORIZATION, HeaderValue};
use http::{HeaderMap, Uri};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::Value;
use watchkeeper_go::base64::RAW_URL;

use super::Refusal;

/// How far clocks may differ, in seconds.
const TOLERANCE: f64 = 60.0;
/// The longest token.
const LONGEST: usize = 16 << 10;

/// Tokens of an issuer.
#[derive(Debug)]
pub struct Jwt {
    /// What `iss` has to be.
    pub issuer: Option<String>,
    /// One of these has to be in `aud`.
    pub audiences: Vec<String>,
    /// The keys of the issuer, if they are not behind a URL.
    pub keys: Option<Arc<KeySet>>,
    /// The URL that has the keys.
    pub url: Option<Uri>,
}

/// The keys of an issuer.
#[derive(Debug)]
pub struct KeySet(Vec<WebKey>);

#[derive(Debug)]
struct WebKey {
    id: Option<String>,
    /// The only algorithm that it is for, if it says so.
    algorithm: Option<String>,
    key: PublicKey,
}

#[derive(Debug)]
enum PublicKey {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl KeySet {
    /// Reads a JSON Web Key Set. Keys of types that are not known are passed over.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let set: Value = serde_json::from_slice(json).map_err(|_| "is not JSON".to_owned())?;
        let keys = set["keys"].as_array().ok_or("is not a JSON Web Key Set: it has no keys")?;
        let keys: Vec<WebKey> = keys.iter().filter_map(WebKey::read).collect();
        if keys.is_empty() {
            Err("has no key of type RSA, EC (P-256, P-384) or OKP (Ed25519)".into())
        } else {
            Ok(Self(keys))
        }
    }

    fn verify(&self, algorithm: &str, id: Option<&str>, message: &[u8], signature: &[u8]) -> bool {
        let fits = |key: &&WebKey| {
            (id.is_none() || key.id.is_none() || key.id.as_deref() == id)
                && key.algorithm.as_deref().is_none_or(|only| only == algorithm)
        };
        self.0.iter().filter(fits).any(|key| key.key.verify(algorithm, message, signature))
    }
}

impl WebKey {
    fn read(key: &Value) -> Option<Self> {
        let text = |name: &str| key[name].as_str();
        let bytes = |name: &str| RAW_URL.decode(text(name)?.trim_end_matches('=')).ok();
        if text("use").is_some_and(|usage| usage != "sig") {
            return None;
        }
        let point = |length: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            (x.len() == length && y.len() == length).then(|| [&[4][..], &x, &y].concat())
        };
        let public = match (text("kty")?, text("crv")) {
            ("RSA", _) => PublicKey::Rsa { n: bytes("n")?, e: bytes("e")? },
            ("EC", Some("P-256")) => PublicKey::P256(point(32)?),
            ("EC", Some("P-384")) => PublicKey::P384(point(48)?),
            ("OKP", Some("Ed25519")) => PublicKey::Ed25519(bytes("x")?),
            _ => return None,
        };
        Some(Self {
            id: text("kid").map(str::to_owned),
            algorithm: text("alg").map(str::to_owned),
            key: public,
        })
    }
}

impl PublicKey {
    /// The type of the key says which algorithms it may be for: a token cannot choose a weaker one.
    fn verify(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm) {
            (Self::Rsa { n, e }, _) => {
                let parameters: &RsaParameters = match algorithm {
                    "RS256" => &RSA_PKCS1_2048_8192_SHA256,
                    "RS384" => &RSA_PKCS1_2048_8192_SHA384,
                    "RS512" => &RSA_PKCS1_2048_8192_SHA512,
                    "PS256" => &RSA_PSS_2048_8192_SHA256,
                    _ => return false,
                };
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
            }
            (Self::P256(point), "ES256") => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            (Self::P384(point), "ES384") => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(message, signature).is_ok()
            }
            (Self::Ed25519(key), "EdDSA") => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}

impl Jwt {
    /// The `sub` of the token of a request.
    pub(super) fn check(
        &self,
        headers: &HeaderMap,
        fetched: Option<&KeySet>,
    ) -> Result<Option<Arc<str>>, Refusal> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let keys = self.keys.as_deref().or(fetched);
        let claims = bearer(headers).zip(keys).and_then(|(token, keys)| self.claims(token, keys, now));
        match claims {
            Some(claims) => Ok(claims["sub"].as_str().map(Into::into)),
            None if bearer(headers).is_none() => {
                Err(Refusal::Unauthorized(HeaderValue::from_static("Bearer")))
            }
            None => Err(Refusal::Unauthorized(HeaderValue::from_static("Bearer error=\"invalid_token\""))),
        }
    }

    /// What a token says, if it may be believed at this time.
    fn claims(&self, token: &str, keys: &KeySet, now: f64) -> Option<Value> {
        let (message, signature) = token.rsplit_once('.').filter(|_| token.len() <= LONGEST)?;
        let (head, claims) = message.split_once('.')?;
        let read = |part: &str| serde_json::from_slice::<Value>(&RAW_URL.decode(part).ok()?).ok();
        let head = read(head)?;
        // Extensions that have to be understood are not.
        if head.get("crit").is_some() {
            return None;
        }
        let signature = RAW_URL.strict().decode(signature).ok()?;
        if !keys.verify(head["alg"].as_str()?, head["kid"].as_str(), message.as_bytes(), &signature) {
            return None;
        }
        let claims = read(claims)?;
        let time = |name: &str| match claims.get(name) {
            None => Ok(None),
            Some(value) => value.as_f64().map(Some).ok_or(()),
        };
        let ended = time("exp").ok()?.is_some_and(|end| now > end + TOLERANCE);
        let begun = time("nbf").ok()?.is_none_or(|begin| now >= begin - TOLERANCE);
        let issued = self.issuer.as_deref().is_none_or(|issuer| claims["iss"].as_str() == Some(issuer));
        let is_for_us = |audience: &str| self.audiences.iter().any(|ours| ours == audience);
        let addressed = self.audiences.is_empty()
            || match &claims["aud"] {
                Value::String(audience) => is_for_us(audience),
                Value::Array(audiences) => audiences.iter().filter_map(Value::as_str).any(is_for_us),
                _ => false,
            };
        (!ended && begun && issued && addressed).then_some(claims)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
    use serde_json::json;

    use super::*;

    struct Issuer(EcdsaKeyPair, SystemRandom);

    impl Issuer {
        fn new() -> Self {
            let random = SystemRandom::new();
            let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            Self(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap(), random)
        }

        fn keys(&self, extra: Value) -> KeySet {
            let point = self.0.public_key().as_ref();
            let mut key = json!({"kty": "EC", "crv": "P-256", "kid": "one",
                "x": RAW_URL.encode(&point[1..33]), "y": RAW_URL.encode(&point[33..])});
            key.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            KeySet::parse(json!({"keys": [{"kty": "oct", "k": "AA"}, key]}).to_string().as_bytes()).unwrap()
        }

        fn token(&self, head: Value, claims: Value) -> String {
            let message =
                format!("{}.{}", RAW_URL.encode(head.to_string()), RAW_URL.encode(claims.to_string()));
            let signature = self.0.sign(&self.1, message.as_bytes()).unwrap();
            format!("{message}.{}", RAW_URL.encode(signature))
        }
    }

    #[test]
    fn a_token_is_believed_if_all_of_it_is_right() {
        let issuer = Issuer::new();
        let keys = issuer.keys(json!({}));
        let jwt = Jwt { issuer: Some("us".into()), audiences: vec!["shop".into()], keys: None, url: None };
        let head = json!({"alg": "ES256", "kid": "one"});
        let good = json!({"iss": "us", "aud": ["other", "shop"], "sub": "jane", "exp": 1_000, "nbf": 500});
        let accepted = |head: &Value, claims: &Value, now: f64| {
            jwt.claims(&issuer.token(head.clone(), claims.clone()), &keys, now).is_some()
        };
        assert!(accepted(&head, &good, 700.0) && accepted(&head, &good, 1_050.0), "clocks may differ");
        assert!(!accepted(&head, &good, 1_061.0) && !accepted(&head, &good, 400.0));
        let with = |name: &str, value: Value| {
            let mut claims = good.clone();
            claims[name] = value;
            claims
        };
        for wrong in [
            with("iss", json!("them")),
            with("aud", json!("others")),
            with("aud", json!(7)),
            with("exp", json!("soon")),
        ] {
            assert!(!accepted(&head, &wrong, 700.0), "{wrong}");
        }
        for wrong in [
            json!({"alg": "none"}),
            json!({"alg": "HS256", "kid": "one"}),
            json!({"alg": "RS256"}),
            json!({"alg": "ES256", "kid": "two"}),
            json!({"alg": "ES256", "crit": ["b64"]}),
            json!({}),
        ] {
            assert!(!accepted(&wrong, &good, 700.0), "{wrong}");
        }
        // A byte of the claims or of the signature that is another one.
        let token = issuer.token(head, good);
        for at in (0..token.len()).step_by(7) {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(jwt.claims(&changed, &keys, 700.0).is_none() || changed == token, "{at}");
        }
        assert!(jwt.claims("", &keys, 0.0).is_none() && jwt.claims("..", &keys, 0.0).is_none());
    }

    #[test]
    fn a_key_for_one_algorithm_is_for_no_other() {
        let issuer = Issuer::new();
        let token = issuer.token(json!({"alg": "ES256"}), json!({}));
        let jwt = Jwt { issuer: None, audiences: vec![], keys: None, url: None };
        assert!(jwt.claims(&token, &issuer.keys(json!({"alg": "ES256"})), 0.0).is_some());
        assert!(jwt.claims(&token, &issuer.keys(json!({"alg": "ES384"})), 0.0).is_none());
        assert!(KeySet::parse(br#"{"keys": [{"kty": "oct", "k": "AA"}]}"#).is_err());
        assert!(KeySet::parse(b"[]").is_err());
    }

    #[test]
    fn edwards_curves_are_understood() {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        let key = json!({"kty": "OKP", "crv": "Ed25519", "x": RAW_URL.encode(pair.public_key())});
        let keys = KeySet::parse(json!({"keys": [key]}).to_string().as_bytes()).unwrap();
        let message =
            format!("{}.{}", RAW_URL.encode(r#"{"alg":"EdDSA"}"#), RAW_URL.encode(r#"{"sub":"jane"}"#));
        let token = format!("{message}.{}", RAW_URL.encode(pair.sign(message.as_bytes())));
        let jwt = Jwt { issuer: None, audiences: vec![], keys: Some(Arc::new(keys)), url: None };
        let headers = |value: String| HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
        assert_eq!(jwt.check(&headers(format!("Bearer {token}")), None), Ok(Some(Arc::from("jane"))));
        assert!(jwt.check(&headers(format!("Bearer {token}x")), None).is_err());
        assert_eq!(
            jwt.check(&HeaderMap::new(), None),
            Err(Refusal::Unauthorized(HeaderValue::from_static("Bearer")))
        );
    }
}
