//! Tokens of ServiceAccounts: whose they are, and how long.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use watchkeeper_apiserver::authentication::{Authenticator, Identity, Presented};
use watchkeeper_apiserver::front::Body;
use watchkeeper_apiserver::{AccountTokens, Clock, Options};
use watchkeeper_go::base64::{RAW_URL, STANDARD};
use watchkeeper_storage::Memory;

use crate::harness::Api;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const BEGIN: u64 = 1_800_000_000;

/// A server with an account, and a clock that stands still.
struct Bank {
    api: Api,
    now: Arc<AtomicU64>,
}

impl Bank {
    async fn open(tokens: Option<AccountTokens>) -> Self {
        let now = Arc::new(AtomicU64::new(BEGIN));
        let mut options = Options::default();
        let clock = Arc::clone(&now);
        options.clock = Clock::new(move || UNIX_EPOCH + Duration::from_secs(clock.load(Ordering::SeqCst)));
        options.account_tokens = tokens;
        let storage = Arc::new(Memory::new(watchkeeper_storage::Options::default()));
        let api = Api::with(storage, options).await;
        api.post(ACCOUNTS, json!({"metadata": {"name": "robot"}})).await.ok();
        api.post(SECRETS, json!({"metadata": {"name": "s"}})).await.ok();
        Self { api, now }
    }

    fn pass(&self, seconds: u64) {
        self.now.fetch_add(seconds, Ordering::SeqCst);
    }

    async fn token(&self, spec: Value) -> String {
        let answer = self.api.post(&format!("{ACCOUNTS}/robot/token"), json!({"spec": spec})).await.ok();
        answer["status"]["token"].as_str().unwrap().to_owned()
    }

    async fn who(&self, token: &str) -> Option<Identity> {
        let presented = Presented { token: Some(token.as_bytes()), certificate: None };
        self.api.server.account_authenticator().authenticate(&presented).await.unwrap()
    }

    async fn error(&self, token: &str) -> String {
        let review = json!({"spec": {"token": token}});
        let answer = self.api.post("/apis/authentication.k8s.io/v1/tokenreviews", review).await.ok();
        answer["status"]["error"].as_str().unwrap_or_default().to_owned()
    }
}

#[tokio::test]
async fn a_token_says_whose_it_is() {
    let bank = Bank::open(None).await;
    let who = bank.who(&bank.token(json!({})).await).await.unwrap();
    assert_eq!(who.user, "system:serviceaccount:default:robot");
    assert_eq!(
        who.groups,
        ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    );
    assert!(who.extra["authentication.kubernetes.io/credential-id"][0].starts_with("JTI="));
    assert!(!who.uid.is_empty());
    // And no more than that: it has no rights.
    let answer = bank.api.send_as(&who, "GET", SECRETS, Value::Null).await.failed(403);
    assert!(answer["message"].as_str().unwrap().contains("system:serviceaccount:default:robot"));
}

#[tokio::test]
async fn a_token_ends_when_it_says() {
    let bank = Bank::open(None).await;
    let (short, long) = (bank.token(json!({"expirationSeconds": 600})).await, bank.token(json!({})).await);
    bank.pass(659);
    assert!(bank.who(&short).await.is_some());
    bank.pass(2);
    assert!(bank.who(&short).await.is_none());
    assert_eq!(bank.error(&short).await, "[invalid bearer token, service account token has expired]");
    assert!(bank.who(&long).await.is_some());
}

#[tokio::test]
async fn a_token_ends_with_what_it_is_bound_to() {
    let bank = Bank::open(None).await;
    let bound = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"}});
    let (bound, free) = (bank.token(bound).await, bank.token(json!({})).await);
    assert!(bank.who(&bound).await.is_some());
    bank.api.delete(&format!("{SECRETS}/s")).await.ok();
    assert!(bank.who(&bound).await.is_none());
    assert_eq!(
        bank.error(&bound).await,
        "[invalid bearer token, service account token has been invalidated]"
    );
    bank.api.post(SECRETS, json!({"metadata": {"name": "s"}})).await.ok();
    assert!(bank.who(&bound).await.is_none(), "another secret of the same name");
    assert!(bank.who(&free).await.is_some());
    bank.api.delete(&format!("{ACCOUNTS}/robot")).await.ok();
    assert!(bank.who(&free).await.is_none());
    bank.api.post(ACCOUNTS, json!({"metadata": {"name": "robot"}})).await.ok();
    assert!(bank.who(&free).await.is_none(), "another account of the same name");
    assert!(bank.error(&free).await.contains("does not match claim"));
}

#[tokio::test]
async fn a_token_for_others_is_not_for_the_server_and_one_of_others_is_not_ours() {
    let bank = Bank::open(None).await;
    let token = bank.token(json!({"audiences": ["others"]})).await;
    assert!(bank.who(&token).await.is_none());
    let review = json!({"spec": {"token": token, "audiences": ["others", "more"]}});
    let answer = bank.api.post("/apis/authentication.k8s.io/v1/tokenreviews", review).await.ok();
    assert_eq!(answer["status"]["authenticated"], true);
    assert_eq!(answer["status"]["audiences"], json!(["others"]));

    let good = bank.token(json!({})).await;
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (header, claims) = message.split_once('.').unwrap();
    let foreign = Bank::open(None).await.token(json!({})).await;
    let unsigned = format!("{}.{claims}.", "eyJhbGciOiJub25lIn0");
    let swapped = format!("{header}.{}.{signature}", foreign.split('.').nth(1).unwrap());
    for bad in [&foreign, &unsigned, &swapped, &message.to_owned(), &format!("{good}x"), &"..".to_owned()] {
        assert!(bank.who(bad).await.is_none(), "{bad}");
    }
    assert!(bank.who(&good).await.is_some());
}

fn key(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/api/keys").join(name)
}

#[tokio::test]
async fn keys_come_from_files_in_every_form_that_go_writes() {
    for (signing, verifying) in [("rsa.pem", "rsa.pub"), ("ec.pem", "ec.crt"), ("rsa.pem", "rsa.pem")] {
        let tokens = AccountTokens::from_files(Some(&key(signing)), &[key(verifying)]).unwrap();
        let bank = Bank::open(Some(tokens.issued_by("https://issuer.example"))).await;
        let token = bank.token(json!({})).await;
        assert!(bank.who(&token).await.is_some(), "{signing}");
        let keys = bank.api.get("/openid/v1/jwks").await.ok();
        assert_eq!(keys["keys"].as_array().unwrap().len(), 1);
    }
    let other = AccountTokens::from_files(Some(&key("rsa.pem")), &[key("ec.crt")]).unwrap();
    let bank = Bank::open(Some(other)).await;
    assert!(bank.who(&bank.token(json!({})).await).await.is_none(), "signed with a key that is not accepted");
    let missing = AccountTokens::from_files(Some(&key("none.pem")), &[]).unwrap_err();
    assert!(missing.to_string().contains("none.pem"), "{missing}");
}

#[tokio::test]
async fn a_key_in_a_directory_outlives_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let load = || AccountTokens::load_or_create(Some(directory.path())).unwrap();
    let keys = async |tokens| Bank::open(Some(tokens)).await.api.get("/openid/v1/jwks").await.ok();
    assert_eq!(keys(load()).await, keys(load()).await);
    assert_ne!(keys(load()).await, keys(AccountTokens::generate().unwrap()).await);
}

/// Signs what the server would not, with its own key.
struct Forger(ring::signature::RsaKeyPair);

impl Forger {
    fn new() -> Self {
        let text = std::fs::read_to_string(key("rsa.pem")).unwrap();
        let body: String = text.lines().filter(|line| !line.starts_with('-')).collect();
        let der = STANDARD.decode(body).unwrap();
        let pair = ring::signature::RsaKeyPair::from_der(&der)
            .or_else(|_| ring::signature::RsaKeyPair::from_pkcs8(&der));
        Self(pair.unwrap())
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let encode = |bytes: &[u8]| RAW_URL.encode(bytes);
        let message =
            format!("{}.{}", encode(header.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
        let mut signature = vec![0; self.0.public().modulus_len()];
        let random = ring::rand::SystemRandom::new();
        self.0.sign(&ring::signature::RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature).unwrap();
        format!("{message}.{}", encode(&signature))
    }
}

#[tokio::test]
async fn a_signature_does_not_make_up_for_claims_that_are_missing_or_contradict_each_other() {
    let tokens = AccountTokens::from_files(Some(&key("rsa.pem")), &[]).unwrap();
    let bank = Bank::open(Some(tokens)).await;
    let (forger, good) = (Forger::new(), bank.token(json!({})).await);
    let part = |at: usize| -> Value {
        let bytes = RAW_URL.decode(good.split('.').nth(at).unwrap()).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    };
    let (header, claims) = (part(0), part(1));
    assert!(bank.who(&forger.sign(&header, &claims)).await.is_some(), "signed as the server signs");
    let number = "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate";
    let cases = [
        ("sub", json!("system:serviceaccount:kube-system:robot"), "sub claim is invalid"),
        ("sub", json!("admin"), "sub claim is invalid"),
        ("sub", Value::Null, "sub claim is invalid"),
        ("exp", Value::Null, "exp claim is missing"),
        ("exp", json!("4000000000"), number),
        ("exp", json!([4_000_000_000_u64]), number),
        ("exp", json!(-1), "service account token has expired"),
        ("nbf", json!("0"), number),
        ("iat", json!(true), number),
        ("nbf", json!(1e300), "service account token is not valid yet"),
    ];
    // All that went otherwise than it should.
    let mut wrong = Vec::new();
    for (claim, value, complaint) in cases {
        let mut changed = claims.clone();
        changed[claim] = value.clone();
        if value.is_null() {
            changed.as_object_mut().unwrap().remove(claim);
        }
        let token = forger.sign(&header, &changed);
        let error = bank.error(&token).await;
        if bank.who(&token).await.is_some() || error != format!("[invalid bearer token, {complaint}]") {
            wrong.push(format!("{claim}: {value}: {error}"));
        }
    }
    for (claim, value) in [("exp", json!(4e9)), ("exp", json!(u64::MAX)), ("iat", json!(1.5))] {
        let mut changed = claims.clone();
        changed[claim] = value.clone();
        if bank.who(&forger.sign(&header, &changed)).await.is_none() {
            wrong.push(format!("{claim}: {value}"));
        }
    }
    for value in [json!(["exp"]), json!(["b64"]), json!([]), json!("x")] {
        let mut changed = header.clone();
        changed["crit"] = value.clone();
        let token = forger.sign(&changed, &claims);
        let error = bank.error(&token).await;
        if bank.who(&token).await.is_some()
            || error != "[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]"
        {
            wrong.push(format!("crit: {value}: {error}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[tokio::test]
async fn a_request_does_not_say_where_the_keys_are() {
    let bank = Bank::open(None).await;
    let uri = async |bank: &Bank| {
        let mut request = http::Request::get("/.well-known/openid-configuration");
        request = request.header("host", "evil.example").header("x-forwarded-host", "evil.example");
        let document = bank.api.answer(request.body(Body::empty()).unwrap()).await.ok();
        document["jwks_uri"].as_str().unwrap().to_owned()
    };
    assert_eq!(uri(&bank).await, "https://kubernetes.default.svc/openid/v1/jwks");
    for (address, expected) in [
        ("127.0.0.1:6443", "https://127.0.0.1:6443/openid/v1/jwks"),
        ("[2001:db8::1]:7", "https://[2001:db8::1]:7/openid/v1/jwks"),
        ("0.0.0.0:6443", "https://kubernetes.default.svc/openid/v1/jwks"),
    ] {
        bank.api.server.advertise(Some(address.parse().unwrap())).await.unwrap();
        assert_eq!(uri(&bank).await, expected);
    }
    let tokens = AccountTokens::generate().unwrap().keys_at("https://keys.example/set");
    assert_eq!(uri(&Bank::open(Some(tokens)).await).await, "https://keys.example/set");
}
