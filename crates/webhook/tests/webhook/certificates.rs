//! The Secret, the configurations and the certificates of replicas in a cluster.

use serde_json::{Value, json};
use watchkeeper::prelude::*;
use watchkeeper::webhooks::{Certificates, Reached, WebhookOptions};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::kinds::{v1, v2};
use crate::world::{APPS_DEFINITION, ask, started};

pub(crate) const SECRET: &str = "/api/v1/namespaces/default/secrets/apps-webhook-authorities";
pub(crate) const CONFIGURATION: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/apps";

/// A replica that is asked through a Service.
pub(crate) fn replica(connection: Connection) -> Manager {
    let webhook = Webhook::of::<v2::App>().convert::<v1::App>().validate(
        |app: &v2::App, _: Option<&v2::App>, _: &AdmissionRequest| {
            let mut verdict = Verdict::allow();
            if app.spec.replicas == Some(11) {
                verdict.invalid("spec.replicas", 11, "must be at most 10");
            }
            verdict
        },
    );
    let mut options = WebhookOptions::default();
    options.address = Some(([127, 0, 0, 1], 0).into());
    options.reached = Reached::Service("apps-webhook".into());
    Manager::new("apps", connection).install::<v2::App>().webhook(webhook).webhook_options(options)
}

#[tokio::test]
async fn replicas_share_one_authority_and_every_configuration_shows_it() {
    let env = TestEnv::start().await;
    let (one, other) = tokio::join!(started(replica(env.connection())), started(replica(env.connection())));
    let (_, secret) = ask(&env, "GET", SECRET, &Value::Null).await;
    let authority = &secret["data"]["current.crt"];
    assert!(
        authority.is_string() && secret["data"]["current.key"].is_string(),
        "{:?}",
        secret["data"].as_object().map(|data| data.keys().collect::<Vec<_>>())
    );
    let (_, configuration) = ask(&env, "GET", CONFIGURATION, &Value::Null).await;
    let (_, definition) = ask(&env, "GET", APPS_DEFINITION, &Value::Null).await;
    let client = &configuration["webhooks"][0]["clientConfig"];
    assert_eq!(&client["caBundle"], authority);
    assert_eq!(
        client["service"],
        json!({"name": "apps-webhook", "namespace": "default", "path": "/validate-example-com-v2-app", "port": 443})
    );
    assert_eq!(&definition["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"], authority);

    // What was taken out is put back.
    let broken = json!({"metadata": {"annotations": null}, "webhooks": []});
    assert_eq!(ask(&env, "PATCH", CONFIGURATION, &broken).await.0, 200);
    eventually(|| async {
        ask(&env, "GET", CONFIGURATION, &Value::Null).await.1["webhooks"][0]["clientConfig"]["caBundle"]
            == *authority
    })
    .await;
    let weaker = json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]);
    let request = http::Request::patch(CONFIGURATION).header("content-type", "application/json-patch+json");
    env.connection().request(request.body(weaker.to_string()).unwrap()).await.unwrap();
    eventually(|| async {
        ask(&env, "GET", CONFIGURATION, &Value::Null).await.1["webhooks"][0]["failurePolicy"] == "Fail"
    })
    .await;
    one.stop().await;
    // The other still serves them.
    assert_eq!(ask(&env, "GET", CONFIGURATION, &Value::Null).await.0, 200);
    drop(other);
}

#[tokio::test]
async fn a_keeper_of_certificates_that_panics_goes_on() {
    const TASK: &str = "webhook-certificates";
    let env = TestEnv::start().await;
    let running = started(replica(env.connection())).await;
    let supervisor = running.supervisor().clone();
    supervisor.inject(TASK);
    eventually(|| async { supervisor.panics(TASK) == 1 }).await;
    let broken = json!({"metadata": {"annotations": null}, "webhooks": []});
    assert_eq!(ask(&env, "PATCH", CONFIGURATION, &broken).await.0, 200);
    eventually(|| async { ask(&env, "GET", CONFIGURATION, &Value::Null).await.1["webhooks"][0].is_object() })
        .await;
    running.stop().await;
}

#[tokio::test]
async fn a_secret_that_is_no_authority_is_named_and_left_alone() {
    let env = TestEnv::start().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "apps-webhook-authorities"}, "data": {"current.crt": "eA=="}});
    let path = "/api/v1/namespaces/default/secrets";
    assert_eq!(ask(&env, "POST", path, &secret).await.0, 201);
    let running = replica(env.connection()).start().await.unwrap();
    eventually(|| async {
        let found = running.not_ready().into_iter().find(|(check, _)| check == "webhooks");
        found.filter(|(_, why)| {
            why.contains("Secret default/apps-webhook-authorities") && why.contains("delete it")
        })
    })
    .await;
    assert_eq!(ask(&env, "GET", SECRET, &Value::Null).await.1["data"], json!({"current.crt": "eA=="}));
    // Somebody does as it says.
    assert_eq!(ask(&env, "DELETE", SECRET, &Value::Null).await.0, 200);
    tokio::time::timeout(Duration::from_secs(60), running.ready()).await.unwrap();
    drop(running);
}

#[tokio::test]
async fn the_rights_that_it_describes_are_enough() {
    let env = TestEnv::builder().with_roles().start().await;
    let description = replica(env.connection()).description();
    let connection = env.connection_for(&description).await;
    let running = started(replica(connection)).await;
    assert_eq!(description.webhook_port, Some(9443));
    let webhooks: Vec<(&str, &str)> =
        description.webhooks.iter().map(|webhook| (webhook.kind.as_str(), webhook.path.as_str())).collect();
    assert_eq!(webhooks, [("validating", "/validate-example-com-v2-app"), ("conversion", "/convert")]);
    let rights = serde_json::to_string(&description.rights).unwrap();
    assert!(rights.contains("apps-webhook-authorities"), "{rights}");
    drop(running);
}

/// A folder with a certificate and a key, and the authority that has issued it.
fn certificate_of_others() -> tempfile::TempDir {
    use watchkeeper_front::{Authority, Key, Purpose, pem};
    let folder = tempfile::tempdir().unwrap();
    let now = std::time::SystemTime::now();
    let authority = Authority::with_key("others", Key::generate().unwrap(), now).unwrap();
    let key = Key::generate().unwrap();
    let names = ["127.0.0.1".to_owned()];
    let certificate = authority.issue(&key, ("hooks", &[]), &Purpose::Server(&names), now).unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    write("tls.crt", pem::certificate(&certificate));
    write("tls.key", pem::key(key.pkcs8()));
    write("ca.crt", pem::certificate(authority.certificate()));
    folder
}

#[tokio::test]
async fn a_configuration_that_was_installed_empty_is_filled_in_also_where_others_inject_authorities() {
    let env = TestEnv::start().await;
    let (kind, collection) = ("ValidatingWebhookConfiguration", CONFIGURATION.strip_suffix("/apps").unwrap());
    let empty =
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "apps"}});
    assert_eq!(ask(&env, "POST", collection, &empty).await.0, 201);
    let folder = certificate_of_others();
    std::fs::remove_file(folder.path().join("ca.crt")).unwrap();
    let mut options = WebhookOptions::default();
    options.certificates = Certificates::Files(folder.path().to_owned());
    let running = started(replica(env.connection()).webhook_options(options)).await;
    let (_, configuration) = ask(&env, "GET", CONFIGURATION, &Value::Null).await;
    assert_eq!(configuration["webhooks"].as_array().map(Vec::len), Some(1), "{configuration}");
    assert!(configuration["webhooks"][0]["clientConfig"]["caBundle"].is_null(), "{configuration}");
    running.stop().await;
}

#[tokio::test]
async fn certificates_of_others_come_from_files() {
    let env = TestEnv::start().await;
    let folder = certificate_of_others();
    let mut options = WebhookOptions::default();
    options.certificates = Certificates::Files(folder.path().to_owned());
    let running = started(replica(env.connection()).webhook_options(options)).await;
    let app = |size: u32| json!({"apiVersion": "example.com/v2", "kind": "App", "metadata": {"name": format!("a{size}")}, "spec": {"replicas": size}});
    // A real server serves a definition a moment after it has said so.
    eventually(|| async { ask(&env, "GET", crate::world::APPS_V2, &Value::Null).await.0 == 200 }).await;
    let (code, answer) = ask(&env, "POST", crate::world::APPS_V2, &app(11)).await;
    assert_eq!(code, 422, "{answer}");
    assert_eq!(ask(&env, "POST", crate::world::APPS_V2, &app(1)).await.0, 201);
    running.stop().await;
}
