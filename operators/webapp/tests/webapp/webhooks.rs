//! What is asked before a WebApp is stored, and its versions, by an API server that asks.

use serde_json::{Value, json};
use watchkeeper::Connection;
use watchkeeper::prelude::Manager;
use watchkeeper::runtime::Running;
use watchkeeper::webhooks::{Reached, WebhookOptions};
use watchkeeper_description::{Right, When};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::roles::{refused, rules, shipped};
use crate::world::{NAME, description_of};

const ALPHA: &str = "/apis/apps.watchkeeper.dev/v1alpha1/namespaces/default/webapps";
const BETA: &str = "/apis/apps.watchkeeper.dev/v1beta1/namespaces/default/webapps";

/// The whole operator, ready. It may do what it describes and nothing else.
async fn started(env: &TestEnv) -> Running {
    let manager = Manager::new(NAME, env.connection_for(&description_of(NAME)).await);
    let running = watchkeeper_webapp::webhooks(watchkeeper_webapp::operator(manager)).start().await.unwrap();
    let ready = tokio::time::timeout(std::time::Duration::from_secs(60), running.ready()).await;
    assert!(ready.is_ok(), "{:?}", running.not_ready());
    running
}

async fn ask(env: &TestEnv, method: &str, path: &str, body: &Value) -> Result<Value, String> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let answer = env.connection().request(request.body(body).unwrap()).await;
    answer.map(|answer| serde_json::from_slice(&answer).unwrap()).map_err(|error| error.to_string())
}

fn alpha(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "apps.watchkeeper.dev/v1alpha1", "kind": "WebApp", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn both_versions_are_served_and_the_old_one_is_as_ever() {
    let env = TestEnv::builder().with_roles().start().await;
    let running = started(&env).await;
    let spec = json!({"image": "nginx:1.29", "port": 8080, "replicas": 2, "env": {"A": "1"}});
    let created = ask(&env, "POST", ALPHA, &alpha("shop", spec.clone())).await.unwrap();
    assert_eq!(created["spec"], spec);
    assert_eq!(created["metadata"]["labels"]["app.kubernetes.io/name"], "shop");
    let new = ask(&env, "GET", &format!("{BETA}/shop"), &Value::Null).await.unwrap();
    assert_eq!(
        new["spec"],
        json!({"image": "nginx:1.29", "http": {"port": 8080}, "replicas": 2, "environment": {"A": "1"}})
    );
    // The controller, which reads the new version, has made of it what it says.
    watchkeeper_testkit::eventually(|| async {
        let path = "/apis/apps/v1/namespaces/default/deployments/shop";
        let deployment = ask(&env, "GET", path, &Value::Null).await?;
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        match container["ports"][0]["containerPort"] == 8080 && container["env"][0]["name"] == "A" {
            true => Ok(()),
            false => Err(deployment.to_string()),
        }
    })
    .await;
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/webapps.apps.watchkeeper.dev";
    let definition = ask(&env, "GET", definition, &Value::Null).await.unwrap();
    assert_eq!(definition["status"]["storedVersions"], json!(["v1alpha1"]));
    running.stop().await;
}

#[tokio::test]
async fn what_a_schema_cannot_say_is_refused_with_the_field_and_the_reason() {
    let env = TestEnv::builder().with_roles().start().await;
    let running = started(&env).await;
    let bad = json!({"image": "nginx:1.29", "port": 80, "env": {"2FAST": "1", "A B": "2"}});
    let refused = ask(&env, "POST", ALPHA, &alpha("bad", bad)).await.unwrap_err();
    for part in ["spec.environment", "\"2FAST\"", "\"A B\"", "the name of a variable has letters"] {
        assert!(refused.contains(part), "{part} is not in {refused}");
    }
    let large = json!({"image": "nginx:1.29", "port": 80, "env": {"A": "x".repeat(65 << 10)}});
    let refused = ask(&env, "POST", ALPHA, &alpha("large", large)).await.unwrap_err();
    assert!(refused.contains("mount a ConfigMap instead"), "{refused}");
    running.stop().await;
}

/// The operator as it is in a cluster, where it is asked through a Service.
fn in_cluster(connection: Connection) -> Manager {
    let mut options = WebhookOptions::default();
    options.address = Some(([127, 0, 0, 1], 0).into());
    options.reached = Reached::Service("webapp-webhook".into());
    let manager = Manager::new(NAME, connection).webhook_options(options);
    watchkeeper_webapp::webhooks(watchkeeper_webapp::operator(manager))
}

/// The rights that it has for its webhooks, and for what the server has to know of them.
fn webhook_rights() -> Vec<Right> {
    let of_webhooks = |right: &&Right| {
        right.when == When::ConfiguringWebhooks || right.resource.group == "admissionregistration.k8s.io"
    };
    description_of(NAME).rights.iter().filter(of_webhooks).cloned().collect()
}

/// A server on which somebody has installed what the operator has no rights to make: its definition, and its configurations, empty.
async fn installed() -> TestEnv {
    let env = TestEnv::builder().with_roles().start().await;
    env.install_yaml(&description_of(NAME).definitions[0].to_string()).await;
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let version = "admissionregistration.k8s.io/v1";
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": NAME}});
        let path = format!("/apis/{version}/{}s", kind.to_lowercase());
        ask(&env, "POST", &path, &object).await.unwrap();
    }
    env
}

#[tokio::test]
async fn without_any_one_of_the_rules_of_its_webhooks_something_is_refused() {
    let env = installed().await;
    let running = in_cluster(env.connection_with(NAME, &shipped(NAME)).await).start().await.unwrap();
    let ready = tokio::time::timeout(std::time::Duration::from_secs(60), running.ready()).await;
    assert!(ready.is_ok(), "{:?}", running.not_ready());
    running.stop().await;
    assert_eq!(refused(&env), []);
    let rules = rules(true);
    assert_eq!(rules.len(), 4);
    for rule in rules {
        let env = installed().await;
        let running = in_cluster(env.connection_with(NAME, &rule.left_out()).await).start().await.unwrap();
        eventually(|| async {
            match refused(&env).iter().any(|call| rule.allows(call)) {
                true => Ok(()),
                false => Err(format!("nobody needs {}", rule.shown())),
            }
        })
        .await;
        rule.judge(&refused(&env));
        running.stop().await;
    }
}

#[tokio::test]
async fn what_it_may_do_for_its_webhooks_it_does() {
    let env = TestEnv::builder().with_roles().start().await;
    let connection = env.connection_for(&description_of(NAME)).await;
    // Beside the server it takes its configurations away; in a cluster it shares authorities with others.
    let beside = watchkeeper_webapp::operator(Manager::new(NAME, connection.clone()));
    for manager in [watchkeeper_webapp::webhooks(beside), in_cluster(connection)] {
        let running = manager.start().await.unwrap();
        let ready = tokio::time::timeout(std::time::Duration::from_secs(60), running.ready()).await;
        assert!(ready.is_ok(), "{:?}", running.not_ready());
        running.stop().await;
    }
    let mut description = description_of(NAME);
    description.rights = webhook_rights().into_iter().collect();
    let unused = env.unused_rights(&description);
    let unused: Vec<String> =
        unused.iter().map(|right| format!("{} {}", right.target(), right.verbs)).collect();
    assert_eq!(
        unused,
        [
            // Lists come as watches where the server can do that; authorities are replaced after months.
            "secrets list, update",
            "mutatingwebhookconfigurations list",
            "validatingwebhookconfigurations list",
            "customresourcedefinitions list",
        ]
    );
}
