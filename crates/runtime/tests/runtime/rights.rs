//! Operators that may do what their roles say, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use serde_json::{Value, json};
use watchkeeper_client::{Client, ready};
use watchkeeper_core::Key;
use watchkeeper_election::ElectionOptions;
use watchkeeper_runtime::{Action, Context, Controller, Manager, Verbs};
use watchkeeper_testkit::fixtures::{Widget, config_map, widget};
use watchkeeper_testkit::{TestEnv, eventually};

use crate::log::Log;

const OPERATOR: &str = "operator";

/// A server that looks at roles, and a person who may do everything.
async fn env() -> (TestEnv, Client) {
    let env = TestEnv::builder().with_roles().start().await;
    env.install::<Widget>().await;
    let person = Client::new(env.connection());
    (env, person)
}

/// Allows the operator this: verbs on resources of a group. A real server takes a moment to know of new roles.
async fn grant(person: &Client, name: &str, rights: &[(&str, &str, &str)]) {
    let words = |list: &str| list.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let rules: Vec<Value> = rights
        .iter()
        .map(|(verbs, group, resources)| {
            json!({"verbs": words(verbs), "apiGroups": [group], "resources": words(resources)})
        })
        .collect();
    let role: ClusterRole =
        serde_json::from_value(json!({"metadata": {"name": name}, "rules": rules})).unwrap();
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OPERATOR}],
    }))
    .unwrap();
    person.create(&role).await.unwrap();
    person.create(&binding).await.unwrap();
    let Some((verbs, group, resource)) = rights.first() else { return };
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": OPERATOR, "resourceAttributes": {"verb": words(verbs)[0], "group": group, "resource": resource}},
    });
    eventually(|| async {
        let request = http::Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews")
            .header("content-type", "application/json")
            .body(review.to_string().into_bytes());
        let answer = person.connection().request(request.unwrap()).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        answer["status"]["allowed"] == true
    })
    .await;
}

const WIDGETS: (&str, &str, &str) = ("get list watch", "test.watchkeeper.dev", "widgets");

#[tokio::test(start_paused = true)]
async fn an_operator_works_with_the_rights_that_it_uses_and_no_others() {
    let (env, person) = env().await;
    grant(
        &person,
        OPERATOR,
        &[
            WIDGETS,
            ("patch", "test.watchkeeper.dev", "widgets/status"),
            // To apply what is not there is to create it.
            ("get list watch create patch delete", "", "configmaps"),
            ("get list watch create update", "coordination.k8s.io", "leases"),
        ],
    )
    .await;
    let controller = Controller::of::<Widget>().owns::<ConfigMap>().writes_status::<Widget>().reconcile(
        |widget: Arc<Widget>, cx: Context<Widget>| async move {
            let name = widget.metadata.name.clone().unwrap();
            cx.children().apply([config_map(&name, &[])]).await?;
            cx.status().condition(ready("Written")).await?;
            Ok(Action::done())
        },
    );
    let manager = Manager::new("test", env.connection_as(OPERATOR, &[]))
        .controller(controller)
        .leader_election(ElectionOptions::default());
    let running = manager.start().await.unwrap();
    running.ready().await;
    person.create(&widget("a", 1)).await.unwrap();
    let key = Key::new(Some("default"), "a");
    let live = person.live();
    eventually(|| async {
        let written = live.get::<ConfigMap>(&key).await.unwrap().is_some();
        written && live.get::<Widget>(&key).await.unwrap().unwrap().status.is_some()
    })
    .await;
    assert_eq!(env.count(|seen| seen.fate == watchkeeper_testkit::Fate::Answered(403)), 0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_not_allowed_is_named_tried_again_and_done_once_it_is() {
    let (env, person) = env().await;
    grant(&person, OPERATOR, &[WIDGETS]).await;
    let log = Log::default();
    let seen = log.clone();
    let widgets = Controller::of::<Widget>().writes::<ConfigMap>(Verbs::APPLY);
    let controller = widgets.reconcile(move |_: Arc<Widget>, cx: Context<Widget>| {
        let log = seen.clone();
        async move {
            let written = cx.client().apply(&config_map("m", &[])).await;
            log.say(written.as_ref().map_or_else(ToString::to_string, |_| "written".to_owned()));
            written?;
            Ok(Action::done())
        }
    });
    let manager = Manager::new("test", env.connection_as(OPERATOR, &[])).controller(controller);
    let running = manager.start().await.unwrap();
    running.ready().await;
    person.create(&widget("a", 1)).await.unwrap();
    eventually(|| async { !log.lines().is_empty() }).await;
    let told = log.lines()[0].clone();
    let right =
        r#"User "operator" cannot patch resource "configmaps" in API group "" in the namespace "default""#;
    assert!(told.contains(right), "{told}");

    tokio::time::sleep(Duration::from_secs(5)).await;
    let tries = log.lines().len();
    assert!((2..=15).contains(&tries), "{tries} tries in 5 s");
    grant(&person, "more", &[("get create patch", "", "configmaps")]).await;
    eventually(|| async { log.lines().last().is_some_and(|line| line == "written") }).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_may_not_be_watched_is_named_with_the_verb_and_is_there_once_it_may() {
    let (env, person) = env().await;
    let log = Log::default();
    let seen = log.clone();
    let controller =
        Controller::of::<Secret>().reconcile(move |secret: Arc<Secret>, _cx: Context<Secret>| {
            seen.say(secret.metadata.name.clone().unwrap());
            async { Ok(Action::done()) }
        });
    let manager = Manager::new("test", env.connection_as(OPERATOR, &[])).controller(controller);
    let running = manager.start().await.unwrap();
    eventually(|| async {
        let not_ready = running.not_ready();
        let right = r#"User "operator" cannot list resource "secrets" in API group "" at the cluster scope"#;
        if not_ready.iter().any(|(name, reason)| name == "cache secrets" && reason.contains(right)) {
            Ok(())
        } else {
            Err(format!("{not_ready:?}"))
        }
    })
    .await;
    grant(&person, OPERATOR, &[("get list watch", "", "secrets")]).await;
    person.create(&Secret { metadata: config_map("s", &[]).metadata, ..Secret::default() }).await.unwrap();
    eventually(|| async { log.lines() == ["s"] }).await;
    running.ready().await;
    running.stop().await;
}
