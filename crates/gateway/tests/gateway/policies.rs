//! Who may send requests, and how many.

use http::Request;
use ring::digest::{SHA256, digest};
use serde_json::json;

use watchkeeper_front::Body;

use crate::support::{Bench, Server, id, send};

fn sha256(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn bench() -> (Bench, Server) {
    let (bench, server) = (Bench::start().await, Server::echo("one"));
    bench.backend("one", &[&server]).await;
    bench.route("open", "/open", "one").await;
    bench.route("shut", "/shut", "one").await;
    (bench, server)
}

#[tokio::test]
async fn a_key_opens_a_route_until_it_is_deleted() {
    let (bench, _server) = bench().await;
    let spec = |keys: &[&str]| {
        let keys: Vec<_> = keys
            .iter()
            .map(|key| json!({"name": format!("owner of {key}"), "sha256": sha256(key)}))
            .collect();
        json!({"targets": [{"kind": "Route", "name": "shut"}], "apiKeys": {"keys": keys}})
    };
    bench.put("GatewayPolicy", "keys", spec(&["alpha", "beta"])).await;
    assert_eq!(bench.get("/open").await.status, 200);
    let answer = bench.get("/shut").await;
    assert_eq!((answer.status.as_u16(), answer.header("www-authenticate")), (401, Some("ApiKey")));
    let with = |key: &str| Request::get("/shut").header("x-api-key", key).header("x-consumer", "admin");
    let told = bench.send(with("beta")).await.json();
    assert_eq!(told["headers"]["x-consumer"], "owner of beta");
    assert_eq!(told["headers"].get("x-api-key"), None, "the backend does not get the key");
    assert_eq!(bench.send(with("gamma")).await.status, 401);
    bench.put("GatewayPolicy", "keys", spec(&["alpha"])).await;
    assert_eq!(bench.send(with("beta")).await.status, 401, "as soon as the change is programmed");
    assert_eq!(bench.send(with("alpha")).await.status, 200);
}

#[tokio::test]
async fn a_limit_keeps_its_count_over_edits() {
    let (bench, _server) = bench().await;
    let spec = |burst: u32| json!({"targets": [{"kind": "Namespace"}], "rate": {"requests": 1, "per": "1h", "burst": burst, "by": "Header", "header": "x-team"}});
    bench.put("GatewayPolicy", "rate", spec(3)).await;
    let ask = |team: &'static str| Request::get("/open").header("x-team", team);
    for _ in 0..3 {
        assert_eq!(bench.send(ask("a")).await.status, 200);
    }
    let answer = bench.send(ask("a")).await;
    assert_eq!(answer.status, 429);
    assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() > 3_000);
    assert_eq!(bench.send(ask("b")).await.status, 200, "others have their own");
    bench.put("GatewayPolicy", "rate", spec(4)).await;
    assert_eq!(bench.send(ask("a")).await.status, 200, "one more than before");
    assert_eq!(bench.send(ask("a")).await.status, 429);
}

#[tokio::test]
async fn addresses_and_users_are_checked() {
    let (bench, _server) = bench().await;
    let addresses = |field: &str, networks: &[&str]| json!({"targets": [{"kind": "Listener", "name": "web"}], "addresses": {field: networks}});
    bench.put("GatewayPolicy", "ip", addresses("deny", &["127.0.0.0/8"])).await;
    assert_eq!(bench.get("/open").await.status, 403);
    bench.put("GatewayPolicy", "ip", addresses("allow", &["10.0.0.0/8"])).await;
    assert_eq!(bench.get("/open").await.status, 403);
    bench.put("GatewayPolicy", "ip", addresses("allow", &["127.0.0.1"])).await;
    assert_eq!(bench.get("/open").await.status, 200);
    let hashed = watchkeeper_gateway::policy::Password::hashed(b"hunter2").unwrap();
    let spec = json!({"targets": [{"kind": "Route", "name": "shut"}], "basic": {"realm": "shop", "users": [{"name": "jane", "password": hashed}]}});
    bench.put("GatewayPolicy", "users", spec).await;
    let with = |password: &str| {
        let coded = watchkeeper_go::base64::encode(format!("jane:{password}"));
        Request::get("/shut").header("authorization", format!("Basic {coded}"))
    };
    let answer = bench.send(with("wrong")).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("www-authenticate")),
        (401, Some("Basic realm=\"shop\""))
    );
    let told = bench.send(with("hunter2")).await.json();
    assert_eq!(told["headers"]["x-consumer"], "jane");
    assert_eq!(told["headers"].get("authorization"), None);
    assert_eq!(bench.get("/open").await.status, 200);
}

#[tokio::test]
async fn requests_have_to_be_as_an_openapi_document_says() {
    let bench = Bench::start().await;
    let server = Server::echo("s");
    bench.backend("b", &[&server]).await;
    bench.route("shop", "/v1", "b").await;
    let document = r##"
openapi: 3.0.3
paths:
  /orders:
    get:
      parameters:
      - {name: limit, in: query, schema: {type: integer, maximum: 100}}
    post:
      requestBody:
        required: true
        content:
          application/json:
            schema: {$ref: "#/components/schemas/order"}
components:
  schemas:
    order: {type: object, required: [item], additionalProperties: false, properties: {item: {type: string, maxLength: 5}}}
"##;
    let policy = |document: &str| {
        let openapi = json!({"document": document, "prefix": "/v1", "maxBodyBytes": 1000});
        json!({"targets": [{"kind": "Route", "name": "shop"}], "openapi": openapi})
    };
    bench.put("GatewayPolicy", "api", policy(document)).await;
    let post = async |body: &str| {
        let request =
            http::Request::post("/v1/orders").header("host", "a").header("content-type", "application/json");
        send(bench.address, request.body(Body::whole(body.to_owned())).unwrap()).await
    };
    assert_eq!(bench.get("/v1/orders?limit=7").await.status, 200);
    let refused = bench.get("/v1/orders?limit=many").await;
    assert_eq!((refused.status.as_u16(), refused.text()), (400, "query limit: has to be of type integer\n"));
    assert_eq!(bench.get("/v1/else").await.status, 404);
    assert_eq!(bench.send(http::Request::delete("/v1/orders")).await.status, 405);
    let served = post(r#"{"item": "tea"}"#).await;
    assert_eq!((served.status.as_u16(), &served.json()["body"]), (200, &json!(r#"{"item": "tea"}"#)));
    for (body, said) in [
        ("{}", "body.item: is missing\n"),
        (r#"{"item": "coffee"}"#, "body.item: has more than 5 characters\n"),
        (r#"{"item": "tea", "price": 0}"#, "body.price: is not known\n"),
        ("{", "body: is not JSON\n"),
        ("", "body: is missing\n"),
    ] {
        let refused = post(body).await;
        assert_eq!((refused.status.as_u16(), refused.text()), (400, said), "{body}");
    }
    assert_eq!(post(&format!(r#"{{"item": "{}"}}"#, "x".repeat(2000))).await.status, 413);
    // A document that cannot be read leaves the one before in force.
    bench.put("GatewayPolicy", "api", policy("openapi: 2.0")).await;
    let report = bench.handle.report(&id("GatewayPolicy", "api")).unwrap();
    assert_eq!(report.accepted.message, "spec.openapi.document: is not a document of OpenAPI 3");
    assert_eq!(post("{}").await.status, 400);
}

#[tokio::test]
async fn tokens_are_checked_by_keys_that_their_issuer_publishes() {
    use ring::signature::{Ed25519KeyPair, KeyPair as _};
    use watchkeeper_go::base64::RAW_URL;
    let (bench, _server) = bench().await;
    let random = ring::rand::SystemRandom::new();
    let pair =
        || Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&random).unwrap().as_ref()).unwrap();
    let (ours, other) = (pair(), pair());
    let set = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "one", "x": RAW_URL.encode(ours.public_key())}]});
    let asked = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let issuer = Server::start({
        let asked = std::sync::Arc::clone(&asked);
        move |_: watchkeeper_front::Request| {
            let (set, asked) = (set.to_string(), std::sync::Arc::clone(&asked));
            async move {
                // Not before the test says so.
                asked.acquire().await.unwrap().forget();
                watchkeeper_front::Response::new(Body::whole(set))
            }
        }
    });
    let spec = json!({
        "targets": [{"kind": "Route", "name": "shut"}],
        "jwt": {"issuer": "https://issuer.test", "audiences": ["shop"], "jwksUrl": format!("http://{}/keys", issuer.address)},
    });
    bench.put("GatewayPolicy", "tokens", spec).await;
    let token = |pair: &Ed25519KeyPair, claims: serde_json::Value| {
        let coded = |value: serde_json::Value| RAW_URL.encode(value.to_string());
        let head = coded(json!({"alg": "EdDSA", "kid": "one"}));
        let message = format!("{head}.{}", coded(claims));
        let signature = RAW_URL.encode(pair.sign(message.as_bytes()));
        format!("Bearer {message}.{signature}")
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let claims = |issuer: &str, audience: &str, expires: u64| json!({"iss": issuer, "aud": audience, "exp": expires, "sub": "jane"});
    let good = claims("https://issuer.test", "shop", now + 600);
    let ask = async |token: String| bench.send(Request::get("/shut").header("authorization", token)).await;
    assert_eq!(ask(token(&ours, good.clone())).await.status, 401, "no keys are known yet: nobody gets in");
    asked.add_permits(1);
    crate::support::within("the keys", async {
        while ask(token(&ours, good.clone())).await.status != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(ask(token(&ours, good.clone())).await.json()["headers"]["x-consumer"], "jane");
    for (what, token) in [
        ("another key", token(&other, good.clone())),
        ("another issuer", token(&ours, claims("https://other.test", "shop", now + 600))),
        ("another audience", token(&ours, claims("https://issuer.test", "bank", now + 600))),
        ("expired", token(&ours, claims("https://issuer.test", "shop", now - 600))),
    ] {
        assert_eq!(ask(token).await.status, 401, "{what}");
    }
    assert_eq!(bench.get("/shut").await.status, 401);
    assert_eq!(bench.get("/open").await.status, 200);
}
